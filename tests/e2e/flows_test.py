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


class FlowTest(HttpTest):
    """A video: fetched, cut in two sizes, published."""

    def setUp(self):
        super().setUp()
        self.flow = "018f3c1e-7d5a-7000-8000-0000000000f0"

    def start(self, *words):
        def enqueue(kind, *more):
            return self.bide("enqueue", kind, "--retry", "none", "--flow", self.flow, *more, *words).strip()

        fetch = enqueue("fetch")
        small, large = (enqueue("cut", "--after", fetch) for _ in range(2))
        return fetch, small, large, enqueue("publish", "--after", small, "--after", large)

    def shown(self, *words):
        shown = self.bide_json("flow", "show", self.flow, *words)
        return shown["percent"], {state: count for state, count in shown["counts"].items() if count > 0}

    def test_a_flow_runs_in_order_and_is_shown_as_a_tree(self):
        jobs = self.start()
        self.assertEqual(self.shown(), (0, {"ready": 1, "waiting": 3}))
        tree = self.bide("flow", "show", self.flow)
        self.assertRegex(tree, r"^0 %: 1 ready, 3 waiting\nfetch +" + jobs[0] + r" +ready\n  cut ")
        self.assertRegex(tree, r"\n    publish +" + jobs[3] + r" +waiting +after 2 jobs\n$")
        graph = self.bide("flow", "show", self.flow, "--graph")
        self.assertEqual((graph.count("-->"), graph.splitlines()[0]), (4, "flowchart TD"))
        self.assertEqual(self.bide_json("job", "explain", jobs[3])["code"], "waiting")
        text = self.bide("job", "show", jobs[3])
        self.assertIn("2 of 2 jobs", text)
        self.assertIn(jobs[1], text)
        self.bide("work", "--shell", "echo $BIDE_KIND >> order", "--drain", "--quiet")
        with open(f"{self.folder}/order", encoding="utf-8") as file:
            self.assertEqual(file.read().split(), ["fetch", "cut", "cut", "publish"])
        self.assertEqual(self.shown(), (100, {"done": 4}))

    def test_a_dead_job_holds_the_flow_until_it_is_replayed(self):
        self.start()
        self.bide("work", "--shell", "test $BIDE_KIND != fetch || exit 65", "--drain", "--quiet")
        self.assertEqual(self.shown(), (0, {"dead": 1, "waiting": 3}))
        self.assert_fails(64, "--yes", "flow", "replay", self.flow)
        self.assertEqual(self.bide_json("flow", "replay", self.flow, "--yes")["succeeded"], 1)
        self.bide("work", "--shell", "exit 0", "--drain", "--quiet")
        self.assertEqual(self.shown(), (100, {"done": 4}))

    def test_a_flow_is_cancelled(self):
        self.start()
        other = self.bide("enqueue", "other").strip()
        self.assertEqual(self.bide_json("flow", "cancel", self.flow, "--dry-run")["would_cancel"], 4)
        self.assertEqual(self.bide_json("flow", "cancel", self.flow, "--yes")["succeeded"], 4)
        self.assert_fails(66, "no job of a flow", "flow", "show", self.flow)
        self.assertEqual(self.bide_json("job", "show", other)["state"], "ready")
        self.assertEqual(self.bide_json("audit")["ok"], True)

    def test_the_same_over_http(self):
        url = self.serve()
        jobs = self.start(*url)
        self.assertEqual(self.shown(*url), (0, {"ready": 1, "waiting": 3}))
        status, shown = self.call("GET", "/v1/flows/" + self.flow)
        self.assertEqual([job["kind"] for job in shown["jobs"]], ["fetch", "cut", "cut", "publish"])
        self.assertEqual(sorted(shown["jobs"][3]["after"]), sorted(jobs[1:3]))
        self.bide("work", "--shell", "exit 0", "--drain", "--quiet", *url)
        self.assertEqual(self.shown(*url), (100, {"done": 4}))

    def test_lines_name_those_before_them(self):
        lines = [{"kind": "fetch", "label": "a", "flow": "#a"}, {"kind": "cut", "after": ["#a"], "flow": "#a"},
                 {"kind": "early", "after": ["#later"]}, {"kind": "later", "label": "later"}, {"kind": "again", "label": "a"}]
        given = "\n".join(json.dumps(line) for line in lines).encode()
        code, out, err = self.run_bide("enqueue", "--ndjson", "-", given=given)
        self.assertEqual(code, 64, err)
        self.assertIn("line 3: no valid line before this one has the label 'later'", err)
        self.assertIn("line 5: the label 'a' is that of a line before", err)
        fetch, cut, _ = out.split()
        self.assertEqual(self.bide_json("job", "show", cut)["after"], [fetch])
        self.assertEqual(self.bide_json("job", "show", cut)["flow"], fetch)

    def test_what_cannot_be_waited_for_is_refused(self):
        self.assert_fails(66, "no job", "enqueue", "cut", "--after", "018f3c1e-7d5a-7000-8000-000000000001")
        self.assert_fails(64, "--after", "enqueue", "cut", "--after", "fetch")
        self.assert_fails(64, "did you mean", "enqueue", "cut", "--after-death", "holt")

    def test_a_second_job_with_the_key_is_the_first_or_takes_its_place(self):
        first = self.bide("enqueue", "index", "1", "--unique", "page-7", "--delay", "1h").strip()
        self.assert_fails(75, "page-7", "enqueue", "index", "2", "--unique", "page-7")
        same = self.bide_json("enqueue", "index", "3", "--unique", "page-7", "--on-conflict", "existing")
        self.assertEqual((same["id"], same["existed"]), (first, True))
        replaced = self.bide_json("enqueue", "index", "4", "--unique", "page-7", "--on-conflict", "replace", "--delay", "2h")
        self.assertEqual((replaced["id"], replaced["replaced"]), (first, True))
        self.assertEqual(self.bide_json("job", "show", first)["body"], "4")


if __name__ == "__main__":
    command.main()
