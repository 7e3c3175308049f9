"""The server and `bide work` on the same data directory: whoever is killed, nothing is lost and nothing runs after its end."""

import random

from content import Job
from context import wait_until
from exec_worker import ExecWorker
from producer import Producer, enqueue
from readback import read_back, wait_drained
from worker import Worker


def run(context):
    context.plan(faults={"kill": 2, "worker killed": 2}, minimum={"acked": 100, "leases": 30, "runs": 10})
    rng = random.Random(context.seed)
    server = context.server().start()
    client = server.client()
    enqueue(client, context.record, [Job(context.seed, f"first{n}", "direct", size=500, retry="fixed(100ms,x9)")
                                     for n in range(6)], "array")
    programs = ExecWorker(context, server.url, ["direct"], "program", lease_ms=5000, concurrency=2).start()
    programs.wait_runs(2)
    producer = Producer(server.client(), context.record, context.seed, "p", ["direct", "http", "http"], rate=40, large=0,
                        forms=("single", "ndjson"))
    # Short leases and no promises of length: who owns the directory changes, and leases of a dead guest end with it.
    worker = Worker(server.client(), context.record, context.seed, "w", ["http"], lease_ms=300, actions=("done", "done", "failed"))
    producer.start()
    worker.start()
    for turn in range(2 if not context.long else 10):
        server.kill()
        wait_until(lambda: start_again(server), 60, "the server to start on shared data")
        worker.stopping.wait(rng.uniform(0.2, 1))
        programs.kill()
        programs.start()
        worker.stopping.wait(rng.uniform(0.2, 1))
    wait_until(lambda: sum(e["verdict"] == "acked" for e in context.record.of("enqueue")) >= 110, 120, "enough load", every=0.2)
    producer.stopping.set()
    producer.join()
    worker.drain.set()
    context.check("drained", wait_drained(server.client(), 120), "jobs were still waiting 120 s after the last fault")
    programs.stop()
    worker.stopping.set()
    worker.join()
    read_back(server.client(), context.record, drained=True)


def start_again(server):
    server.start()
    return True
