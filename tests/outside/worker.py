"""Workers over HTTP: long polls, extensions, settlements of every kind; some are slow, some fall silent, some are stale."""

import json
import os
import random
import threading
import time

import content
import wire
from producer import UNCERTAIN
from record import now

ACTIONS = ("done",) * 12 + ("retry", "failed", "dead", "returned", "silent", "slow", "stale", "again", "effects")


def lease(client, record, worker, queues, count, wait_ms, lease_ms, keep=None):
    """One poll. Returns the leases' events; what differs from what was sent is kept in the folder `keep`."""
    request = {"queues": queues, "max": count, "wait_ms": wait_ms, "lease_ms": lease_ms, "worker": worker}
    t0 = now()
    poll = dict(worker=worker, queues=[q if isinstance(q, str) else q["name"] for q in queues], max=count,
                lease_ms=lease_ms, t0=t0)
    try:
        answer = client.json("POST", "/v1/leases", request)
        t1 = now()
        if answer.status != 200:
            code = answer.code()
            record.add("poll", verdict="unknown" if answer.status in UNCERTAIN else "refused", status=answer.status, code=code,
                       **poll)
            return []
        fields, _ = wire.raw_object(answer.body.decode())
        items = wire.raw_items(fields["leases"][1])
    except wire.Cut as cut:
        record.add("poll", verdict="unknown" if cut.sent else "refused", status=None, code=str(cut), **poll)
        return []
    except (ValueError, IndexError, KeyError) as error:
        record.add("poll", verdict="unknown", status=answer.status, code=repr(error), **poll)
        record.add("check", name="answer", ok=False, text=f"a poll's answer cannot be read: {error!r}")
        return []
    held = fields["held_ms"][0]
    number = record.add("poll", verdict="answered", count=len(items), held_ms=held, **(poll | {"t1": t1}))["n"]
    if len(items) > count:
        record.add("check", name="max", ok=False, text=f"{len(items)} leases for a poll of {count}")
    return [_lease(record, item, worker, number, held, lease_ms, t0, t1, keep) for item in items]


def _lease(record, item, worker, poll, held, lease_ms, t0, t1, keep):
    seen = content.seen(item)
    body = seen.pop("body")
    event = record.add("lease", poll=poll, worker=worker, id=item["id"][0], token=item["token"][0],
                       attempt=item["attempt"][0], age_ms=item["age_ms"][0], held_ms=held, lease_ms=lease_ms, t0=t0, t1=t1,
                       **seen)
    if keep:
        _keep(keep, event, body)
    return event


def _keep(folder, event, body):
    """A body that is visibly not its own is kept, to be looked at."""
    label = (event["label"] or "").encode()
    if event["size"] > 80 and label not in body[:200]:
        with open(os.path.join(folder, f"{event['id']}-{event['attempt']}"), "wb") as file:
            file.write(body)


def extend(client, record, leases):
    t0 = now()
    request = {"leases": [{"id": each["id"], "token": each["token"]} for each in leases]}
    try:
        answer = client.json("POST", "/v1/leases/extend", request)
        states = answer.json()["leases"] if answer.status == 200 else None
    except wire.Cut:
        states = None
    kept = []
    for index, each in enumerate(leases):
        verdict = "unknown" if states is None else "lost" if states[index]["lost"] else "kept"
        record.add("extend", id=each["id"], token=each["token"], lease_ms=each["lease_ms"], verdict=verdict, t0=t0)
        if verdict != "lost":
            kept.append(each)
    return kept


class Settlement:
    def __init__(self, lease, outcome, seed=0, after_ms=None, effects=()):
        self.lease, self.outcome, self.after_ms, self.effects = lease, outcome, after_ms, effects
        self.sha = self.content_type = None
        parts = [b'"id":"%s","token":"%s","outcome":"%s"' % tuple(
            value.encode() for value in (lease["id"], lease["token"], outcome))]
        if outcome == "done":
            raw, body, self.content_type = content.some_result(seed, f"{lease['id']}{lease['token']}")
            parts.append(raw)
            self.sha = content.digest(body)
        if outcome in ("failed", "retry", "dead"):
            parts.append(b'"error":' + json.dumps(f"attempt {lease['attempt']} did not work").encode())
        if after_ms is not None:
            parts.append(b'"after_ms":%d' % after_ms)
        if effects:
            parts.append(b'"effects":[' + b",".join(job.item() for job in effects) + b"]")
        self.raw = b"{" + b",".join(parts) + b"}"


