"""`bide serve` as a service: configuration, tokens, health, metrics, logs, and what it tells systemd."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import command


class ServiceTest(command.CommandTest):
    def setUp(self):
        super().setUp()
        # As systemd does: a name in the abstract namespace.
        self.notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.notified.close)
        self.notified.bind("\0bide-service-test-" + str(os.getpid()) + "-" + self.id())
        self.notified.settimeout(60)

    def environment(self):
        name = self.notified.getsockname().decode().replace("\0", "@", 1)
        return super().environment() | {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "200000"}

    def configure(self, text):
        with open(f"{self.folder}/bide.toml", "w", encoding="utf-8") as file:
            file.write(text)

    def serve(self, *words):
        """The URL of a server that is ready."""
        self.log = open(f"{self.folder}/log", "wb")
        self.addCleanup(self.log.close)
        self.server = subprocess.Popen([command.BIDE, "serve", *words], cwd=self.folder, env=self.environment(),
                                       stdout=subprocess.DEVNULL, stderr=self.log)
        self.addCleanup(self.stop)
        ready = self.notification("READY=1")
        return next(word for word in ready.split() if word.startswith("http"))

    def stop(self):
        if self.server.poll() is None:
            self.server.kill()
        self.server.wait()

    def notification(self, wanted):
        while True:
            text = self.notified.recv(4096).decode()
            if wanted in text.split("\n"):
                return text

    def get(self, url, token=None):
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers

    def log_lines(self):
        with open(f"{self.folder}/log", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_a_service_lives_and_ends_as_systemd_wants_it(self):
        token = self.bide("token", "create", "prometheus", "--scope", "read").strip()
        self.bide("enqueue", "greet", "hello", "--queue", "mail", "--delay", "1h")
        self.configure('url = "bide:./data"\nlisten = ["127.0.0.1:0"]\n[log]\nlevel = "debug"\n')
        url = self.serve("--config", "bide.toml")
        self.notification("WATCHDOG=1")

        self.assertEqual(self.get(url + "/healthz")[0], 200)
        status, body, _ = self.get(url + "/readyz")
        self.assertEqual((status, json.loads(body)), (200, {"ready": True, "code": "ok", "pressure": "ok"}))

        status, body, headers = self.get(url + "/metrics")
        self.assertEqual((status, json.loads(body)["code"]), (401, "unauthorized"))
        self.assertIn("Bearer", headers["WWW-Authenticate"])
        status, body, headers = self.get(url + "/metrics", token)
        self.assertEqual(status, 200)
        self.assertIn('bide_queue_jobs{queue="mail",state="scheduled"} 1\n', body)
        self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        if shutil.which("promtool"):
            checked = subprocess.run(["promtool", "check", "metrics"], input=body.encode(), capture_output=True, timeout=60,
                                     check=False)
            self.assertEqual((checked.returncode, checked.stderr + checked.stdout), (0, b""))

        self.server.send_signal(signal.SIGTERM)
        self.notification("STOPPING=1")
        self.assertEqual(self.server.wait(timeout=60), 0)
        lines = self.log_lines()
        self.assertEqual((lines[0]["message"], lines[0]["url"]), ("listening", url))
        self.assertIn("stopping", [line["message"] for line in lines])
        self.assertTrue(all(line["time"].endswith("Z") and line["level"] for line in lines), lines)
        self.assertNotIn(token[5:], json.dumps(lines))

    def test_a_token_is_known_and_forgotten_while_the_server_runs(self):
        url = self.serve("--listen", "127.0.0.1:0")
        self.assertEqual(self.get(url + "/metrics")[0], 401)
        token = self.bide("token", "create", "late", "--scope", "read").strip()
        self.wait_until(lambda: self.get(url + "/metrics", token)[0] == 200)
        self.bide("token", "revoke", "late")
        self.wait_until(lambda: self.get(url + "/metrics", token)[0] != 200)
        weak = self.bide("token", "create", "weak", "--scope", "work").strip()
        self.wait_until(lambda: self.get(url + "/metrics", weak)[0] == 403)

    def test_what_is_done_over_http_is_counted(self):
        url = self.serve("--listen", "127.0.0.1:0", "--local-without-token")
        self.post(url + "/v1/jobs", {"jobs": [{"kind": "k", "queue": "mail"} for _ in range(3)]})
        lease = {"queues": ["mail"], "max": 2, "wait": "30s", "lease": "1s"}
        done, silent = self.post(url + "/v1/leases", lease)["leases"]
        settled = self.post(url + "/v1/leases/settle",
                            {"settlements": [{"id": done["id"], "token": done["token"], "outcome": "done"}]})
        self.assertEqual(settled["settled"], 1)
        # The other is never heard of again, so its job is given out a second time.
        again = []
        while silent["id"] not in again:
            again += [each["id"] for each in self.post(url + "/v1/leases", lease)["leases"]]
        body = self.get(url + "/metrics")[1]
        for line in ('bide_jobs_enqueued_total{queue="mail"} 3', 'bide_jobs_finished_total{queue="mail",outcome="done"} 1',
                     "bide_job_duration_seconds_count 1", 'bide_queue_jobs{queue="mail",state="done"} 1'):
            self.assertIn(line + "\n", body)
        self.assertRegex(body, r'(?m)^bide_duplicate_starts_total\{reason="lost"\} [1-9]')
        self.assertRegex(body, r"(?m)^bide_commit_duration_seconds_count [1-9]")
        self.assertRegex(body, r"(?m)^bide_broker_confirm_duration_seconds_count [1-9]")

    def post(self, url, value):
        request = urllib.request.Request(url, data=json.dumps(value).encode(), headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def wait_until(self, holds):
        end = time.monotonic() + 60
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.3)

    def test_too_many_failures_are_told_to_wait(self):
        url = self.serve("--listen", "127.0.0.1:0")
        answers = [self.get(url + "/metrics", "wrong") for _ in range(12)]
        self.assertEqual({status for status, _, _ in answers}, {401, 429})
        self.assertGreater(int(answers[-1][2]["Retry-After"]), 0)
        self.assertEqual(self.get(url + "/healthz")[0], 200)

    def test_this_machine_needs_no_token_when_asked_for(self):
        url = self.serve("--listen", "127.0.0.1:0", "--local-without-token")
        self.assertEqual(self.get(url + "/metrics")[0], 200)
        self.assertEqual(self.get(url + "/metrics", "wrong")[0], 401)

    def test_a_wrong_configuration_is_told_with_line_and_column(self):
        cases = (("lissten = []", "bide.toml:1:1: unknown key 'lissten'; did you mean 'listen'?"),
                 ("\n[limits]\nbody_bytes = true", "bide.toml:3:14: limits.body_bytes: expected"),
                 ("url = ", "bide.toml:1:"))
        for text, message in cases:
            self.configure(text)
            self.assert_fails(78, message, "serve", "--config", "bide.toml")
        self.assert_fails(78, "none.toml: No such file", "serve", "--config", "none.toml")

    def test_others_cannot_reach_a_server_without_tokens(self):
        self.configure('listen = ["0.0.0.0:0"]')
        self.assert_fails(78, "bide token create", "serve", "--config", "bide.toml")


if __name__ == "__main__":
    command.main()
