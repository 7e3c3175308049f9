"""After the faults: everything is worked off, and everything the server knows is read back into the record."""

import random
import time

import content
import wire
from record import now


def counts(client):
    """Jobs by state, over all queues."""
    total = {"scheduled": 0, "ready": 0, "running": 0, "dead": 0, "done": 0}
    for queue in client.call("GET", "/v1/queues").json()["queues"]:
        for state in total:
            total[state] += queue[state]
    return total


def wait_drained(client, seconds, ignore=()):
    """Whether nothing is scheduled, ready or running any more. `seconds` is only a bound: it ends as soon as it is so."""
    until = now() + seconds
    while now() < until:
        queues = client.call("GET", "/v1/queues").json()["queues"]
        if not any(q["scheduled"] + q["ready"] + q["running"] for q in queues if q["name"] not in ignore):
            return True
        time.sleep(0.1)
    return False


def read_back(client, record, drained=False, results=1000, seed=0, bodies=True):
    """Every job there is, and every job that was confirmed, as `final`; results of some; the audit. `bodies`: with content."""
    found = {}
    for state in ("scheduled", "ready", "running", "dead", "done"):
        cursor = ""
        while cursor is not None:
            answer = client.call("GET", f"/v1/jobs?state={state}&limit={200 if bodies else 1000}" + (f"&cursor={cursor}" if cursor else ""))
            fields, _ = wire.raw_object(answer.body.decode())
            for item in wire.raw_items(fields["jobs"][1]):
                found[item["id"][0]] = item
            cursor = fields["next"][0]
    label_of = {e["id"]: e["label"] for e in record.of("enqueue", "lease") if e["id"] and e.get("label")}
    for id, item in found.items():
        _final(client if bodies else None, record, id, item, label_of, drained)
    acked = {e["id"] for e in record.of("enqueue") if e["verdict"] == "acked"}
    for id in acked - found.keys():
        answer = client.call("GET", f"/v1/jobs/{id}")
        if answer.status == 404:
            record.add("final", id=id, label=label_of.get(id), state="absent", attempts=None)
        elif answer.status == 200:
            _final(client, record, id, wire.raw_object(answer.body.decode())[0], label_of, drained)
    done = [id for id, item in found.items() if item["state"][0] == "done"]
    for id in random.Random(seed).sample(done, min(results, len(done))):
        fields, _ = wire.raw_object(client.call("GET", f"/v1/jobs/{id}/result").body.decode())
        body = content.returned(fields, "result")
        record.add("result", id=id, state=fields["state"][0], sha=content.digest(body or b""),
                   content_type=fields["result_content_type"][0] if "result_content_type" in fields else None)
    record.add("audit", document=client.call("GET", "/v1/audit").json(), complete=drained)


def _final(client, record, id, item, label_of, drained):
    state = item["state"][0]
    more = {}
    if state != "done" and client:
        # A list need not have bodies, the job itself has.
        answer = client.call("GET", f"/v1/jobs/{id}")
        if answer.status == 200:
            item = wire.raw_object(answer.body.decode())[0]
            state = item["state"][0]
    if state != "done" and client:
        more = content.seen(item)
        more.pop("body")
    label = more.pop("label", None) or label_of.get(id)
    record.add("final", id=id, label=label, state=state, attempts=item["attempts"][0] if "attempts" in item else None,
               reason=item["dead_reason"][0] if "dead_reason" in item else None, drained=drained, **more)