def settle(client, record, settlements, framing="length", rng=None):
    """Settles in one request. Returns the verdicts; what the server never saw, or had no room for, is `unsent`."""
    t0 = now()
    body = b'{"settlements":[' + b",".join(each.raw for each in settlements) + b"]}"
    results, status, code = None, None, ""
    try:
        answer = client.call("POST", "/v1/leases/settle", body, {"Content-Type": "application/json"}, framing, rng)
        status = answer.status
        if status == 200:
            results = answer.json()["settlements"]
        else:
            code = answer.code()
            results = [{"status": status, "problem": {"code": code}}] * len(settlements)
    except wire.Cut as cut:
        results = [{"status": 500 if cut.sent else 0, "problem": {"code": str(cut)}}] * len(settlements)
    verdicts = []
    for each, result in zip(settlements, results):
        status = result["status"]
        verdict = "accepted" if status == 200 else "unknown" if status in UNCERTAIN else "refused"
        verdicts.append("unsent" if status in (0, 429, 503, 507) else verdict)
        code = "" if status == 200 else result["problem"]["code"]
        record.add("settle", id=each.lease["id"], token=each.lease["token"], outcome=each.outcome, after_ms=each.after_ms,
                   sha=each.sha, content_type=each.content_type, verdict=verdict, status=status, code=code, t0=t0)
        for job in each.effects:
            record.add("enqueue", t0=t0, id=job.id, verdict={"accepted": "acked"}.get(verdict, verdict), status=status,
                       code=code, keyed=True, **job.expected())
    return verdicts


class Worker(threading.Thread):
    """Leases and settles until told to stop; `drain` makes it settle everything as done from then on."""

    def __init__(self, client, record, seed, name, queues, count=8, lease_ms=3000, actions=ACTIONS, keep=None, wait_ms=1000):
        super().__init__(name=name, daemon=True)
        self.client, self.record, self.seed, self.queues, self.keep = client, record, seed, queues, keep
        self.count, self.lease_ms, self.actions, self.wait_ms = count, lease_ms, actions, wait_ms
        self.stopping, self.drain = threading.Event(), threading.Event()
        self.late = []  # (when, lease): leases that are settled after their time.
        self.effects = 0

    def run(self):
        rng = random.Random(f"{self.seed}/{self.name}")
        while not self.stopping.is_set():
            count = rng.randrange(1, self.count + 1)
            leases = lease(self.client, self.record, self.name, self.queues, count, self.wait_ms, self.lease_ms, self.keep)
            if not leases:
                self.stopping.wait(0.02)
            self.work(rng, leases)
            self.settle_late(rng)
        self.client.drop()

    def work(self, rng, leases):
        settlements, slow = [], []
        for each in leases:
            action = "done" if self.drain.is_set() else rng.choice(self.actions)
            if action == "silent":
                continue
            if action == "stale":
                self.late.append((now() + self.lease_ms / 1000 * rng.uniform(0.9, 1.6), each))
            elif action == "slow":
                slow.append(each)
            else:
                settlements += self.settlements(rng, each, action)
        if settlements:
            self.settle(rng, settlements)
        for _ in range(rng.randrange(1, 4) if slow else 0):
            self.stopping.wait(self.lease_ms / 1000 * rng.uniform(0.1, 0.5))
            slow = extend(self.client, self.record, slow)
        if slow:
            self.settle(rng, [Settlement(each, "done", self.seed) for each in slow])

    def settlements(self, rng, each, action):
        if action == "effects":
            self.effects += 1
            label = f"{self.name}-e{self.effects}"
            return [Settlement(each, "done", self.seed,
                               effects=[content.Job(self.seed, label, each["queue"], own_id=True, large=0)])]
        if action == "again":  # The same settlement twice in a row.
            return [Settlement(each, "done", self.seed)] * 2
        after = rng.choice((0, 100, 700)) if action in ("retry", "returned") else None
        return [Settlement(each, action, self.seed, after_ms=after)]

    def settle(self, rng, settlements):
        for _ in range(200):
            verdicts = settle(self.client, self.record, settlements, rng.choice(wire.FRAMINGS), rng)
            settlements = [each for each, verdict in zip(settlements, verdicts) if verdict in ("unknown", "unsent")]
            if not settlements or self.stopping.is_set() or rng.random() < 0.05:
                break
            time.sleep(0.05)

    def settle_late(self, rng):
        due = [each for when, each in self.late if when <= now()]
        self.late = [(when, each) for when, each in self.late if when > now()]
        if due:
            settle(self.client, self.record, [Settlement(each, "done", self.seed) for each in due])
