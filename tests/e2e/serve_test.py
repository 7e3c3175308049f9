"""bide serve: from its start to its stop."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import threading
import time

import command


class ServeTest(command.CommandTest):
    def serve(self, *words):
        """A server on a port of its own; (process, port)."""
        process = self.start("serve", "--json", "--listen", "127.0.0.1:0", *words)
        self.addCleanup(self.end, process)
        for line in process.stderr:
            said = json.loads(line)
            if said["message"] == "listening":
                return process, int(said["url"].rsplit(":", 1)[1])
        self.fail(f"the server ended with {process.wait()}")

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()

    @staticmethod
    def ask(port, method, path, body=None, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        fields = ({} if body is None else {"Content-Type": "application/json"}) | fields
        connection.request(method, path, body=None if body is None else json.dumps(body), headers=fields)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def certificate(self, name):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                        "1", "-subj", f"/CN={name}", "-keyout", f"{self.folder}/key.pem", "-out",
                        f"{self.folder}/certificate.pem"], check=True, capture_output=True)

    def shown_certificate(self, port):
        return ssl.get_server_certificate(("127.0.0.1", port))

    def test_a_job_goes_in_by_http_and_comes_out_by_the_command(self):
        _, port = self.serve("--local-without-token")
        self.assertEqual(self.ask(port, "GET", "/healthz")[0], 200)
        status, text = self.ask(port, "POST", "/v1/jobs", {"kind": "greet", "body": {"to": "Ann"}})
        self.assertEqual(status, 201, text)
        jobs = self.bide_json("job", "list")["jobs"]
        self.assertEqual([job["kind"] for job in jobs], ["greet"])
        self.assertEqual(json.loads(jobs[0]["body"]), {"to": "Ann"})

    def test_sigterm_answers_what_waits_and_ends_with_0(self):
        process, port = self.serve("--local-without-token")
        # A queue is shown while it has a job.
        self.assertEqual(self.ask(port, "POST", "/v1/jobs", {"kind": "later", "queue": "q", "delay": "1h"})[0], 201)
        waiting = socket.create_connection(("127.0.0.1", port), timeout=60)
        body = json.dumps({"queues": ["q"], "max": 1, "wait": "60s"})
        waiting.sendall(f"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        while '"workers":1' not in self.ask(port, "GET", "/v1/queues")[1]:
            time.sleep(0.01)  # Not there yet: what comes after SIGTERM is refused.
        idle = socket.create_connection(("127.0.0.1", port), timeout=60)
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertTrue(idle.recv(1000).startswith(b"HTTP/1.1 200"))
        process.send_signal(signal.SIGTERM)
        answer = b""
        while part := waiting.recv(10000):
            answer += part
        self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer)
        self.assertIn(b'"leases":[]', answer)
        waiting.close()
        self.assertEqual(idle.recv(1000), b"")
        idle.close()
        self.assertEqual(process.wait(timeout=60), 0)

    def test_without_a_token_nobody_gets_in(self):
        token = self.bide_json("token", "create", "reader", "--scope", "read")["token"]
        _, port = self.serve()
        self.assertEqual(self.ask(port, "GET", "/healthz")[0], 200)
        status, text = self.ask(port, "GET", "/v1/queues")
        self.assertEqual((status, json.loads(text)["code"]), (401, "unauthorized"))
        self.assertEqual(self.ask(port, "GET", "/v1/queues", Authorization=f"Bearer {token}")[0], 200)
        status, text = self.ask(port, "POST", "/v1/jobs", {"kind": "k"}, Authorization=f"Bearer {token}")
        self.assertEqual((status, json.loads(text)["code"]), (403, "forbidden"))

    # What nginx sends for a bare `proxy_pass http://127.0.0.1:PORT`, from a process of the given user.
    def ask_as_proxy(self, port, user):
        program = (
            "import encodings.idna, os, socket, sys\n"  # What is loaded later, another user may not read.
            f"if {user} is not None: os.setuid({user})\n"
            f"s = socket.create_connection(('127.0.0.1', {port}))\n"
            f"s.sendall(b'GET /v1/queues HTTP/1.0\\r\\nHost: 127.0.0.1:{port}\\r\\nConnection: close\\r\\n\\r\\n')\n"
            "print(s.makefile('rb').readline().decode().split()[1])\n")
        return int(subprocess.run(["python3", "-c", program], check=True, capture_output=True).stdout)

    def test_a_bare_proxy_of_another_user_is_not_this_machine(self):
        process, port = self.serve("--local-without-token")
        self.assertEqual(self.ask_as_proxy(port, None), 200)
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        self.assertEqual(self.ask_as_proxy(port, 65534), 401)
        for line in process.stderr:
            said = json.loads(line)
            if said["message"] == "refused":
                break
        self.assertEqual((said["why"], said["peer"], said["path"]), ("no token", "127.0.0.1", "/v1/queues"))

    def test_the_log_tells_who_changed_what(self):
        process, port = self.serve("--local-without-token")
        self.ask(port, "POST", "/v1/queues/mail/pause")
        for line in process.stderr:
            said = json.loads(line)
            if said["message"] == "action":
                break
        self.assertEqual((said["caller"], said["method"], said["path"], said["status"]),
                         ("local", "POST", "/v1/queues/mail/pause", 200))

    def test_plain_http_for_others_is_warned_of(self):
        self.bide("token", "create", "app", "--scope", "read")
        process = self.start("serve", "--json", "--listen", "0.0.0.0:0")
        self.addCleanup(self.end, process)
        for line in process.stderr:
            said = json.loads(line)
            if said["level"] == "warning":
                break
        self.assertIn("in the clear", said["message"])

    def test_a_token_may_be_for_some_queues_only(self):
        token = self.bide("token", "create", "app", "--scope", "read,write", "--queue", "images").strip()
        _, port = self.serve()
        fields = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.assertEqual(self.ask(port, "POST", "/v1/jobs", {"kind": "a", "queue": "images"}, **fields)[0], 201)
        self.assertEqual(self.ask(port, "POST", "/v1/jobs", {"kind": "a", "queue": "mail"}, **fields)[0], 403)
        self.assertEqual(self.ask(port, "GET", "/metrics", **fields)[0], 403)
        self.assertEqual([queue["name"] for queue in json.loads(self.ask(port, "GET", "/v1/queues", **fields)[1])["queues"]],
                         ["images"])

    def test_what_others_can_reach_needs_tokens(self):
        self.assert_fails(78, "bide token create", "serve", "--listen", "0.0.0.0:0")
        self.assert_fails(78, "bide token create", "serve", "--listen", "0.0.0.0:0", "--local-without-token")

    def test_an_address_that_is_taken_is_told_with_the_way_out(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.assert_fails(77, "--listen", "serve", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
        self.assert_fails(78, "127.0.0.1:7070", "serve", "--listen", "nowhere:1")
        self.assert_fails(78, "--listen", "serve", "--listen", "192.0.2.1:7070", "--token-file", self.token_file())

    def token_file(self):
        self.bide("token", "create", "t", "--scope", "read", "--token-file", f"{self.folder}/tokens")
        return f"{self.folder}/tokens"

    def test_a_wrong_configuration_is_told_with_its_place(self):
        with open(f"{self.folder}/bide.toml", "w", encoding="utf-8") as file:
            file.write('listen = ["127.0.0.1:0"]\nlsten = 1\n')
        self.assert_fails(78, "bide.toml:2:1", "serve", "--config", "bide.toml")
        self.assert_fails(78, "none.toml", "serve", "--config", "none.toml")

    def test_a_store_that_cannot_be_opened_is_told(self):
        with open(f"{self.folder}/file", "w", encoding="utf-8"):
            pass
        code, _, err = self.run_bide("serve", "--listen", "127.0.0.1:0", "--url", "bide:./file")
        self.assertIn(code, (73, 77), err)
        self.assert_fails(78, "TLS", "serve", "--listen", "127.0.0.1:0", "--tls-key", "key.pem")

    def test_a_unix_socket_is_a_way_in(self):
        path = f"{self.folder}/s"
        self.serve("--listen", f"unix:{path}", "--local-without-token")
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(60)
            client.connect(path)
            client.sendall(b"GET /v1/queues HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertTrue(client.recv(10000).startswith(b"HTTP/1.1 200"))
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o660)

    def test_sighup_shows_the_new_certificate(self):
        self.certificate("first")
        process, port = self.serve("--local-without-token", "--tls-certificate", "certificate.pem", "--tls-key", "key.pem")
        first = self.shown_certificate(port)
        self.certificate("second")
        process.send_signal(signal.SIGHUP)
        for line in process.stderr:
            if "read again" in json.loads(line)["message"]:
                break
        self.assertNotEqual(self.shown_certificate(port), first)

    def test_many_at_once_are_all_served(self):
        _, port = self.serve("--local-without-token")
        failed = []

        def enqueue():
            for number in range(20):
                status, text = self.ask(port, "POST", "/v1/jobs", {"kind": "k", "body": number})
                if status != 201:
                    failed.append(text)

        threads = [threading.Thread(target=enqueue) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assertEqual(self.bide_json("queue", "list")["queues"][0]["ready"], 200)


if __name__ == "__main__":
    command.main()
