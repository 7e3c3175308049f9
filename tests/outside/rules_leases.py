"""What must not become of a lease: rules as functions from a View to texts."""

import bisect
import itertools
from collections import Counter, defaultdict

MARGIN = 0.05  # Seconds by which a lease must be cut short to count: more than any rounding.


def twice(view):
    """The same lease was given in two answers."""
    for id, leases in view.leases.items():
        for lease in leases:
            if again := getattr(lease, "again", None):
                yield f"{id} token {lease.token} came to {lease.event['worker']} and to {again['worker']}"


def early(view):
    """Started before it was due."""
    for id, leases in view.leases.items():
        label = view.label.get(id)
        begun = min((e["t0"] for e in view.enqueues.get(label, ()) if e["verdict"] != "refused"), default=None)
        due = begun + view.enqueued(label)["delay_ms"] / 1000 if begun is not None else 0
        for lease in leases:
            if lease.granted_latest < due and id not in view.replayed:
                yield f"{label} {id} attempt {lease.attempt} {due - lease.granted_latest:.3f} s before it was due"
            settle = lease.settled()
            if settle and settle.get("after_ms"):
                # Sent again it changes nothing: the first one counts.
                first = min(e["t0"] for e in lease.settles if e["verdict"] != "refused")
                due = max(due, first + settle["after_ms"] / 1000)


def run_after_settle(view):
    """Started although it had been settled for good."""
    for id, leases in view.leases.items():
        if id in view.replayed:
            continue
        for lease in leases:
            settle = lease.settled()
            if not settle or settle["outcome"] not in ("done", "dead"):
                continue
            for other in leases:
                if other.token > lease.token:
                    yield (f"{id} was {settle['outcome']} with token {lease.token} and was leased again with "
                           f"{other.token}, attempt {other.attempt}")
            for run in view.runs.get(id, ()):
                if run["t0"] > settle["t1"]:
                    yield f"{id} was {settle['outcome']} and a program was started for it"


def run_after_cancel(view):
    """Started although it had been cancelled."""
    for id, when in view.cancelled.items():
        for lease in view.leases.get(id, ()):
            if when is not None and lease.granted_earliest > when:
                yield f"{id} was cancelled and was leased {lease.granted_earliest - when:.3f} s later, attempt {lease.attempt}"
        for run in view.runs.get(id, ()):
            if when is not None and run["t0"] > when + 5:  # A program that was on its way then may begin.
                yield f"{id} was cancelled and a program was started for it {run['t0'] - when:.3f} s later"


def overlap(view):
    """Two valid leases at once."""
    for id, leases in view.leases.items():
        for index, lease in enumerate(leases):
            until = min(lease.valid_until(), lease.may_have_ended())
            for other in leases[index + 1:]:
                if other.granted_latest < until - MARGIN:
                    yield (f"{id}: token {lease.token} of {lease.event['worker']} was valid for {until - other.granted_latest:.1f}"
                           f" s more when token {other.token} was given to {other.event['worker']}")
    for id, runs in view.runs.items():
        for run in runs:
            for other in runs:
                if run["t0"] < other["t0"] and _runs(view, run, other["t0"]):
                    yield f"{id}: attempt {run['attempt']} was running in a living worker when attempt {other['attempt']} began"


def _runs(view, run, at):
    """Whether a program was certainly running, under a worker that keeps its lease alive."""
    worker = next((w for w in view.by_type["worker"] if w["worker"] == run["worker"]), None)
    if run["t1"] is None or not worker or run["t1"] <= at + MARGIN:
        return False
    for outage in view.by_type["outage"]:  # While it was long, the lease could not be extended.
        if outage["t0"] < run["t1"] and outage["t1"] > run["t0"] and outage["t1"] - outage["t0"] > worker["lease_ms"] / 3000:
            return False
    return worker["ended"] == "exit" or worker["t1"] > run["t1"]


def stale(view):
    """A settlement was accepted although the job had been leased to another."""
    for id, leases in view.leases.items():
        for index, lease in enumerate(leases):
            first = next((e for e in lease.settles if e["verdict"] != "refused"), None)
            if not first or first["verdict"] != "accepted":
                continue
            for other in leases[index + 1:]:
                if other.event["t1"] < first["t0"]:
                    yield f"{id}: token {lease.token} was settled after {other.event['worker']} had got token {other.token}"


