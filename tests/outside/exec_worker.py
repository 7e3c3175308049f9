"""`bide work --exec` as a process: over http:// or on the store itself. Its program writes down what it was given."""

import json
import os
import signal
import subprocess
import sys
import time

from record import now

HERE = os.path.dirname(os.path.abspath(__file__))


class ExecWorker:
    def __init__(self, context, url, queues, name, lease_ms=15000, concurrency=2, seconds=0):
        self.context, self.url, self.queues, self.name = context, url, queues, name
        self.lease_ms, self.concurrency, self.seconds = lease_ms, concurrency, seconds
        self.runs = os.path.join(context.folder, f"{name}.runs")
        self.process = None
        self.began = None
        context.at_end(self.end)

    def start(self):
        command = [self.context.bide, "work", "--url", self.url, "--exec", sys.executable, "--concurrency",
                   str(self.concurrency), "--lease", f"{self.lease_ms}ms", "--json"]
        for queue in self.queues:
            command += ["--queue", queue]
        command += ["--", "-S", "-B", os.path.join(HERE, "program.py"), self.runs, str(self.seconds)]
        self.began = now()
        with open(os.path.join(self.context.folder, f"{self.name}.log"), "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.context.folder)
        return self

    def lines(self):
        """What its programs have written so far: (event, fields)."""
        try:
            with open(self.runs, encoding="utf-8") as lines:
                return [json.loads(line) for line in lines if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def wait_runs(self, count, seconds=120):
        until = now() + seconds
        while sum(line["event"] == "begin" for line in self.lines()) < count:
            if now() > until:
                raise TimeoutError(f"{self.name}: {count} runs did not begin within {seconds} s")
            time.sleep(0.05)

    def stop(self):
        """By SIGTERM: it finishes what it has."""
        self._end(signal.SIGTERM, "exit")

    def kill(self):
        """By SIGKILL: it leaves its leases, and its programs may live on."""
        self._end(signal.SIGKILL, "killed")
        self.context.record.add("fault", name="worker killed")

    def end(self):
        self._end(signal.SIGKILL, "killed")
        self._collect()

    def _end(self, number, how):
        if self.process is None:
            return
        killed = now()
        self.process.send_signal(number)
        self.process.wait()
        self.process = None
        # Killed, it may hold what its programs have not begun; and what it asked for may be on its way.
        unseen = 2 * self.concurrency if how == "killed" else 0
        self.context.record.add("worker", worker=self.name, queues=self.queues, url=self.url, lease_ms=self.lease_ms,
                                t0=self.began, t1=killed if how == "killed" else now(), ended=how, unseen=unseen)
        self.began = None

    def _collect(self):
        """Puts the programs' runs into the record."""
        ends = {line["run"]: line["t"] for line in self.lines() if line["event"] == "end"}
        for line in self.lines():
            if line["event"] == "begin":
                self.context.record.add("run", worker=self.name, id=line["id"], label=line["label"], attempt=line["attempt"],
                                        sha=line["sha"], size=line["size"], content_type=line["content_type"],
                                        kind=line["kind"], queue=line["queue"], t0=line["t"], t1=ends.get(line["run"]))
