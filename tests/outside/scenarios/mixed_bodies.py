"""Many connections send large bodies at the same time, in every framing: each gets back its own bytes."""

import random
import threading

import wire
from content import Job
from context import in_threads
from producer import enqueue
from readback import read_back, wait_drained
from worker import Worker

MIB = 2**20


def run(context):
    exchange(context, tls=False, size=(50 if context.long else 20) * MIB)


def run_tls(context):
    """The same with records of TLS in between."""
    exchange(context, tls=True, size=(40 if context.long else 6) * MIB)


def exchange(context, tls, size):
    context.plan(minimum={"acked": 400, "leases": 400}, faults={"stop": 1})
    server = context.server(tls=tls).start()
    senders = 12 if context.long else 6
    # While the server stands still all requests pile up before it: then it finds more than it reads in one turn.
    together = threading.Barrier(senders, lambda: threading.Thread(target=server.pause, args=(0.5,)).start())
    in_threads([lambda n=n: send(context, server, f"p{n}", size, together) for n in range(senders)])
    workers = [Worker(server.client(), context.record, context.seed, f"w{n}", ["mixed"], count=60, lease_ms=60000,
                      actions=("done",), keep=context.kept, wait_ms=200) for n in range(2)]
    for worker in workers:
        worker.start()
    wait_drained(server.client(), 180)
    for worker in workers:
        worker.stopping.set()
    for worker in workers:
        worker.join()
    read_back(server.client(), context.record, drained=True, results=100)


def send(context, server, name, size, together):
    """Large requests, all at the same time: as NDJSON with a length, as most clients do, in tiny chunks, and in another form."""
    rng = random.Random(f"{context.seed}/{name}")
    forms = (("ndjson", "length", size), ("ndjson", "tiny-chunked", size // 20),
             (rng.choice(("ndjson", "array", "jobs")), rng.choice(wire.FRAMINGS), size // 8))
    client = server.client(180)
    client.connect().buffer_sends(2 * size)
    for turn, (form, framing, bytes_) in enumerate(forms):
        jobs, total = [], 0
        while total < bytes_:
            length = rng.choice((300, 6000, 30_000, 60_000, rng.randrange(200_000)))
            jobs.append(Job(context.seed, f"{name}-{turn}-{len(jobs)}", "mixed", size=length,
                            form=rng.choice(("body", "body_text")), retry="none"))
            total += length
        together.wait()
        events = enqueue(client, context.record, jobs, form, framing, rng=rng)
        while events[0]["status"] in (429, 503):  # Too much at once: nothing was done.
            threading.Event().wait(0.5)
            events = enqueue(client, context.record, jobs, form, framing, rng=rng)
        for event in events:
            if event["verdict"] != "acked":
                context.check("accepted", False, f"{event['label']} of {name} got {event['status']} {event['code']}")
                break
