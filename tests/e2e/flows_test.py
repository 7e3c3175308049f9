"""Jobs that are edited, that are chosen by their headers, and that wait for each other, by the command line and over HTTP."""

import json
import urllib.error
import urllib.request

import command
import running_server


class HttpTest(command.CommandTest):
    def serve(self):
        server = running_server.RunningServer(command.BIDE, self.folder).start()
        self.addCleanup(server.end)
        self.url = server.url
        return ("--url", server.url)

    def call(self, method, path, body=None):
        """(status, answer)"""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


class EditTest(HttpTest):
    def enqueue(self, *words):
        return self.bide("enqueue", *words).strip()

    def dead_job(self, *words):
        job = self.enqueue(*words, "--retry", "none")
        self.bide("work", "--shell", "echo no such address >&2; exit 65", "--drain", "--quiet")
        return job

    def test_a_dead_job_is_edited_and_replayed(self):
        job = self.dead_job("mail", '{"to":"annn@example.org"}', "--header", "tenant=acme")
        self.bide("job", "edit", job, "--body", '{"to":"ann@example.org"}', "--content-type", "application/json")
        shown = self.bide_json("job", "show", job)
        self.assertEqual((shown["state"], shown["body"], shown["content_type"]),
                         ("dead", '{"to":"ann@example.org"}', "application/json"))
        self.assertEqual(shown["headers"], {"tenant": "acme"})
        self.assertIn("body", shown["note"])
        self.bide("dead", "replay", job)
        self.bide("work", "--shell", "cat", "--drain", "--quiet")
        self.assertEqual(self.bide_json("job", "show", job)["result"], '{"to":"ann@example.org"}')

    def test_what_no_flag_names_stays(self):
        job = self.enqueue("mail", "hello", "--header", "tenant=acme", "--priority", "3", "--delay", "1h")
        self.bide("job", "edit", job, "--queue", "slow", "--retry", "fixed(30s,x5)", "--time-limit", "90s")
        shown = self.bide_json("job", "show", job)
        self.assertEqual((shown["queue"], shown["retry"], shown["time_limit_ms"]), ("slow", "fixed(30s,x5)", 90000))
        self.assertEqual((shown["body"], shown["priority"], shown["headers"], shown["state"]),
                         ("hello", 3, {"tenant": "acme"}, "scheduled"))
        self.bide("job", "edit", job, "--no-headers", "--priority=-5", "--delay", "0s")
        shown = self.bide_json("job", "show", job)
        self.assertEqual((shown["headers"], shown["priority"], shown["state"]), ({}, -5, "ready"))

    def test_a_mistake_changes_nothing(self):
        job = self.enqueue("mail", "hello")
        for text, *words in [("what is to be different", ), ("--queue: invalid queue name", "--queue", "a b"),
                             ("--priority", "--priority", "101"), ("--retry", "--retry", "never"),
                             ("give one of them", "--due", "2030-01-01T00:00:00Z", "--delay", "1h"),
                             ("give one of them", "--header", "a=b", "--no-headers"),
                             ("NAME=VALUE", "--header", "a"), ("too long", "--delay", "40000d")]:
            self.assert_fails(64, text, "job", "edit", job, *words)
        self.bide("work", "--shell", "exit 0", "--drain", "--quiet")
        self.assert_fails(64, "done", "job", "edit", job, "--body", "late")
        self.assert_fails(66, "no job", "job", "edit", "018f3c1e-7d5a-7000-8000-000000000001", "--body", "late")

    def test_the_same_over_http(self):
        url = self.serve()
        job = self.bide("enqueue", "mail", "hello", "--header", "tenant=acme", *url).strip()
        self.bide("job", "edit", job, "--body", "bye", "--queue", "slow", *url)
        status, shown = self.call("GET", "/v1/jobs/" + job)
        self.assertEqual((shown["body_text"], shown["queue"], shown["headers"]), ("bye", "slow", {"tenant": "acme"}))
        status, answer = self.call("PATCH", "/v1/jobs/" + job, {"body": {"to": "ann"}, "content_type": "application/json",
                                                                 "headers": {}, "priority": 7, "delay": "1h"})
        self.assertEqual((status, answer["id"]), (200, job))
        status, shown = self.call("GET", "/v1/jobs/" + job)
        self.assertEqual((shown["body"], shown["priority"], shown["headers"], shown["state"]), ({"to": "ann"}, 7, {}, "scheduled"))
        status, answer = self.call("PATCH", "/v1/jobs/" + job, {"priority": 101})
        self.assertEqual((status, answer["code"]), (422, "invalid_priority"))
        status, answer = self.call("PATCH", "/v1/jobs/" + job, {"kind": "other"})
        self.assertEqual((status, answer["code"]), (400, "unknown_field"))

    def test_jobs_are_chosen_by_their_headers(self):
        for tenant, region in [("acme", "eu"), ("acme", "us"), ("other", "eu")]:
            self.enqueue("mail", tenant, "--header", "tenant=" + tenant, "--header", "region=" + region)
        self.enqueue("mail", "none")

        def bodies(*words):
            return sorted(job["body"] for job in self.bide_json("job", "list", *words)["jobs"])

        self.assertEqual(bodies("--header", "tenant=acme"), ["acme", "acme"])
        self.assertEqual(bodies("--header", "region=eu", "--header", "tenant=other"), ["other"])
        self.assertEqual(bodies("--header", "tenant="), [])
        counted = self.bide_json("job", "cancel", "--header", "tenant=acme", "--dry-run")
        self.assertEqual(counted["would_cancel"], 2)
        self.bide("job", "reschedule", "--header", "tenant=other", "--delay", "1h", "--yes")
        self.assertEqual(self.bide_json("job", "list", "--state", "scheduled")["jobs"][0]["headers"]["tenant"], "other")
        self.bide("job", "cancel", "--header", "tenant=acme", "--yes")
        self.assertEqual(bodies(), ["none", "other"])

    def test_the_dead_are_chosen_by_their_headers(self):
        for tenant in ["acme", "other"]:
            self.enqueue("mail", tenant, "--header", "tenant=" + tenant, "--retry", "none")
        self.bide("work", "--shell", "exit 65", "--drain", "--quiet")
        self.assertEqual(len(self.bide_json("dead", "replay", "--header", "tenant=acme")["jobs"]), 1)
        url = self.serve()
        status, answer = self.call("GET", "/v1/dead?header.tenant=other")
        self.assertEqual([job["headers"]["tenant"] for job in answer["jobs"]], ["other"])
        status, answer = self.call("POST", "/v1/dead/delete", {"filter": {"headers": {"tenant": "nobody"}}})
        self.assertEqual((status, answer["matched"]), (200, 0))
        self.bide("dead", "delete", "--header", "tenant=other", "--yes", *url)
        self.assertEqual(self.bide_json("dead", "list", *url)["jobs"], [])


if __name__ == "__main__":
    command.main()
