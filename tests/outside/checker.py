"""The rules: what must never be in a history. Each is a function from a View to texts; README.md says what each one means."""

import bisect
import itertools
import json
import sys
from collections import Counter, defaultdict

from record import load
from view import View

MARGIN = 0.05  # Seconds by which a lease must be cut short to count: more than any rounding.
CONTENT = ("kind", "queue", "sha", "size", "content_type", "headers", "retry")
RULES = []


def rule(function):
    RULES.append(function)
    return function


@rule
def lost(view):
    """Confirmed, never handed to anybody, and not there any more."""
    for label, id in view.acked():
        if _absent(view, id) and not _handed(view, id):
            yield f"{label} {id} was confirmed and is gone"


@rule
def vanished(view):
    """Handed out at least once, and without a last record."""
    for label, id in view.acked():
        if _absent(view, id) and _handed(view, id):
            yield f"{label} {id} was leased and is gone"


def _absent(view, id):
    final = view.finals.get(id)
    return final is not None and final["state"] == "absent" and id not in view.cancelled


def _handed(view, id):
    return id in view.leases or id in view.runs or id in view.deliveries


@rule
def unexpected(view):
    """There is a job that nobody enqueued, or whose enqueuing was refused."""
    for kind in ("lease", "delivery", "final"):
        for event in view.by_type[kind]:
            if event.get("state") in ("absent", "done"):
                continue  # Of a job that is done not everything is kept.
            enqueues = view.enqueues.get(event.get("label"))
            if not enqueues:
                yield f"{kind} of {event['id']} with the label {event.get('label')!r}, which nobody enqueued"
            elif all(each["verdict"] == "refused" for each in enqueues):
                yield f"{kind} of {event['id']} {event['label']}, which was refused ({enqueues[-1].get('status')})"


@rule
def duplicate(view):
    """One job became two."""
    for label, ids in view.ids.items():
        if len(ids) > 1:
            yield f"{label} is {len(ids)} jobs: {sorted(ids)}"


@rule
def twice(view):
    """The same lease was given in two answers."""
    for id, leases in view.leases.items():
        for lease in leases:
            if again := getattr(lease, "again", None):
                yield f"{id} token {lease.token} came to {lease.event['worker']} and to {again['worker']}"


@rule
def content(view):
    """What came back is not what was sent."""
    for kind in ("lease", "delivery", "final", "run"):
        for event in view.by_type[kind]:
            label = event.get("label") or view.label.get(event["id"])
            sent = view.enqueued(label)
            if not sent or event.get("sha") is None:
                continue
            names = [name for name in CONTENT if name in event and event[name] != sent[name]]
            if kind in ("run", "delivery") and not sent["content_type"]:
                names = [name for name in names if name != "content_type"]  # Those are told a default.
            if names:
                shown = {name: (sent[name], event[name]) for name in names}
                yield f"{kind} of {event['id']} {label}: (sent, seen) {shown} {event.get('note', '')}"


@rule
def result(view):
    """The result is not what the accepted settlement said."""
    for id, event in view.results.items():
        said = [l.settled() for l in view.leases.get(id, ()) if l.settled() and l.settled()["outcome"] == "done"]
        for settle in said:
            if settle.get("sha") and event["state"] == "done" and event.get("sha") != settle["sha"]:
                yield f"{id}: the settlement's result was {settle['sha']}, the server has {event.get('sha')}"
            if settle.get("sha") and settle.get("content_type") and settle["content_type"] != event.get("content_type"):
                yield f"{id}: result of type {settle['content_type']}, the server has {event.get('content_type')}"


@rule
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


@rule
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


@rule
def run_after_cancel(view):
    """Started although it had been cancelled."""
    for id, when in view.cancelled.items():
        for lease in view.leases.get(id, ()):
            if when is not None and lease.granted_earliest > when:
                yield f"{id} was cancelled and was leased {lease.granted_earliest - when:.3f} s later, attempt {lease.attempt}"
        for run in view.runs.get(id, ()):
            if when is not None and run["t0"] > when + 5:  # A program that was on its way then may begin.
                yield f"{id} was cancelled and a program was started for it {run['t0'] - when:.3f} s later"


@rule
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


@rule
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


@rule
def uncounted(view):
    """Two leases are the same attempt."""
    for id, leases in view.leases.items():
        for index, lease in enumerate(leases):
            for other in leases[index + 1:]:
                if other.attempt <= lease.attempt and not lease.may_be_returned() and id not in view.replayed:
                    yield f"{id}: attempt {lease.attempt} (token {lease.token}), then {other.attempt} (token {other.token})"


@rule
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


@rule
def aged(view):
    """A lease was older than its time when it was handed out."""
    for event in view.by_type["lease"]:
        if event.get("age_ms", 0) >= event["lease_ms"]:
            yield f"{event['id']}: age {event['age_ms']} ms of {event['lease_ms']} ms, to {event['worker']}"


