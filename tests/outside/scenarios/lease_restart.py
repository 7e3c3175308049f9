"""Leases keep their length over a restart of the server, by SIGTERM and by SIGKILL, also those extended afterwards."""

import time

from content import Job
from exec_worker import ExecWorker
from producer import enqueue
from readback import read_back, wait_drained
from record import now
from worker import Settlement, Worker, extend, lease, settle

LEASE_MS = 40_000
PROGRAM_LEASE_MS = 60_000  # So that a worker extends it for the first time more than 15 s after the restart.


def run(context):
    context.plan(faults={"term": 1, "kill": 1, "within the lease": 1}, minimum={"acked": 12, "leases": 8, "runs": 1})
    server = context.server().start()
    client = server.client()
    jobs = [Job(context.seed, f"l{n}", "lasting", retry="fixed(100ms,x4)", size=50) for n in range(8)]
    enqueue(client, context.record, jobs, "array")
    slow = [Job(context.seed, f"x{n}", "programs", retry="fixed(100ms,x4)", size=50) for n in range(4)]
    enqueue(client, context.record, slow, "array")

    program = ExecWorker(context, server.http_url(), ["programs"], "program", lease_ms=PROGRAM_LEASE_MS, concurrency=4,
                         seconds=24)
    program.start()
    program.wait_runs(4)
    held = lease(client, context.record, "holder", ["lasting"], 8, 5000, LEASE_MS)
    server.terminate()
    server.start()
    held[:2] = extend(client, context.record, held[:2])
    server.kill()
    server.start()
    held[2:4] = extend(client, context.record, held[2:4])

    # Others ask all the time: what they are given before the leases are over is given too early.
    other = Worker(server.client(), context.record, context.seed, "other", ["lasting"], lease_ms=2000, actions=("done",))
    another = ExecWorker(context, server.http_url(), ["programs"], "another", lease_ms=PROGRAM_LEASE_MS, concurrency=4,
                         seconds=0)
    other.start()
    another.start()
    # In small form not to the end: cut to 15 s is what it has been.
    until = held[0]["t0"] + LEASE_MS / 1000 - (5 if context.long else 15)
    while now() < until:
        time.sleep(0.2)
    verdicts = settle(client, context.record, [Settlement(each, "done", context.seed) for each in held])
    if now() < held[0]["t0"] + LEASE_MS / 1000:  # Not on a machine on which all of this took longer than the lease.
        context.record.add("fault", name="within the lease")
        context.check("lease kept", verdicts == ["accepted"] * 8, f"settling within the lease's time: {verdicts}")
    wait_drained(client, 120)
    other.stopping.set()
    other.join()
    another.stop()
    program.stop()
    read_back(client, context.record, drained=True)

