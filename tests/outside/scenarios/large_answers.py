"""Clients ask for large answers and do not read them: the limit of bytes holds, and others are not refused."""

import random

import content
import wire
from content import Job
from context import Watch, list_path
from innocent import surrounded, wait_calls
from producer import enqueue
from readback import read_back
from record import now

MIB = 2**20


def run(context):
    context.plan(faults={"not read": 1}, minimum={"acked": 60, "requests": 40})
    held = 64 * MIB
    server = context.server(limits={"held_bytes": held, "body_bytes": held // 4}).start()
    client = server.client()
    few = [Job(context.seed, f"f{n}", "few", size=10 * MIB, form="body_base64", own_id=True) for n in range(2)]
    for job in few:
        enqueue(client, context.record, [job])
    for begin in range(0, 60, 10):
        enqueue(client, context.record, [Job(context.seed, f"m{begin + n}", f"many{n % 2}", size=700_000, own_id=True)
                                         for n in range(10)], "ndjson")
    # Freed memory need not go back to the system: what the enqueues took is in the baseline.
    Watch(context, server, memory_limit=held + 64 * MIB, every=0.02).start()
    surrounded(context, server, 4, lambda innocents: attack(context, server, innocents, few))
    read_back(client, context.record, results=0)


def attack(context, server, innocents, few):
    wait_calls(innocents, 3)
    rng = random.Random(context.seed)
    idle = []
    client = server.client()
    lists = list_path(client), list_path(client, "&state=ready")
    client.drop()
    for number in range(120 if context.long else 40):
        job = rng.choice(few)
        path = (lists[0], f"/v1/jobs/{job.id}", lists[1], "lease")[number % 4]
        connection = wire.Connection(server.where()[0], timeout=60, receive_buffer=4096)
        if path == "lease":
            ask_leases(context, connection, number)
        else:
            connection.send(wire.encode("GET", path)[0])
        idle.append((connection, path, job))
    context.record.add("fault", name="not read")
    wait_calls(innocents, 15)
    for connection, path, job in idle:
        if path.endswith(job.id):
            read_late(context, connection, job)
        connection.close()
    wait_calls(innocents, 2)


def ask_leases(context, connection, number):
    request = b'{"queues":["many0"],"max":4096,"wait_ms":0,"lease_ms":60000,"worker":"idle"}'
    t0 = now()
    head, body = wire.encode("POST", "/v1/leases", request, {"Content-Type": "application/json"})
    connection.send(head + body)
    context.record.add("poll", verdict="unknown", worker=f"idle{number}", queues=["many0"], max=4096, lease_ms=60000, t0=t0)


def read_late(context, connection, job):
    """Who reads after all gets either all of it or the end of the connection, never something else."""
    try:
        connection.socket.settimeout(60)
        answer = connection.read_answer()
    except (wire.Cut, ValueError, IndexError):
        return
    if answer.status == 200:
        seen = content.seen(wire.raw_object(answer.body.decode())[0])
        context.check("late reader", seen["sha"] == job.sha, f"{job.label}: {seen['size']} bytes, not those that were sent")