def uncounted(view):
    """Two leases are the same attempt."""
    for id, leases in view.leases.items():
        for index, lease in enumerate(leases):
            for other in leases[index + 1:]:
                if other.attempt <= lease.attempt and not lease.may_be_returned() and id not in view.replayed:
                    yield f"{id}: attempt {lease.attempt} (token {lease.token}), then {other.attempt} (token {other.token})"


def charged(view):
    """Attempts were counted that nobody can have been given: more than answers were lost."""
    lost_leases = Counter()  # By queue: how many leases may have been in answers that nobody read.
    for poll in view.by_type["poll"]:
        if poll["verdict"] == "unknown":
            for queue in poll["queues"]:
                lost_leases[queue] += poll["max"]
    for worker in view.by_type["worker"]:
        for queue in worker["queues"]:
            lost_leases[queue] += worker["unseen"]
    unseen = defaultdict(list)
    for id, final in view.finals.items():
        label = view.label.get(id)
        if id in view.replayed or not label or not view.enqueued(label):
            continue
        attempts = {lease.attempt for lease in view.leases.get(id, ())}
        attempts |= {run["attempt"] for run in view.runs.get(id, ())}
        attempts |= {each["attempt"] for each in view.deliveries.get(id, ())}
        last = max([final.get("attempts") or 0, *attempts])
        if last > len(attempts):
            unseen[view.enqueued(label)["queue"]] += [(id, sorted(attempts), last, final["state"], final.get("reason"))]
    for queue, jobs in unseen.items():
        missing = sum(last - len(attempts) for _, attempts, last, _, _ in jobs)
        dead = sum(state == "dead" and not attempts for _, attempts, _, state, _ in jobs)
        if missing > lost_leases[queue]:
            yield (f"queue {queue}: {missing} attempts of {len(jobs)} jobs were charged and never handed out; lost answers "
                   f"explain {lost_leases[queue]}; {dead} jobs are dead unrun; for example {jobs[0]}")


def aged(view):
    """A lease was older than its time when it was handed out."""
    for event in view.by_type["lease"]:
        if event.get("age_ms", 0) >= event["lease_ms"]:
            yield f"{event['id']}: age {event['age_ms']} ms of {event['lease_ms']} ms, to {event['worker']}"


TAKEN_BACK = 10  # Seconds; it is a tenth of one.


def overrun(view):
    """The server had more jobs running than anybody had asked for."""
    small = 64  # What it may hold beyond that.
    foreign = {queue for worker in view.by_type["worker"] for queue in worker["queues"]}
    for queue in {sample["queue"] for sample in view.by_type["running"]} - foreign:
        # Asked for: from the beginning of a poll to the end of its answer, or for ever when that was lost; and what was
        # given, until its settlement was confirmed. What an answer lacks may have been on its way when the answer left: the
        # server keeps it for the next poll, and takes it back after a moment.
        polls = [poll for poll in view.by_type["poll"] if queue in poll["queues"]]
        leases = [lease for leases in view.leases.values() for lease in leases if lease.event["queue"] == queue]
        begun = Sums((poll["t0"], poll["max"]) for poll in polls)
        known = [poll for poll in polls if poll["verdict"] != "unknown"]
        ended = Sums([(poll["t1"], poll.get("count", poll["max"])) for poll in known]
                     + [(poll["t1"] + TAKEN_BACK, poll["max"] - poll.get("count", poll["max"])) for poll in known])
        given = Sums((lease.event["t1"], 1) for lease in leases)
        settled = Sums((lease.settled()["t1"], 1) for lease in leases if lease.settled())
        worst = (0, 0)
        for sample in view.by_type["running"]:
            if sample["queue"] == queue:
                asked = begun.until(sample["t1"]) - ended.before(sample["t0"])
                held = given.until(sample["t1"]) - settled.before(sample["t0"])
                if sample["running"] > asked + held + small:
                    worst = max(worst, (sample["running"], asked + held))
        if worst[0]:
            yield f"queue {queue}: {worst[0]} jobs running, where polls and leases account for {worst[1]} at most"


class Sums:
    """Sums of (time, number) up to a time."""

    def __init__(self, pairs):
        pairs = sorted(pairs)
        self.times = [time for time, _ in pairs]
        self.sums = [0, *itertools.accumulate(number for _, number in pairs)]

    def until(self, time):
        return self.sums[bisect.bisect_right(self.times, time)]

    def before(self, time):
        return self.sums[bisect.bisect_left(self.times, time)]


RULES = [twice, early, run_after_settle, run_after_cancel, overlap, stale, uncounted, charged, aged, overrun]
