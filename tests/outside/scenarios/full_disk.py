"""The disk is full: enqueues are refused with 507, what is held can be settled, and nothing that was confirmed is lost."""

import os

from content import Job
from context import wait_until
from disk import SmallDisk
from producer import enqueue
from readback import read_back, wait_drained
from worker import Settlement, Worker, lease, settle


def run(context):
    disk = SmallDisk(context.folder, 96)
    if disk.why_not:
        context.skipped = disk.why_not
        return
    context.at_end(disk.unmount)
    context.plan(faults={"disk full": 1, "kill": 1}, minimum={"acked": 150, "leases": 150})
    server = context.server(data=os.path.join(disk.path, "data"))
    server.start()
    client = server.client()
    enqueue(client, context.record, [Job(context.seed, f"before{n}", "q", large=0) for n in range(200)], "ndjson")
    held = lease(client, context.record, "holder", ["q"], 40, 1000, 120_000)
    held += lease(client, context.record, "holder", ["q"], 40, 1000, 120_000)

    disk.fill()
    statuses = [fill_up(context, client, n) for n in range(60)]
    context.record.add("fault", name="disk full")
    context.check("507", 507 in statuses, f"enqueues on a full disk were answered {sorted(set(map(str, statuses)))}")
    verdicts = settle(client, context.record, [Settlement(each, "done", context.seed) for each in held[:60]])
    context.check("settling on a full disk", verdicts == ["accepted"] * 60, f"{sorted(set(verdicts))}")
    context.check("healthz", client.call("GET", "/healthz").status == 200, "the server does not answer on a full disk")
    server.kill()
    disk.free()
    server.start()
    client = server.client()
    wait_until(lambda: fill_up(context, client, "after") == 201, 30, "enqueuing once there is room again", every=0.3)
    verdicts = settle(client, context.record, [Settlement(each, "done", context.seed) for each in held[60:]])
    context.check("settling after a full disk", verdicts == ["accepted"] * len(held[60:]), f"{sorted(set(verdicts))}")
    worker = Worker(server.client(), context.record, context.seed, "w", ["q"], count=50, lease_ms=30_000, actions=("done",))
    worker.start()
    wait_drained(client, 60)
    worker.stopping.set()
    worker.join()
    read_back(client, context.record, drained=True)


def fill_up(context, client, number):
    """One enqueue of some size; its status."""
    fill_up.number = getattr(fill_up, "number", 0) + 1
    job = Job(context.seed, f"full-{number}-{fill_up.number}", "q", size=60_000, own_id=True)
    return enqueue(client, context.record, [job])[0]["status"]
