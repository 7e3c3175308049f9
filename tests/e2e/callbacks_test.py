"""Callbacks of a real server to examples/callback_receiver.py, which checks their signature with Python's hmac."""

import http.client
import http.server
import json
import os
import subprocess
import sys
import threading
import time

import command
import running_server

RECEIVER = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "examples", "callback_receiver.py"))
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class CallbacksTest(command.CommandTest):
    def setUp(self):
        super().setUp()
        with open(f"{self.folder}/bide.toml", "w", encoding="utf-8") as file:
            file.write('[callbacks]\npolicy = "public-only"\nallow = ["127.0.0.1:*"]\n'
                       f'secrets = ["{SECRET}"]\n')
        os.chmod(f"{self.folder}/bide.toml", 0o600)
        self.server = running_server.RunningServer(command.BIDE, self.folder, "--config", "bide.toml").start()
        self.addCleanup(self.server.end)

    def start_receiver(self, secret=SECRET):
        port = running_server.free_port()
        receiver = subprocess.Popen([sys.executable, "-B", RECEIVER, "--port", str(port), "--server", self.server.url],
                                    env={"BIDE_WEBHOOK_SECRET": secret}, stdout=subprocess.PIPE)
        self.addCleanup(receiver.stdout.close)
        self.addCleanup(receiver.wait)
        self.addCleanup(receiver.kill)
        self.assertIn(b"listening", receiver.stdout.readline())
        return f"http://127.0.0.1:{port}"

    def ask(self, method, path, body=None, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=90)
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"content-type": "application/json"} | dict(headers))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text)

    def enqueue(self, **job):
        status, answer = self.ask("POST", "/v1/jobs", {"kind": "greet", "body": {"to": "Ann"}} | job)
        self.assertEqual(status, 201, answer)
        return answer["id"]

    def result(self, job):
        return self.ask("GET", f"/v1/jobs/{job}/result?wait=60s")

    def deliveries(self, job):
        return self.ask("GET", f"/v1/callbacks?job={job}")[1]["deliveries"]

    def test_a_signed_delivery_is_done_with_the_answer_as_its_result(self):
        job = self.enqueue(callback=self.start_receiver() + "/hook?token=s3cr3t")
        status, answer = self.result(job)
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["result"], {"bytes": len('{"to": "Ann"}')})
        delivery, = self.deliveries(job)
        self.assertEqual((delivery["outcome"], delivery["status"]), ("done", 200))
        self.assertTrue(delivery["url"].endswith("/hook?***"), delivery)

    def test_a_wrong_secret_is_refused_by_the_receiver_and_the_delivery_can_be_replayed(self):
        job = self.enqueue(callback=self.start_receiver("whsec_" + "A" * 32), retry="none")
        self.result(job)
        delivery, = self.deliveries(job)
        self.assertEqual((delivery["outcome"], delivery["status"]), ("failed", 401))
        status, answer = self.ask("POST", f"/v1/callbacks/{delivery['id']}/replay")
        self.assertEqual((status, answer), (200, {"id": job, "how": "replayed"}))
        self.result(job)
        self.assertEqual(len(self.deliveries(job)), 2)

    def test_a_receiver_settles_later_with_the_lease_it_was_given(self):
        job = self.enqueue(callback=self.start_receiver() + "/later")
        status, answer = self.result(job)
        self.assertEqual(status, 200, answer)
        self.assertTrue(answer["result"]["late"], answer)
        # A receiver can settle before its own answer has arrived; the delivery is listed when that has.
        deadline = time.monotonic() + 60
        while not (deliveries := self.deliveries(job)) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual([each["outcome"] for each in deliveries], ["accepted"])

    def test_the_credential_of_a_delivery_is_good_for_its_lease_and_nothing_else(self):
        seen = []
        received = threading.Event()

        class Accepting(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                seen.append(dict(self.headers))
                self.send_response(202)
                self.send_header("content-length", "0")
                self.end_headers()
                received.set()

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Accepting) as receiver:
            threading.Thread(target=receiver.serve_forever, daemon=True).start()
            job = self.enqueue(callback=f"http://127.0.0.1:{receiver.server_port}/")
            self.assertTrue(received.wait(60))
            receiver.shutdown()
        self.assertEqual(seen[0]["via"], "1.1 bide")
        credential = {"authorization": "Bearer " + seen[0]["bide-settle-token"]}
        lease = {"id": job, "token": seen[0]["bide-lease-token"]}
        self.assertEqual(self.ask("GET", "/v1/queues", headers=credential)[0], 403)
        self.assertEqual(self.ask("POST", "/v1/leases", {"queues": ["default"]}, credential)[0], 403)
        self.assertEqual(self.ask("POST", "/v1/jobs", {"kind": "greet"}, credential)[0], 403)
        self.assertEqual(self.ask("POST", "/v1/leases/extend", {"leases": [lease | {"token": "1"}]}, credential)[0], 403)
        self.assertEqual(self.ask("POST", "/v1/leases/extend", {"leases": [lease]}, credential)[0], 200)

        def settle(**more):
            answer = self.ask("POST", "/v1/leases/settle", {"settlements": [lease | {"outcome": "done"} | more]}, credential)
            return answer[1]["settlements"][0]["status"]

        self.assertEqual(settle(id="0190d6c0-8a5e-7f2a-9d0e-5b8a52f6f0c1"), 403)
        self.assertEqual(settle(effects=[{"kind": "greet"}]), 403)
        # The key outlives the server.
        self.assertEqual(self.server.stop(), 0)
        self.server.start()
        self.assertEqual(settle(result={"made": 1}), 200)
        self.assertEqual(self.result(job)[1]["result"], {"made": 1})

    def test_the_server_does_not_deliver_to_itself(self):
        status, answer = self.ask("POST", "/v1/jobs", {
            "kind": "greet", "callback": f"http://127.0.0.1:{self.server.port}/v1/jobs", "body": {"kind": "evil"}})
        self.assertEqual((status, answer["code"]), (422, "callback_address_blocked"))
        self.assertIn("own listener", answer["detail"])
        self.assertEqual(self.ask("GET", "/v1/jobs?kind=evil")[1]["jobs"], [])

    def test_the_command_line_leaves_the_queue_of_a_callback_to_the_server(self):
        header = "bide-callback=" + self.start_receiver() + "/hook"
        made = subprocess.run([command.BIDE, "enqueue", "greet", "--header", header, "--url", self.server.url],
                              capture_output=True, check=False, cwd=self.folder)
        self.assertEqual(made.returncode, 0, made.stderr)
        job = made.stdout.decode().strip()
        self.assertEqual(self.result(job)[0], 200)
        self.assertEqual(self.deliveries(job)[0]["queue"], "callbacks")

    def test_who_asked_for_it_is_told_when_a_worker_is_done(self):
        receiver = self.start_receiver()
        job = self.enqueue(queue="images", on_done=receiver + "/done", reply_queue="replies")
        status, answer = self.ask("POST", "/v1/leases", {"queues": ["images"], "wait": "30s"})
        self.assertEqual(status, 200, answer)
        lease, = answer["leases"]
        self.assertEqual(lease["id"], job)
        status, answer = self.ask("POST", "/v1/leases/settle", {"settlements": [
            {"id": job, "token": lease["token"], "outcome": "done", "result": {"width": 640}}]})
        self.assertEqual(answer["settlements"][0]["status"], 200, answer)
        reply, = self.ask("POST", "/v1/leases", {"queues": ["replies"], "wait": "30s"})[1]["leases"]
        self.assertEqual((reply["kind"], reply["body"]), ("greet.result", {"width": 640}))
        page = self.ask("GET", "/v1/jobs?kind=bide.on_done")[1]
        told, = page["jobs"]
        self.assertEqual(self.result(told["id"])[0], 200)
        self.assertEqual(self.deliveries(told["id"])[0]["outcome"], "done")

    def test_an_address_that_is_not_allowed_is_refused_at_once(self):
        for field in ("callback", "on_done"):
            for url in ("ftp://example.org/", "file:///etc/passwd", "http://127.2/", "http://[::1]/", "http://2130706434/",
                        "http://[::ffff:10.0.0.1]/", "http://169.254.169.254/", "http://ann:hunter2@example.org/"):
                status, answer = self.ask("POST", "/v1/jobs", {"kind": "greet", field: url})
                self.assertEqual((status, answer["code"]), (422, "callback_address_blocked"), url)
                self.assertIn("rule: ", answer["detail"])
                self.assertNotIn("hunter2", json.dumps(answer))
        status, answer = self.ask("POST", "/v1/jobs", {"kind": "greet", "queue": "mail", "callback": "https://example.org/"})
        self.assertEqual((status, answer["code"]), (422, "invalid_callback"))

    def test_no_secret_is_logged(self):
        self.result(self.enqueue(callback=self.start_receiver() + "/hook?token=s3cr3t"))
        self.assertEqual(self.server.stop(), 0)
        with open(f"{self.folder}/server.log", encoding="utf-8") as file:
            log = file.read()
        self.assertNotIn(SECRET.removeprefix("whsec_"), log)
        self.assertNotIn("s3cr3t", log)


if __name__ == "__main__":
    command.main()
