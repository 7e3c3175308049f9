"""What a scenario is given: a folder, a record, servers that end with it, and watchers of memory and running jobs."""

import os
import threading
import time

import wire
from record import Record, now
from server import Server


class Context:
    def __init__(self, name, bide, folder, seed, minutes=0):
        self.name, self.bide, self.seed, self.minutes = name, bide, seed, minutes
        self.folder = os.path.join(folder, name)
        self.kept = os.path.join(self.folder, "kept")  # Bodies that are not what they should be.
        os.makedirs(self.kept)
        self.record = Record(os.path.join(self.folder, "history.jsonl"))
        self.skipped = None  # Why the scenario could not be run.
        self.notes = []      # Figures, printed with the verdict.
        self._ends = []

    @property
    def long(self):
        return self.minutes > 0

    def plan(self, faults=None, minimum=None, read_back=True):
        """Below this the run proves nothing."""
        self.record.add("plan", faults=faults or {}, minimum=minimum or {}, read_back=read_back)

    def server(self, **options):
        name = options.pop("folder", "server")
        server = Server(self.bide, os.path.join(self.folder, name), self.record, **options)
        self.at_end(server.end)
        return server

    def at_end(self, function):
        self._ends.append(function)

    def end(self):
        for function in reversed(self._ends):
            function()
        self.record.close()

    def note(self, text):
        self.notes.append(text)

    def check(self, name, ok, text):
        self.record.add("check", name=name, ok=bool(ok), text=text)


class Watch(threading.Thread):
    """Samples a server: how many jobs run in a queue, and how much memory it takes."""

    def __init__(self, context, server, queue=None, memory_limit=None, every=0.05):
        super().__init__(daemon=True)
        self.context, self.server, self.queue, self.memory_limit, self.every = context, server, queue, memory_limit, every
        self.baseline = server.anonymous_bytes()
        self.worst = 0
        self.running = self.most = 0  # As last seen, and ever.
        self.stopping = threading.Event()
        context.at_end(self.stop)

    def run(self):
        client = self.server.client(30, unix=True)
        while not self.stopping.is_set():
            if self.memory_limit is not None:
                anon = self.server.anonymous_bytes()
                if anon > self.worst:
                    self.worst = anon
                    self.context.record.add("memory", anon=anon, limit=self.memory_limit, baseline=self.baseline)
            if self.queue:
                t0 = now()
                try:
                    answer = client.call("GET", f"/v1/queues/{self.queue}")
                    if answer.status == 200:
                        self.running = answer.json()["running"]
                        self.most = max(self.most, self.running)
                        self.context.record.add("running", queue=self.queue, running=self.running, t0=t0)
                except wire.Cut:
                    pass
            self.stopping.wait(self.every)
        client.drop()

    def stop(self):
        self.stopping.set()
        if self.is_alive():
            self.join(40)


def list_path(client, more=""):
    """The path of a list with bodies, as far as the server's own description says how to ask for them."""
    described = client.call("GET", "/v1/openapi.json").json()["paths"]["/v1/jobs"]["get"]["parameters"]
    bodies = any(each.get("name") == "bodies" for each in described)
    return "/v1/jobs?limit=1000" + ("&bodies=true" if bodies else "") + more


def in_threads(functions):
    """Runs all of them at once and waits for all; the first exception is raised again."""
    errors = []

    def call(function):
        try:
            function()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(function,), daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def wait_until(condition, seconds, what, every=0.02):
    """Waits for something that must come; `seconds` is far more than it takes."""
    until = now() + seconds
    while now() < until:
        if value := condition():
            return value
        time.sleep(every)
    raise TimeoutError(f"{what}: not within {seconds} s")
