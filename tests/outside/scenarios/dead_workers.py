"""Two workers of many die at once with all the leases they may have: others are served at once, and only what was handed out is dead."""

import threading

import wire
from content import Job
from context import Watch, in_threads, wait_until
from producer import enqueue
from record import now
from worker import Settlement, lease, settle

QUEUE = "backlog"


def run(context):
    workers, backlog, credit, lease_ms = (200, 1_000_000, 64, 15_000) if context.long else (20, 20_000, 16, 3_000)
    context.plan(faults={"workers died": 1}, minimum={"acked": backlog, "leases": 2 * credit}, read_back=False)
    server = context.server(limits={"held_bytes": '"512MiB"'}).start()
    fill(context, server, backlog)
    watch = Watch(context, server, queue=QUEUE, every=0.1)
    watch.start()

    # All of them have as many leases as they ask for, at the same time.
    crew = [Worker(context, server, f"w{n}", credit, lease_ms) for n in range(workers)]
    in_threads([each.take for each in crew])
    dying, living = crew[:2], crew[2:]
    for each in dying:
        each.client.drop()
    died = now()
    context.record.add("fault", name="workers died", t0=died)

    # The others go on at their pace past the moment at which the leases of the dead are over.
    pace = 2 if context.long else 0.2
    until = died + lease_ms / 1000 + 3

    def work(each):
        while now() < until:
            each.settle()
            each.stopping.wait(pace)
            each.take()
        each.settle()

    in_threads([lambda each=each: work(each) for each in living])
    client = server.client()
    wait_until(lambda: client.call("GET", f"/v1/queues/{QUEUE}").json()["running"] == 0, 120, "the end of old leases")
    polls = [each for each in context.record.of("poll") if each["verdict"] == "answered" and each["t0"] > died]
    held = sorted(each["held_ms"] for each in polls)
    context.note(f"{workers} workers, {backlog} jobs: of {len(held)} polls after the deaths the latest was answered after "
                 f"{held[-1]} ms, one in a hundred after {held[len(held) * 99 // 100]} ms, {watch.most} running at most, "
                 f"{workers * credit} asked for at most")
    check_dead(context, client, dying)


class Worker:
    def __init__(self, context, server, name, credit, lease_ms):
        self.context, self.name, self.credit, self.lease_ms = context, name, credit, lease_ms
        self.client, self.leases, self.stopping = server.client(120), [], threading.Event()

    def take(self):
        self.leases = lease(self.client, self.context.record, self.name, [QUEUE], self.credit, 5000, self.lease_ms)

    def settle(self):
        if self.leases:
            settle(self.client, self.context.record, [Settlement(each, "done", self.context.seed) for each in self.leases])
        self.leases = []


def fill(context, server, backlog):
    client = server.client()
    for begin in range(0, backlog, 5000):
        jobs = [Job(context.seed, f"b{n}", QUEUE, size=20, form="body_text", retry="none", own_id=False)
                for n in range(begin, begin + 5000)]
        enqueue(client, context.record, jobs, "ndjson")
    client.drop()


def check_dead(context, client, dying):
    """Dead is exactly what was handed out and not settled in time: retry is `none`."""
    record = context.record
    label_of = {each["id"]: each["label"] for each in record.of("enqueue")}
    for state in ("dead", "done"):
        cursor = ""
        while cursor is not None:
            answer = client.call("GET", f"/v1/jobs?state={state}&limit=1000" + (f"&cursor={cursor}" if cursor else ""))
            fields, _ = wire.raw_object(answer.body.decode())
            for item in wire.raw_items(fields["jobs"][1]):
                id = item["id"][0]
                record.add("final", id=id, label=label_of.get(id), state=state,
                           attempts=item["attempts"][0] if "attempts" in item else None)
            cursor = fields["next"][0]
    record.add("audit", document=client.call("GET", "/v1/audit").json(), complete=True)
    dead = {each["id"] for each in record.of("final") if each["state"] == "dead"}
    lost = {each["id"] for worker in dying for each in worker.leases}
    accepted = {each["id"] for each in record.of("settle") if each["verdict"] == "accepted"}
    leased = {each["id"] for each in record.of("lease")}
    context.check("dead set", lost <= dead, f"{len(lost - dead)} of {len(lost)} leases of dead workers did not end as dead")
    context.check("dead set", dead <= leased - accepted,
                  f"{len(dead - (leased - accepted))} jobs are dead that nobody had, or that are settled")
