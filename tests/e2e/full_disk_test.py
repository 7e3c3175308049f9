"""A real disk that is full, and a limit on the size of files: jobs are refused with 507, what is held is settled, the store
opens after a kill, and no signal ends the server."""

import os
import sys

import command
import running_server

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "examples"))
sys.path.insert(0, os.path.join(HERE, "..", "outside"))
import disk
import http_worker

BODY = "x" * 40_000


class FullDiskTest(command.CommandTest):
    def serve(self, bide, data):
        server = running_server.RunningServer(bide, self.folder, "--url", f"bide:{data}").start()
        self.addCleanup(server.end)
        return server

    def connect(self, server):
        api = http_worker.Server(server.url)
        self.addCleanup(api.close)
        return api

    def enqueue(self, api, body=BODY):
        """The status of it."""
        try:
            api.call("POST", "/v1/jobs", {"kind": "work", "body": body})
            return 201
        except http_worker.Problem as problem:
            return problem.status

    def enqueue_until_refused(self, api):
        accepted = 0
        while (status := self.enqueue(api)) == 201:
            accepted += 1
        self.assertEqual(status, 507)
        return accepted

    def lease(self, api, maximum):
        return api.call("POST", "/v1/leases", {"max": maximum, "wait": "10s", "lease": "10m"})["leases"]

    def settle(self, api, leases):
        for lease in leases:
            settlement = {"id": lease["id"], "token": lease["token"], "outcome": "done"}
            [answer] = api.call("POST", "/v1/leases/settle", {"settlements": [settlement]})["settlements"]
            self.assertEqual(answer["status"], 200, answer)

    def test_a_server_that_is_killed_on_a_full_disk_opens_again_and_settles(self):
        small = disk.SmallDisk(self.folder, 48)
        if small.why_not:
            self.skipTest(small.why_not)
        self.addCleanup(small.unmount)
        server = self.serve(command.BIDE, os.path.join(small.path, "data"))
        self.addCleanup(server.end)
        api = self.connect(server)
        for _ in range(20):
            self.assertEqual(self.enqueue(api), 201)
        held = self.lease(api, 10)
        self.assertEqual(len(held), 10)
        small.fill()
        self.enqueue_until_refused(api)
        self.settle(api, held[:5])
        server.kill()
        small.fill()
        server.start()
        api = self.connect(server)
        self.settle(api, held[5:])
        self.assertEqual(self.enqueue(api), 507)
        small.free()
        # The server looks for room once a second.
        while (status := self.enqueue(api)) == 507:
            pass
        self.assertEqual(status, 201)
        self.assertEqual(server.stop(), 0)

    def test_a_limit_on_the_size_of_files_does_not_end_the_server(self):
        limited = os.path.join(self.folder, "limited")
        with open(limited, "w", encoding="utf-8") as script:
            script.write(f'#!/bin/sh\nulimit -f 4096\nexec {command.BIDE} "$@"\n')
        os.chmod(limited, 0o755)
        data = os.path.join(self.folder, "data")
        server = self.serve(limited, data)
        api = self.connect(server)
        # Several times what one file may hold.
        for _ in range(400):
            self.assertEqual(self.enqueue(api), 201)
        largest = max(os.path.getsize(os.path.join(data, "journal", name)) for name in os.listdir(f"{data}/journal"))
        self.assertLessEqual(largest, 4096 * 1024)
        held = self.lease(api, 10)
        self.settle(api, held)
        server.kill()
        server.start()
        api = self.connect(server)
        self.assertEqual(self.enqueue(api), 201)
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    command.main()
