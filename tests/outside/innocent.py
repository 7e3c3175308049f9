"""Somebody who does nothing wrong while others do: small requests, one after the other, none of which may be refused."""

import random
import threading

import wire
from content import Job
from producer import enqueue
from record import now

APART = 0.01  # Seconds between the head and the body of an enqueue: they come in different packets.


class Innocent(threading.Thread):
    def __init__(self, context, server, name):
        super().__init__(name=name, daemon=True)
        self.context, self.server = context, server
        self.stopping = threading.Event()
        self.calls = 0

    def run(self):
        rng = random.Random(f"{self.context.seed}/{self.name}")
        client = self.server.client(60)
        record = self.context.record
        while not self.stopping.is_set():
            self.calls += 1
            job = Job(self.context.seed, f"{self.name}-{self.calls}", "innocent", size=rng.choice((0, 100, 3000, 60_000)),
                      retry="none")
            event = enqueue(client, record, [job], "single", rng.choice(wire.FRAMINGS), rng=rng, innocent=True, apart=APART)[0]
            t0 = now()
            path = f"/v1/jobs/{event['id']}" if event["verdict"] == "acked" else "/v1/queues"
            try:
                answer = client.call("GET", path)
                record.add("request", who="look", status=answer.status, code=answer.code() if answer.status >= 400 else "",
                           innocent=True, t0=t0)
            except wire.Cut as cut:
                record.add("request", who="look", status=None, code=str(cut), innocent=True, t0=t0)
            self.stopping.wait(0.02)
        client.drop()


def surrounded(context, server, count, attack):
    """Innocents before, during and after what `attack()` does."""
    innocents = [Innocent(context, server, f"i{n}") for n in range(count)]
    for each in innocents:
        each.start()
    try:
        attack(innocents)
    finally:
        for each in innocents:
            each.stopping.set()
        for each in innocents:
            each.join()


def wait_calls(innocents, more):
    """Until each of them has made so many calls more."""
    goal = [each.calls + more for each in innocents]
    until = now() + 120
    while any(each.calls < wanted for each, wanted in zip(innocents, goal)) and now() < until:
        innocents[0].stopping.wait(0.05)