@rule
def overrun(view):
    """The server had more jobs running than anybody had asked for."""
    small = 64  # What it may hold beyond that.
    foreign = {queue for worker in view.by_type["worker"] for queue in worker["queues"]}
    for queue in {sample["queue"] for sample in view.by_type["running"]} - foreign:
        # Asked for: from the beginning of a poll to the end of its answer, or for ever when that was lost; and what was
        # given, until its settlement was confirmed.
        polls = [poll for poll in view.by_type["poll"] if queue in poll["queues"]]
        leases = [lease for leases in view.leases.values() for lease in leases if lease.event["queue"] == queue]
        begun = Sums((poll["t0"], poll["max"]) for poll in polls)
        ended = Sums((poll["t1"], poll["max"]) for poll in polls if poll["verdict"] != "unknown")
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


@rule
def memory(view):
    """More memory than the limits allow."""
    over = [e for e in view.by_type["memory"] if e["anon"] > e["baseline"] + e["limit"]]
    if over:
        worst = max(over, key=lambda event: event["anon"])
        mib = lambda name: f"{worst[name] / 2**20:.0f} MiB"
        yield f"{mib('anon')} in use; {mib('baseline')} at the start, {mib('limit')} allowed on top of it"


@rule
def refused(view):
    """Somebody who did nothing wrong was refused."""
    bad = [e for e in view.by_type["request"] if e["innocent"] and not 200 <= (e["status"] or 0) < 300]
    if bad:
        total = sum(e["innocent"] for e in view.by_type["request"])
        yield f"{len(bad)} of {total} innocent requests: {dict(Counter((e['status'], e['code']) for e in bad))}"


@rule
def rejected(view):
    """A request without a mistake was called wrong."""
    fine = (None, 408, 409, 429)
    bad = [e for e in view.by_type["enqueue"] if e["verdict"] == "refused" and (e["status"] or 500) < 500 and e["status"] not in fine]
    if bad:
        yield f"{len(bad)} enqueues: {dict(Counter((e['status'], e['code']) for e in bad))}, such as {bad[0]['label']}"
    bad = [e for kind in ("settle", "poll") for e in view.by_type[kind]
           if e["verdict"] == "refused" and e.get("status") in (400, 401, 403, 413, 415, 422)]
    if bad:
        yield f"{len(bad)} {bad[0]['type']}s: {dict(Counter((e['status'], e['code']) for e in bad))}"


@rule
def state(view):
    """The last state of a job has no cause, or it came to no end."""
    for id, final in view.finals.items():
        label = view.label.get(id)
        sent = view.enqueued(label) if label else None
        if not sent or id in view.replayed:
            continue
        said = {e["outcome"] for l in view.leases.get(id, ()) for e in l.settles if e["verdict"] != "refused"}
        elsewhere = id in view.runs or id in view.deliveries
        if final["state"] == "done" and "done" not in said and not elsewhere:
            yield f"{label} {id} is done, and nobody said so"
        if final["state"] not in ("done", "dead", "absent") and final.get("drained"):
            yield f"{label} {id} is {final['state']} after everything was healed and drained"


@rule
def audit(view):
    """The server's own account does not agree with the record."""
    for event in view.by_type["audit"]:
        said = event["document"]
        if not said["ok"] or said["accepted"] != said["done"] + said["removed"] + said["live"]:
            yield f"audit: {said}"
        states = Counter(final["state"] for final in view.finals.values())
        if event.get("complete"):
            dead = said["details"]["dead"]
            if dead != states["dead"]:
                yield f"audit counts {dead} dead, {states['dead']} were read back"
            if said["done"] != states["done"]:
                yield f"audit counts {said['done']} done, {states['done']} were read back"


@rule
def check(view):
    """A promise that the scenario looked at itself."""
    for event in view.by_type["check"]:
        if not event["ok"]:
            yield f"{event['name']}: {event['text']}"


def violations(events):
    """Every violation as (kind, text)."""
    view = View(events)
    return [(each.__name__, text) for each in RULES for text in each(view)]


def invalid(events):
    """Why the run proves nothing: planned faults that did not fire, too little load, jobs that were not read back."""
    view, reasons = View(events), []
    fired = Counter(event["name"] for event in view.by_type["fault"])
    for plan in view.by_type["plan"]:
        for name, count in plan["faults"].items():
            if fired[name] < count:
                reasons.append(f"the fault {name} fired {fired[name]} of {count} times")
        counts = {"acked": sum(1 for _ in view.acked()), "leases": len(view.by_type["lease"]),
                  "settled": sum(e["verdict"] == "accepted" for e in view.by_type["settle"]),
                  "runs": len(view.by_type["run"]), "deliveries": len(view.by_type["delivery"]),
                  "requests": len(view.by_type["request"])}
        for name, count in plan["minimum"].items():
            if counts[name] < count:
                reasons.append(f"{counts[name]} {name}, at least {count} are needed")
        unread = [id for _, id in view.acked() if id not in view.finals] if plan.get("read_back", True) else []
        if unread:
            reasons.append(f"{len(unread)} confirmed jobs were not read back, such as {unread[0]}")
    return reasons


if __name__ == "__main__":
    found = violations(load(sys.argv[1]))
    for kind, text in found:
        print(f"{kind}: {text}")
    print(json.dumps(Counter(kind for kind, _ in found)))
    sys.exit(bool(found))
