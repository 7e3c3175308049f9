"""A worker dies with its leases before a large backlog, then the server is killed: nobody is charged for what was not handed out."""

import random
import time

from content import Job
from context import Watch, wait_until
from producer import enqueue
from readback import read_back
from record import now
from worker import Settlement, lease, settle

QUEUE = "backlog"
LEASE_MS = 1500


def run(context):
    backlog = 200_000 if context.long else 30_000
    context.plan(faults={"kill": 1, "worker died": 1}, minimum={"acked": backlog, "leases": 16})
    server = context.server(limits={"held_bytes": '"512MiB"'}).start()
    fill(context, server, backlog)
    watch = Watch(context, server, queue=QUEUE, every=0.02)
    watch.start()

    living, dying = server.client(), server.client()
    take(context, living, "living", 8)
    assert lease(dying, context.record, "dying", [QUEUE], 8, 5000, LEASE_MS)
    dying.drop()
    died = now()
    context.record.add("fault", name="worker died", t0=died)

    # The other goes on at its pace, past the moment at which the leases of the dead one are over.
    # A server that takes more than anybody asks for is killed while it has it.
    while now() < died + LEASE_MS / 1000 + 1 and watch.running < 500:
        take(context, living, "living", 8)
        time.sleep(0.03)
    server.kill()
    living.drop()
    server.start()
    living = server.client()
    wait_until(lambda: take(context, living, "after", 8), 60, "leases after the restart")
    # Whatever was running at the kill has come to an end when nothing runs any more.
    wait_until(lambda: living.call("GET", f"/v1/queues/{QUEUE}").json()["running"] == 0, 60, "the end of old leases")
    read_back(living, context.record, bodies=False, results=0)


def fill(context, server, backlog):
    client = server.client()
    rng = random.Random(context.seed)
    for begin in range(0, backlog, 5000):
        jobs = [Job(context.seed, f"b{n}", QUEUE, size=20, form="body_text", retry="none", own_id=False)
                for n in range(begin, begin + 5000)]
        enqueue(client, context.record, jobs, "ndjson", rng=rng)
    client.drop()


def take(context, client, name, count):
    """Takes leases and settles all of them. Returns how many."""
    leases = lease(client, context.record, name, [QUEUE], count, 1000, LEASE_MS)
    if leases:
        settle(client, context.record, [Settlement(each, "done", context.seed) for each in leases])
    return len(leases)
