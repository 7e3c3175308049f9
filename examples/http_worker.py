#!/usr/bin/env python3
"""A worker for a bide server, with nothing but Python's standard library.

    bide serve --local-without-token &
    curl --json '{"kind":"add","body":[1,2,3]}' http://127.0.0.1:7070/v1/jobs
    python3 http_worker.py --url http://127.0.0.1:7070

It leases jobs in batches, runs each in a thread, keeps their leases alive while they run, and settles them: with a
result, to be tried again by the job's retry policy or at a time of the handler's choice, or as dead. On SIGTERM it takes
no more jobs and finishes those it has. Copy it and put your own functions into HANDLERS.
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
import urllib.parse


class Retry(Exception):
    """Try again after so long ("10s"), whatever the job's retry policy says."""

    def __init__(self, after, error=""):
        super().__init__(error or f"again after {after}")
        self.after = after


class Dead(Exception):
    """This job can never succeed: a human should look at it."""


class Problem(Exception):
    """The server said no (RFC 9457)."""

    TEMPORARY = (429, 500, 502, 503, 504, 507)
    NOT_PERMITTED = (401, 403)

    def __init__(self, status, document):
        super().__init__(document.get("detail", f"status {status}"))
        self.status = status
        self.code = document.get("code", "")


class Server:
    """JSON there and back, on one connection for each thread."""

    def __init__(self, url, token=None):
        self._url = urllib.parse.urlsplit(url)
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._local = threading.local()

    def _connection(self, timeout):
        connection = getattr(self._local, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
            connection = self._local.connection = kind(self._url.netloc, timeout=timeout)
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        connection.timeout = timeout
        return connection

    def call(self, method, path, body=None, headers=None, timeout=60):
        """The answer; raises Problem when the server refuses, OSError when it cannot be reached."""
        connection = self._connection(timeout)
        data = None if body is None else json.dumps(body, allow_nan=False)
        try:
            connection.request(method, path, data, self._headers | (headers or {}))
            answer = connection.getresponse()
            text = answer.read()
        except (http.client.HTTPException, OSError) as error:
            connection.close()
            raise ConnectionError(f"{method} {path}: {error}") from error
        try:
            document = json.loads(text) if text else {}
        except ValueError as error:  # Something between us and the server has answered.
            if answer.status < 400:
                raise ConnectionError(f"{method} {path}: the answer is not JSON") from error
            document = {}
        if answer.status >= 400:
            raise Problem(answer.status, document)
        return document

    def close(self):
        """The connection of this thread."""
        if connection := getattr(self._local, "connection", None):
            connection.close()

    def persist(self, method, path, body):
        """Like call(), but does not give up while the server is away: settling again with the same token is harmless."""
        wait = 0.1
        while True:
            try:
                return self.call(method, path, body)
            except ConnectionError:
                pass
            except Problem as problem:
                if problem.status not in Problem.TEMPORARY:
                    raise
            time.sleep(wait)
            wait = min(wait * 2, 5)


class Job:
    """A leased job, as its handler sees it."""

    def __init__(self, lease):
        self.id = lease["id"]
        self.token = lease["token"]
        self.kind = lease["kind"]
        self.attempt = lease["attempt"]
        self.headers = lease.get("headers", {})
        self.body = lease["body"] if "body" in lease else lease.get("body_text")
        self.lease = lease
        self.effects = []  # Jobs that become real together with the outcome.
        self.refused = False  # The server did not take its outcome.
        self.stop = threading.Event()  # Set when the job was cancelled or lost: a long handler should look at it.

    def enqueue(self, kind, body, **more):
        self.effects.append({"kind": kind, "body": body} | more)

    def settlement(self, outcome, **more):
        return {"id": self.id, "token": self.token, "outcome": outcome} | more

    def failure(self, error):
        # A text that is not Unicode would be refused.
        return self.settlement("failed", error=str(error).encode("utf-8", "replace").decode())


class Worker:
    def __init__(self, server, handlers, queues, concurrency, lease_seconds, name):
        self._server = server
        self._handlers = handlers
        self._queues = queues
        self._lease_seconds = lease_seconds
        self._name = name
        self._slots = threading.Semaphore(concurrency)
        self._concurrency = concurrency
        self._pool = concurrent.futures.ThreadPoolExecutor(concurrency)
        self._finished = queue.Queue()
        self._held = {}
        self._mutex = threading.Lock()
        self._stopping = threading.Event()
        self._done = threading.Event()
        self.refused = None  # Why the server wants nothing to do with this worker.

    def stop(self, *_):
        """Takes no more jobs: also the request that waits for some is answered at once."""
        self._stopping.set()
        threading.Thread(target=self._leave).start()

    def _leave(self):
        try:
            self._server.call("POST", "/v1/leases/leave", {"poller": self._name}, timeout=10)
        except (ConnectionError, Problem) as error:
            print(f"not left: {error}", file=sys.stderr, flush=True)
        self._server.close()

    def run(self):
        helpers = [threading.Thread(target=self._keep_alive), threading.Thread(target=self._settle)]
        for helper in helpers:
            helper.start()
        while not self._stopping.is_set():
            # At least one slot must be free, or the jobs would wait here while their leases run.
            self._slots.acquire()
            free = 1
            while self._slots.acquire(blocking=False):
                free += 1
            leases = [] if self._stopping.is_set() else self._lease(free)
            for _ in range(free - len(leases)):
                self._slots.release()
            for lease in leases:
                job = Job(lease)
                with self._mutex:
                    self._held[job.id] = job
                self._pool.submit(self._attempt, job)
        self._pool.shutdown(wait=True)
        self._done.set()
        self._finished.put(None)
        for helper in helpers:
            helper.join()
        self._server.close()

    def _lease(self, count):
        request = {"queues": self._queues, "max": count, "wait": "20s", "lease_ms": int(self._lease_seconds * 1000),
                   "worker": self._name, "poller": self._name}
        try:
            return self._server.call("POST", "/v1/leases", request)["leases"]
        except (ConnectionError, Problem) as error:
            if isinstance(error, Problem) and error.status in Problem.NOT_PERMITTED:
                self.refused = str(error)
                self._stopping.set()
                return []
            print(f"no leases: {error}", file=sys.stderr, flush=True)
            self._stopping.wait(1)
            return []

    def _attempt(self, job):
        try:
            handler = self._handlers.get(job.kind)
            if handler is None:
                settlement = job.settlement("returned", after="30s", note=f"no handler for {job.kind} here")
            else:
                result = handler(job)
                settlement = job.settlement("done", effects=job.effects)
                if result is not None:
                    settlement["result"] = result
            # A result that is no JSON, or has NaN or half a character in it, is a failed attempt.
            json.dumps(settlement, allow_nan=False, ensure_ascii=False).encode()
        except Retry as again:
            settlement = job.failure(again) | {"outcome": "retry", "after": again.after}
        except Dead as dead:
            settlement = job.failure(dead) | {"outcome": "dead"}
        except Exception as error:  # Whatever a handler throws is a failed attempt, not the end of the worker.
            settlement = job.failure(f"{type(error).__name__}: {error}")
        self._finished.put((job, settlement))

    def _settle(self):
        """Settles what is finished, all there is in one request."""
        ended = False
        again = []
        while again or not ended:
            batch = again or [self._finished.get()]
            while not self._finished.empty():
                batch.append(self._finished.get())
            ended = ended or None in batch
            again = self._settle_batch([each for each in batch if each is not None])
        self._server.close()

    def _settle_batch(self, batch):
        """What has to be settled again, perhaps as something else."""
        if not batch:
            return []
        try:
            results = self._server.persist("POST", "/v1/leases/settle", {"settlements": [s for _, s in batch]})
            results = results["settlements"]
        except Problem as problem:
            if len(batch) > 1:  # One of them is to blame: the others must not suffer for it.
                return [again for each in batch for again in self._settle_batch([each])]
            results = [{"status": problem.status, "problem": {"detail": str(problem)}}]
        again = []
        for (job, settlement), result in zip(batch, results):
            status = result["status"]
            text = settlement["outcome"] if status == 200 else result["problem"]["detail"]
            if status in Problem.TEMPORARY:
                time.sleep(0.1)
                again.append((job, settlement))
                continue
            # Not lost, not forbidden: the outcome itself is not right, and the attempt has failed.
            if status in (400, 413, 422) and not job.refused:
                job.refused = True
                again.append((job, job.failure(f"the server refused the outcome: {text}")))
                continue
            print(f"{job.kind} {job.id} attempt {job.attempt}: {text}", flush=True)
            with self._mutex:
                self._held.pop(job.id, None)
            self._slots.release()
        return again

    def _keep_alive(self):
        while not self._done.wait(self._lease_seconds / 3):
            with self._mutex:
                held = list(self._held.values())
            if not held:
                continue
            try:
                leases = [{"id": job.id, "token": job.token} for job in held]
                answer = self._server.call("POST", "/v1/leases/extend", {"leases": leases}, timeout=10)
            except (ConnectionError, Problem) as error:
                print(f"not extended: {error}", file=sys.stderr, flush=True)
                continue
            for job, state in zip(held, answer["leases"]):
                if state["lost"] or state["cancel_requested"]:
                    job.stop.set()
        self._server.close()


def add(job):
    """Done, with a result."""
    if not isinstance(job.body, list):
        raise Dead("the body must be a list of numbers")
    return {"sum": sum(job.body)}


def flaky(job):
    """Fails until its third attempt; when it comes again is up to the job's retry policy."""
    if job.attempt < 3:
        raise RuntimeError(f"attempt {job.attempt} did not work")
    return {"attempts": job.attempt}


def later(job):
    """Says itself when it wants to come again."""
    if job.attempt == 1:
        raise Retry("100ms", "not yet")


def slow(job):
    """Takes longer than a lease: the worker keeps it alive. Stops when the job is cancelled."""
    if job.stop.wait(job.body["seconds"]):
        raise RuntimeError("stopped")


def order(job):
    """Enqueues two more jobs, which exist if and only if this one is done."""
    job.enqueue("add", [1, 2], queue=job.lease["queue"])
    job.enqueue("add", [3, 4], queue=job.lease["queue"])


HANDLERS = {"add": add, "flaky": flaky, "later": later, "slow": slow, "order": order}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--url", default=os.environ.get("BIDE_URL", "http://127.0.0.1:7070"))
    parser.add_argument("--queue", action="append", help="may be given several times; default: default")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--lease", type=float, default=15, help="seconds; kept alive while a job runs")
    arguments = parser.parse_args()
    worker = Worker(Server(arguments.url, os.environ.get("BIDE_TOKEN")), HANDLERS, arguments.queue or ["default"],
                    arguments.concurrency, arguments.lease, f"{socket.gethostname()}-{os.getpid()}")
    signal.signal(signal.SIGTERM, worker.stop)
    signal.signal(signal.SIGINT, worker.stop)
    worker.run()
    if worker.refused:
        print(f"http_worker.py: the server gives no jobs to this worker: {worker.refused}", file=sys.stderr)
        return os.EX_NOPERM
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
