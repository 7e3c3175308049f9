"""Producers in every framing, workers of every kind and all faults at once; then everything is healed, drained and compared."""

from context import Watch
from exec_worker import ExecWorker
from nemesis import Nemesis, client_faults, server_faults
from producer import Producer
from proxy import Proxy
from readback import read_back, wait_drained
from receiver import Receiver
from record import now
from worker import Worker

MIB = 2**20
QUEUES = ["q0", "q1", "q2"]


def run(context):
    seconds = max(20, context.minutes * 60)
    held = 128 * MIB
    server = context.server(limits={"held_bytes": held, "body_bytes": 32 * MIB})
    receiver = Receiver(context, server)
    server.callbacks = receiver.settings()
    server.start()
    proxy = Proxy(context, server, "proxy")
    proxy.start()
    Watch(context, server, queue="q0", memory_limit=held + 256 * MIB, every=0.25).start()

    producers = make_producers(context, server, proxy, receiver)
    workers = make_workers(context, server, proxy)
    programs = ExecWorker(context, f"http+unix:{server.unix}", ["programs"], "program", lease_ms=15_000, concurrency=2)
    faults = server_faults(context, server) | client_faults(context, server) | {"worker killed": lambda rng: revive(programs)}
    context.plan(faults={name: 1 for name in ("kill", "term", "stop", "cut", "worker killed", "hang up", "bomb", "not read")},
                 minimum={"acked": 300, "leases": 300, "settled": 200, "runs": 5, "deliveries": 5})
    nemesis = Nemesis(context, faults, 1.0 if not context.long else 4.0)

    begun = now()
    programs.start()
    for each in producers + workers:
        each.start()
    proxy.harm, receiver.kind = 0.3, False
    nemesis.start()
    nemesis.stopping.wait(seconds)
    while not (nemesis.once.is_set() and proxy.cuts):
        nemesis.stopping.wait(0.2)
        if now() > begun + seconds + 240:
            break
    heal(context, server, producers, workers, proxy, receiver, nemesis)
    programs.stop()
    read_back(server.client(), context.record, drained=True, results=2000, seed=context.seed)


def make_producers(context, server, proxy, receiver):
    def make(name, client, queues=QUEUES, **more):
        return Producer(client, context.record, context.seed, name, queues, **more)

    return [make("direct", server.client()), make("proxied", client_of(server, proxy)),
            make("proxied2", client_of(server, proxy)), make("unix", server.client(unix=True)),
            make("large", server.client(), rate=2, large=0.5, forms=("single", "ndjson")),
            make("programs", server.client(), ["programs"], rate=4, forms=("single",)),
            make("told", server.client(), rate=10, large=0, more={"on_done": receiver.url}),
            make("callbacks", server.client(), ["callbacks"], rate=6, forms=("single", "array"), large=0,
                 more={"callback": receiver.url})]


def make_workers(context, server, proxy):
    def make(name, client, **more):
        return Worker(client, context.record, context.seed, name, QUEUES, keep=context.kept, **more)

    return [make("w0", server.client()), make("w1", server.client(unix=True), count=50, lease_ms=2000),
            make("w2", client_of(server, proxy)), make("w3", client_of(server, proxy), count=20, lease_ms=6000),
            make("w4", server.client(), count=2, lease_ms=1000), make("w5", server.client(), count=30, lease_ms=20_000)]


def client_of(server, proxy):
    client = server.client(20)
    client.where = proxy.where
    return client


def revive(programs):
    programs.kill()
    programs.start()


def heal(context, server, producers, workers, proxy, receiver, nemesis):
    nemesis.stopping.set()
    nemesis.join()
    if nemesis.error:
        raise nemesis.error
    proxy.harm, receiver.kind = 0.0, True
    for producer in producers:
        producer.stopping.set()
    for producer in producers:
        producer.join(60)
    for worker in workers:
        worker.drain.set()
    drained = wait_drained(server.client(), 180)
    context.check("drained", drained, "jobs were still waiting or running 180 s after everything was healed")
    for worker in workers:
        worker.stopping.set()
    for worker in workers:
        worker.join(60)
