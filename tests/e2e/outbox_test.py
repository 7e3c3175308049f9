"""An outbox in front of a server and of RabbitMQ: programs are killed and brokers are away, and every job that was accepted
arrives."""

import json
import os
import threading
import time
import unittest

import command
import move_test
import rabbitmq_node
import running_server

KILLS = 5
LEAST_LOAD = 200


class OutboxTest(command.CommandTest):
    def serve(self, url):
        server = running_server.RunningServer(command.BIDE, self.folder, "--url", url).start()
        self.addCleanup(server.end)
        return server

    def ids_in(self, url):
        found, cursor = set(), None
        while True:
            page = self.bide_json("job", "list", "--limit", "1000", "--url", url, *(["--cursor", cursor] if cursor else []))
            found |= {job["id"] for job in page["jobs"]}
            cursor = page.get("next")
            if not cursor:
                return found

    def status(self, url):
        code, out, err = self.run_bide("outbox", "status", "--url", url, "--json")
        self.assertIn(code, (0, 1), err)
        return code, json.loads(out)

    def test_jobs_wait_for_their_broker(self):
        port = running_server.free_port()
        url = f"http://127.0.0.1:{port}?outbox=./outbox"
        accepted = {self.bide_json("enqueue", "mail", str(number), "--url", url)["id"] for number in range(3)}
        code, status = self.status(url)
        self.assertEqual((code, status["waiting"], status["dead"]), (1, 3, 0), status)
        self.assertTrue(status["problem"] or not status["reached"], status)
        code, out, _ = self.run_bide("doctor", "--url", url)
        self.assertEqual(code, 1, out)
        self.assertIn("3 jobs wait in the outbox", out)
        self.assert_fails(75, "still in the outbox", "outbox", "drain", "--timeout", "1s", "--url", url)
        server = running_server.RunningServer(command.BIDE, self.folder, "--url", "bide:./served")
        server.port = port
        server.start()
        self.addCleanup(server.end)
        self.bide("outbox", "drain", "--timeout", "60s", "--url", url)
        self.assertEqual(self.ids_in(f"http://127.0.0.1:{port}"), accepted)
        self.assertEqual(self.status(url)[0], 0)

    def test_mistakes_are_told(self):
        self.bide("enqueue", "a", "--url", "bide:./data")
        self.assert_fails(64, "names no outbox", "outbox", "status", "--url", "bide:./data")
        self.assert_fails(78, "needs none", "enqueue", "a", "--url", "bide:./data?outbox=./outbox")
        self.bide("enqueue", "a", "--url", "http://127.0.0.1:1?outbox=./outbox")
        self.assert_fails(78, "belongs to", "enqueue", "a", "--url", "http://127.0.0.1:2?outbox=./outbox")

    @unittest.skipUnless(rabbitmq_node.is_installed(), "rabbitmq-server is not installed")
    def test_a_program_is_killed_again_and_again(self):
        node = rabbitmq_node.RabbitmqNode()
        self.addCleanup(node.stop)
        broker = f"{node.url}?prefix=outbox"
        url = f"{broker}&outbox=./outbox"
        server = self.serve(url)
        accepted, mutex, over = set(), threading.Lock(), threading.Event()

        def produce(number):
            while not over.is_set():
                try:
                    answer = move_test.call(server, "POST", "/v1/jobs",
                                            [{"kind": "work", "queue": "load", "body": number}] * 5)
                    with mutex:
                        accepted.update(result["id"] for result in answer["results"])
                except (OSError, RuntimeError, ValueError):
                    time.sleep(0.02)

        producers = [threading.Thread(target=produce, args=(number,)) for number in range(3)]
        for producer in producers:
            producer.start()
        for _ in range(KILLS):
            time.sleep(0.7)
            server.kill()
            server.start()
        time.sleep(0.5)
        over.set()
        for producer in producers:
            producer.join()
        server.kill()
        self.assertGreater(len(accepted), LEAST_LOAD)
        self.bide("outbox", "drain", "--timeout", "100s", "--url", url)
        self.assertEqual(self.status(url)[1]["dead"], 0)
        self.bide("move", "--from", broker, "--to", "bide:./arrived", "--queue", "load")
        arrived = self.ids_in("bide:./arrived")
        self.assertEqual(accepted - arrived, set(), "lost")


if __name__ == "__main__":
    command.main()
