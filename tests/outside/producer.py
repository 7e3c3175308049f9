"""Enqueuing in every form and framing, and what is known of each job afterwards: acked, refused, or unknown."""

import json
import random
import threading
import time

import wire
from content import Job
from record import now

FORMS = ("single", "single", "array", "jobs", "ndjson", "pipelined")
UNCERTAIN = (500, 502, 504)  # All others that are not a success say that nothing was done.


def verdict(status):
    if status in (200, 201):
        return "acked"
    return "unknown" if status in UNCERTAIN else "refused"


def enqueue(client, record, jobs, form="single", framing="length", key=None, rng=None, innocent=False, apart=0):
    """Sends the jobs as one request (pipelined: as one each, in one go). Returns the events."""
    t0 = now()
    if form == "pipelined":
        return _pipelined(client, record, jobs, rng, t0)
    body, kind = _body(jobs, form)
    headers = {"Content-Type": kind}
    if key:
        headers["Idempotency-Key"] = key
    try:
        answer = client.call("POST", "/v1/jobs", body, headers, framing, rng, apart)
    except wire.Cut as cut:
        if innocent:
            record.add("request", who="enqueue", status=None, code=str(cut), innocent=True, t0=t0)
        return [_event(record, job, t0, "unknown" if cut.sent else "refused", None, str(cut), key) for job in jobs]
    if innocent:
        record.add("request", who="enqueue", status=answer.status, code=answer.code() if answer.status >= 400 else "",
                   innocent=True, t0=t0)
    return _answered(record, jobs, form, answer, t0, key)


def _body(jobs, form):
    items = [job.item() for job in jobs]
    if form == "ndjson":
        return b"\n".join(items) + b"\n", "application/x-ndjson"
    if form == "array":
        return b"[" + b", ".join(items) + b"]", "application/json"
    if form == "jobs":
        return b'{"jobs":[' + b",".join(items) + b"]}", "application/json"
    return items[0], "application/json"


def _answered(record, jobs, form, answer, t0, key):
    code = answer.code() if answer.status >= 400 else ""
    whole = answer.status >= 400 or form == "single"
    try:
        results = _results(form, answer, len(jobs)) if not whole else [answer.json()]
    except (ValueError, KeyError, TypeError) as error:
        record.add("check", name="answer", ok=False, text=f"{form} of {len(jobs)}: {error!r} in {answer.body[:200]!r}")
        results, answer.status = [{}], 500
        whole = True
    events = []
    for index, job in enumerate(jobs):
        each = results[0] if whole else results[index]
        status = answer.status if whole else each["status"]
        if not whole and status >= 400:
            code = each["problem"]["code"]
        events.append(_event(record, job, t0, verdict(status), status, code, key, each.get("id")))
    return events


def _results(form, answer, count):
    if form == "ndjson":
        results = [json.loads(line) for line in answer.body.splitlines()]
    else:
        results = answer.json()["results"]
    if [each["index"] for each in results] != list(range(count)):
        raise ValueError(f"{len(results)} results for {count} items")
    return results


def _pipelined(client, record, jobs, rng, t0):
    requests = []
    for job in jobs:
        head, body = wire.encode("POST", "/v1/jobs", job.item(), {"Content-Type": "application/json"} | client.headers,
                                 rng.choice(wire.FRAMINGS) if rng else "length", rng)
        requests.append(head + body)
    events = []
    try:
        client.drop()
        client.connect()
        # The answers are read meanwhile: a server may stop reading while nobody takes its answers.
        sender = threading.Thread(target=_send_quietly, args=(client.connection, b"".join(requests)), daemon=True)
        sender.start()
        for job in jobs:
            answer = client.connection.read_answer()
            events += _answered(record, [job], "single", answer, t0, None)
        sender.join()
    except (wire.Cut, ValueError, IndexError, EOFError) as cut:
        sent = getattr(cut, "sent", True)
        for job in jobs[len(events):]:
            events.append(_event(record, job, t0, "unknown" if sent else "refused", None, str(cut), None))
        client.drop()
    return events


def _send_quietly(connection, data):
    try:
        connection.send(data)
    except (wire.Cut, AttributeError):
        pass


def _event(record, job, t0, what, status, code, key, id=None):
    if what == "acked" and job.id and id != job.id:
        record.add("check", name="answer", ok=False, text=f"{job.label} was sent as {job.id} and answered as {id}")
    return record.add("enqueue", t0=t0, id=id if what == "acked" else job.id, verdict=what, status=status, code=code,
                      keyed=bool(key or job.id), **job.expected())


def cancel(client, record, id):
    t0 = now()
    try:
        answer = client.call("DELETE", f"/v1/jobs/{id}")
        done = answer.status == 200 and answer.json()["cancelled"]
        verdict = "accepted" if done else "unknown" if answer.status in UNCERTAIN else "refused"
        record.add("cancel", id=id, verdict=verdict, status=answer.status, t0=t0)
    except wire.Cut as cut:
        record.add("cancel", id=id, verdict="unknown" if cut.sent else "refused", status=None, t0=t0)


class Producer(threading.Thread):
    """Enqueues until it is told to stop. What is unknown and has an id or a key of its own is sent again."""

    def __init__(self, client, record, seed, name, queues, rate=200, large=0.01, forms=FORMS, delays=True, more=None):
        super().__init__(name=name, daemon=True)
        self.client, self.record, self.seed, self.queues = client, record, seed, queues
        self.rate, self.large, self.forms, self.delays, self.more = rate, large, forms, delays, more
        self.stopping = threading.Event()
        self.number = 0

    def run(self):
        rng = random.Random(f"{self.seed}/{self.name}")
        while not self.stopping.is_set():
            form = rng.choice(self.forms)
            count = 1 if form == "single" else rng.choice((1, 2, 5, 20, 60) if self.large < 0.1 else (1, 2, 5))
            began = now()
            self.send(rng, form, count)
            self.stopping.wait(max(0, count / self.rate - (now() - began)))
        self.client.drop()

    def send(self, rng, form, count):
        key = f"{self.name}-{self.number}" if form != "pipelined" and rng.random() < 0.3 else None
        jobs = []
        for _ in range(count):
            self.number += 1
            delay = rng.choice((0, 0, 0, 50, 400, 2000)) if self.delays else 0
            jobs.append(Job(self.seed, f"{self.name}-{self.number}", rng.choice(self.queues), delay_ms=delay,
                            large=self.large, own_id=False if key else None, more=self.more))
        framing = rng.choice(wire.FRAMINGS)
        events = enqueue(self.client, self.record, jobs, form, framing, key, rng)
        if rng.random() < 0.1 and (mine := [e for e in events if e["verdict"] == "acked"]):
            cancel(self.client, self.record, rng.choice(mine)["id"])
        for _ in range(100):
            if all(event["verdict"] != "unknown" for event in events) or self.stopping.is_set():
                break
            again = [event["label"] for event in events if event["verdict"] == "unknown"]
            time.sleep(0.05)
            if key:
                events = enqueue(self.client, self.record, jobs, form, rng.choice(wire.FRAMINGS), key, rng)
            elif jobs := [job for job in jobs if job.id and job.label in again]:
                events = enqueue(self.client, self.record, jobs, "array", framing, None, rng)
            else:
                break
