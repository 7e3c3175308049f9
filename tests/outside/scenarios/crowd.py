"""Clients that never read, slow ones and large compressed bodies at once: others are neither refused nor kept waiting for it."""

import json
import os
import subprocess
import sys
import threading

import wire
from content import Job
from context import Watch, list_path
from innocent import APART, surrounded, wait_calls
from producer import enqueue
from readback import read_back
from record import Record, now

MIB = 2**20


def run(context):
    """Once each: the crowd has no token, one of its own, and the one of those who do nothing wrong.

    The crowd takes processor time of the machine, too. How long others wait for that alone is measured with the same crowd
    at another server beside this one, right before."""
    never, slow, packed, calls = (40, 2000, 8, 150) if context.long else (40, 200, 8, 25)
    whole = 512 if context.long else 64
    context.plan(faults={"crowd of strangers": 1, "crowd with a token": 1, "crowd with the same token": 1},
                 minimum={"acked": 60, "requests": 3 * calls})
    limits = {"held_bytes": whole * MIB, "body_bytes": whole // 8 * MIB, "connections": slow + 500}
    server = context.server(tokens=True, limits=limits).start()
    other = context.server(tokens=True, limits=limits, folder="other").start()
    few = [Job(context.seed, f"f{n}", "few", size=5 * MIB, form="body_base64", own_id=True) for n in range(2)]
    many = [Job(context.seed, f"m{n}", "many", size=700_000, own_id=True) for n in range(60)]
    client = server.client()
    fill(client, context.record, few, many)
    fill(other.client(), Record(), few, many)  # Nobody asks what became of them.
    # Beside held_bytes: what the store has in its inbox and keeps warm, and jobs that are being read for an answer.
    watch = Watch(context, server, memory_limit=(whole + (128 if context.long else 64)) * MIB, every=0.05)
    watch.start()
    form = {"few": [job.id for job in few], "lists": list_path(client), "never": never, "slow": slow, "packed": packed,
            "body_bytes": whole // 8 * MIB}

    def attack(innocents):
        for name, token_of in (("strangers", lambda _: None), ("with a token", own_token),
                               ("with the same token", lambda at: at.headers["Authorization"])):
            tokens = [token_of(at) for at in (other, server)]
            quiet = latencies(context, innocents, calls)
            with Crowd(other, tokens[0], form):
                beside = latencies(context, innocents, calls)
            with Crowd(server, tokens[1], form) as crowd:
                context.record.add("fault", name=f"crowd {name}" if tokens[1] else f"crowd of {name}")
                busy = latencies(context, innocents, calls)
            after = latencies(context, innocents, 2 + calls // 5)
            p99 = [quantile(each, .99) for each in (quiet, beside, busy, after)]
            context.note(f"crowd {name}: p50 {quantile(quiet, .5):.1f} ms without it, {quantile(beside, .5):.1f} with it at another "
                         f"server, {quantile(busy, .5):.1f} with it; p99 {p99[0]:.1f}, {p99[1]:.1f}, {p99[2]:.1f}, after it "
                         f"{p99[3]:.1f}: ratio {p99[2] / p99[0]:.2f}, to the other server {p99[2] / p99[1]:.2f}, of {len(busy)} "
                         f"requests; {crowd.ended} of the crowd were ended")

    surrounded(context, server, 4, attack)
    context.note(f"at most {watch.worst / MIB:.0f} MiB of memory, {watch.baseline / MIB:.0f} at the start, held_bytes {whole} MiB")
    client.drop()  # It was idle while the server was full.
    read_back(client, context.record, results=0)


def fill(client, record, few, many):
    for job in few:
        enqueue(client, record, [job])
    for begin in range(0, len(many), 10):
        enqueue(client, record, many[begin:begin + 10], "ndjson")


def own_token(server):
    """Somebody else who may do the same."""
    token = subprocess.run([server.bide, "token", "create", "crowd", "--scope", "read,write,work", "--url", server.url],
                           check=True, capture_output=True, text=True).stdout.strip()
    client = wire.Client(server.where, 60, {"Authorization": f"Bearer {token}"})
    until = now() + 60
    while client.call("GET", "/v1/queues").status != 200 and now() < until:
        threading.Event().wait(0.1)  # The server looks at its tokens once a second.
    client.drop()
    return f"Bearer {token}"


def latencies(context, innocents, calls):
    """In milliseconds, of what they do in this time; the pause that they make within an enqueue does not count."""
    began = now()
    wait_calls(innocents, calls)
    return [(each["t1"] - each["t0"] - (APART if each["who"] == "enqueue" else 0)) * 1000
            for each in context.record.of("request") if each["innocent"] and each["t0"] >= began]


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


class Crowd:
    """See crowd_clients.py."""

    def __init__(self, server, token, form):
        self.form = form | {"address": server.where()[0], "token": token}
        self.ended = 0

    def __enter__(self):
        program = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "crowd_clients.py")
        self.process = subprocess.Popen([sys.executable, "-B", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(json.dumps(self.form) + "\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("the crowd did not begin")
        return self

    def __exit__(self, *_):
        ended = self.process.communicate()[0]
        self.ended = int(ended or 0)
