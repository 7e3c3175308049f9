"""The dashboard in a real browser: what people do with it, and what hostile jobs and pages cannot do to it."""

import http.server
import json
import os
import shutil
import subprocess
import threading
import unittest
import urllib.error
import urllib.parse
import urllib.request

import browser as web
import command
import running_server

ENTER = "\ue007"
HOSTILE = """<img src=x onerror="window.hacked='img'"><script>window.hacked='script'</script>'"`;alert(1)//"""
PAGES = ("/", "/queues", "/queues/default", "/jobs", "/jobs?state=dead", "/schedules", "/dead", "/workers", "/callbacks", "/enqueue", "/about")


class DashboardTest(command.CommandTest):
    @classmethod
    def setUpClass(cls):
        if missing := web.find_missing():
            raise unittest.SkipTest(missing)

    def serve(self, *words, without_token=False):
        self.server = running_server.RunningServer(command.BIDE, self.folder, *words, without_token=without_token)
        self.addCleanup(self.server.end)
        self.server.start()
        return self.server.url

    def token(self, name, scopes):
        return self.bide("token", "create", name, "--scope", scopes, "--url", "bide:./data").strip()

    def make_browser(self, **options):
        made = web.Browser(**options)
        self.addCleanup(made.close)
        return made

    def api(self, method, path, body=None, token=None):
        """(status, answer)"""
        fields = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server.url + path, data, fields, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def enqueue(self, token=None, **job):
        status, answer = self.api("POST", "/v1/jobs", job, token)
        self.assertEqual(status, 201, answer)
        return answer["id"]

    def run_attempt(self, outcome, token=None, worker="hands"):
        """Takes the next job as a worker does, and settles it."""
        _, leases = self.api("POST", "/v1/leases", {"queues": ["default"], "max": 1, "wait": "30s", "worker": worker}, token)
        lease = leases["leases"][0]
        status, answer = self.api("POST", "/v1/leases/settle", {"settlements": [
            {"id": lease["id"], "token": lease["token"], **outcome}]}, token)
        self.assertEqual((status, answer["failed"] if "failed" in answer else 0), (200, 0), answer)

    def sign_in(self, page, token):
        page.open(self.server.url + "/")
        page.find("#token").type(token + ENTER)
        page.find("h1", "Overview")

    def assert_no_problems(self, page, allowed=()):
        found = [each for each in page.problems() if not any(part in each for part in allowed)]
        self.assertEqual(found, [])

    # ---- What people do.

    def test_a_job_that_dies_is_found_by_its_error_replayed_and_done(self):
        boss = self.token("boss", "read,write,work,admin")
        self.serve()
        page = self.make_browser()
        self.sign_in(page, boss)
        page.wait_for_text("No job has come by yet")
        job = self.enqueue(boss, kind="charge", retry="fixed(1h,x2)", body={"card": 7, "amount": "12.50"})
        page.open(f"{self.server.url}/jobs/{job}")
        page.find("h1 .state", "ready")
        self.run_attempt({"outcome": "failed", "error": "bank 17 says no"}, boss)
        page.wait_for_text("Attempt 1 failed")
        page.wait_for_text("bank 17 says no")
        page.find("h1 .state", "scheduled")
        page.click("button", "Run now")
        self.run_attempt({"outcome": "dead", "error": "bank 18 says no"}, boss)
        page.find("h1 .state", "dead")

        # By its error, from the keyboard.
        page.press("/")
        page.find(".search input").type("bank 18" + ENTER)
        page.wait("the filter in the address", lambda: "error=bank" in page.url)
        page.find("td", "charge")
        page.open(self.server.url + "/dead")
        page.find(".group", "bank # says no")
        page.click(".group button", "Replay")
        page.click("dialog button", "Replay 1")
        page.wait_for_text("1 job replayed")
        page.click("dialog button", "Close")
        page.wait_for_text("No dead jobs")
        self.run_attempt({"outcome": "done", "result": {"paid": True}}, boss)
        page.open(f"{self.server.url}/jobs/{job}")
        page.find("h1 .state", "done")
        self.assertIn('"paid": true', page.find(".content pre").text)
        page.open(self.server.url + "/workers")
        page.find("td", "hands")
        self.assert_no_problems(page)

    def test_a_dead_job_is_edited_and_replayed(self):
        url = self.serve(without_token=True)
        page = self.make_browser()
        job = self.enqueue(kind="mail", retry="none", body={"to": "annn@example.org"}, headers={"tenant": "acme"}, priority=3)
        self.run_attempt({"outcome": "dead", "error": "no such address"})
        page.open(f"{url}/jobs/{job}")
        page.find("h1 .state", "dead")
        page.click("button", "Edit")
        body = page.find("#edit-body")
        body.clear()
        body.type('{"to": "ann@example.org"}')
        queue = page.find("#edit-queue")
        queue.clear()
        queue.type("a b")
        page.click("dialog button", "Save and replay")
        page.find("dialog [role=alert]", "invalid queue name")  # Nothing has changed, and the dialog stays.
        queue.clear()
        queue.type("slow")
        page.click("dialog button", "Save and replay")
        page.find("h1 .state", "ready")
        shown = self.api("GET", f"/v1/jobs/{job}")[1]
        self.assertEqual((shown["body"], shown["queue"], shown["headers"], shown["priority"], shown["content_type"]),
                         ({"to": "ann@example.org"}, "slow", {"tenant": "acme"}, 3, "application/json"))
        # While it waits it can be changed as well; what is not touched stays.
        page.click("button", "Edit")
        page.find("#edit-headers").type("\nregion: eu")
        page.click("dialog button", "Save")
        page.find(".headers dt", "region")
        self.assertEqual(self.api("GET", f"/v1/jobs/{job}")[1]["headers"], {"tenant": "acme", "region": "eu"})
        page.open(f"{url}/jobs?header=region%3Deu")
        page.find("td", "mail")
        page.open(f"{url}/jobs?header=region%3Dus")
        page.wait_for_text("No job matches")
        self.assert_no_problems(page, allowed=("422",))

    def test_a_flow_is_watched_replayed_and_cancelled(self):
        url = self.serve(without_token=True)
        page = self.make_browser()
        status, made = self.api("POST", "/v1/jobs", [
            {"kind": "fetch", "label": "fetch", "flow": "#fetch", "retry": "none"},
            *({"kind": "cut", "label": f"cut{i}", "after": ["#fetch"], "flow": "#fetch"} for i in range(6)),
            {"kind": "publish", "after": [f"#cut{i}" for i in range(6)], "flow": "#fetch"}])
        self.assertEqual((status, made["failed"]), (200, 0), made)
        fetch, publish = made["results"][0]["id"], made["results"][-1]["id"]
        page.open(f"{url}/flows/{fetch}")
        page.find("svg.flow")
        page.wait_for_text("Flow, 0 % done")
        # Those that are alike are one box.
        self.assertEqual(page.run("return document.querySelectorAll('svg.flow .node').length;"), 3)
        page.find(".node .kind", "cut × 6")
        self.run_attempt({"outcome": "dead", "error": HOSTILE})
        page.find(".node.dead .kind", "fetch")
        page.find("td .error-text", "<img src=x")
        page.click("button", "Replay 1 dead job")
        page.find(".node.ready .kind", "fetch")
        self.run_attempt({"outcome": "done"})
        page.find(".node.done .kind", "fetch")
        page.wait_for_text("Flow, 12.5 % done")
        # A box is a link, also for the keyboard; the job says what it waits for.
        page.run("document.querySelector('.node.waiting').focus();")
        page.press(ENTER)
        page.find("h1 .state", "waiting")
        self.assertTrue(page.url.endswith("/jobs/" + publish), page.url)
        page.find("h3", "Waits for 6 of")
        page.click(".card a", "The whole flow")
        page.click("button", "Cancel")
        page.click("dialog button", "Cancel the flow")
        page.wait_for_text("7 jobs cancelled")
        page.wait_for_text("Flow, 100 % done")
        self.assertIsNone(page.run("return window.hacked ?? null;"))
        self.assert_no_problems(page)

    def test_progress_and_steps_are_shown_while_a_job_runs(self):
        url = self.serve(without_token=True)
        page = self.make_browser()
        job = self.enqueue(kind="import", body="x")
        lease = self.api("POST", "/v1/leases", {"wait": "30s"})[1]["leases"][0]
        held = {"id": lease["id"], "token": lease["token"]}
        self.assertEqual(self.api("POST", "/v1/leases/steps", held | {"name": "charge", "result": HOSTILE})[0], 200)
        self.api("POST", "/v1/leases/extend", {"leases": [held | {"progress": {"part": 0.4, "note": "page 12"}}]})
        page.open(f"{url}/jobs/{job}")
        page.find(".job-progress", "40 %, page 12")
        page.find(".timeline strong", "charge")
        page.wait_for_text("<img src=x")
        self.assertIsNone(page.run("return window.hacked ?? null;"))
        self.assert_no_problems(page)

    def test_a_queue_is_paused_and_resumed_and_a_job_enqueued(self):
        url = self.serve(without_token=True)
        page = self.make_browser()
        page.open(url + "/enqueue")
        page.find("#kind").type("hello")
        page.find("#body").type('{"name": "world"}')
        page.click("button", "Enqueue")
        page.find("h1 .state", "ready")
        self.assertEqual(self.api("GET", "/v1/jobs?state=ready")[1]["jobs"][0]["kind"], "hello")
        page.wait_for_text("worker")  # The explanation: there is none.
        page.open(url + "/queues")
        page.click("button", "Pause")
        page.click("dialog button", "Pause")
        page.find("td .state", "paused")
        self.assertTrue(self.api("GET", "/v1/queues/default")[1]["paused"])
        page.click("button", "Resume")
        page.wait("the queue to go on", lambda: not self.api("GET", "/v1/queues/default")[1]["paused"])
        # Keys: to the jobs, down a row, open it; the list of keys.
        page.press("g")
        page.press("j")
        page.find("h1", "Jobs")
        page.find("td", "hello")
        page.press("j")
        page.press(ENTER)
        page.find("h1", "hello")
        page.press("?")
        page.find("dialog h2", "Keyboard")
        self.assert_no_problems(page)

    def test_acting_on_many_dead_jobs_can_be_stopped_half_way(self):
        url = self.serve(without_token=True)
        many = 4_000
        for begin in range(0, many, 1_000):
            past = {"attempts": 1, "dead_reason": "rejected"}
            lines = "\n".join(json.dumps({"kind": "pack", "body": i, "past": past | {"errors": [
                {"attempt": 1, "at": "2026-01-02T03:04:05Z", "fault": "failed", "text": f"shelf {i} is empty"}]}}) for i in range(begin, begin + 1_000))
            request = urllib.request.Request(url + "/v1/jobs", lines.encode(), {"Content-Type": "application/x-ndjson"}, method="POST")
            with urllib.request.urlopen(request, timeout=60) as answer:
                self.assertLess(answer.status, 300)
        page = self.make_browser()
        page.open(url + "/dead")
        page.wait("all of them to be dead", lambda: "4,000" in page.text())
        # Stopped by the page itself as soon as the first are done, so that it is half-way however quick the server is.
        page.run("""new MutationObserver(() => {
              const bar = document.querySelector('dialog progress');
              if (bar && bar.value > 0) [...document.querySelectorAll('dialog button')].find(each => each.textContent === 'Stop')?.click();
            }).observe(document.body, {subtree: true, childList: true, characterData: true});""")
        page.click(".group button", "Delete")
        page.click("dialog button", "Delete 4,000")
        page.wait_for_text("Stopped.")
        left = self.api("GET", "/v1/queues/default")[1]["dead"]
        self.assertGreater(left, 0)
        self.assertLess(left, many)
        self.assertIn(f"{many - left:,} jobs deleted", page.text().replace("\u00a0", " "))

    def test_the_link_of_the_server_signs_in_once(self):
        self.token("boss", "read")
        self.serve("--sign-in-link")
        with open(f"{self.folder}/server.log", encoding="utf-8") as log:
            link = next(line.strip() for line in log if "#sign-in=" in line)
        page = self.make_browser()
        page.open(link)
        page.find("h1", "Overview")
        self.assertNotIn("sign-in", page.url)
        self.assertEqual(page.run("return document.cookie;"), "")  # Not for scripts.
        page.click("button[aria-label='Sign out']")
        page.find("h1", "Sign in")
        page.open(self.server.url + "/about")
        page.open(link)
        page.wait_for_text("used before")
        self.assert_no_problems(page, allowed=("401",))

    # ---- What others cannot do.

    def test_hostile_strings_become_text_and_nothing_else(self):
        url = self.serve(without_token=True)
        # Names of kinds and queues cannot be hostile at all.
        self.assertEqual(self.api("POST", "/v1/jobs", {"kind": HOSTILE})[0], 422)
        self.assertEqual(self.api("POST", "/v1/jobs", {"kind": "x", "queue": "<i>q</i>"})[0], 422)
        job = self.enqueue(kind="bold", body={HOSTILE: HOSTILE}, headers={"x-mark": HOSTILE}, unique_key=HOSTILE, content_type="text/<b>", retry="none")
        self.run_attempt({"outcome": "dead", "error": HOSTILE}, worker="<u>" + HOSTILE[:60])
        page = self.make_browser()
        for path in (*PAGES, f"/jobs/{job}", "/jobs?error=" + urllib.parse.quote(HOSTILE), "/dead?kind=%3Cb%3Ebold%3C/b%3E&queue=%3Cimg%20src=x%20onerror=alert(1)%3E"):
            page.open(url + path)
            page.find("h1")
            if path in ("/", "/jobs", "/dead", f"/jobs/{job}"):
                page.wait_for_text("onerror")
            made = page.run("return [...document.querySelectorAll('img, script:not([src]), b b, i i, u, iframe, [onerror]')].map(each => each.outerHTML);")
            self.assertEqual(made, [], path)
            self.assertIsNone(page.run("return window.hacked ?? null;"), path)
        page.open(f"{url}/jobs/{job}")
        page.wait_for_text(HOSTILE)
        self.assert_no_problems(page, allowed=("422",))  # A filter that no name can match.

    def test_a_read_only_token_sees_everything_and_changes_nothing(self):
        boss = self.token("boss", "read,write,work,admin")
        reader = self.token("reader", "read")
        self.serve()
        job = self.enqueue(boss, kind="pack", retry="none")
        waiting = self.enqueue(boss, kind="later", delay="1h")
        self.run_attempt({"outcome": "dead", "error": "no such street"}, boss)
        page = self.make_browser()
        self.sign_in(page, reader)
        page.wait_for_text("Read only")
        for path, text in (("/queues", "default"), ("/jobs?state=dead", "pack"), ("/dead", "no such street"), (f"/jobs/{job}", "no such street"),
                           (f"/jobs/{waiting}", "later"), ("/workers", "hands"), ("/enqueue", "may not enqueue")):
            page.open(self.server.url + path)
            page.wait_for_text(text)
            self.assertEqual(page.run("return [...document.querySelectorAll('main button')].map(each => each.textContent);"), [], path)
        refused = page.run("""const answers = [];
            for (const [method, path, body] of [['POST', '/v1/queues/default/pause', {}], ['POST', '/v1/dead/replay', {ids: [given[0]]}],
                ['POST', '/v1/jobs', {kind: 'x'}], ['DELETE', '/v1/jobs/' + given[1], undefined]]) {
              const answer = await fetch(path, {method, headers: {'Content-Type': 'application/json'}, body: body && JSON.stringify(body)});
              answers.push(answer.status);
            }
            return answers;""", job, waiting)
        self.assertEqual(refused, [403] * 4)
        # Revoked: signed out within the next look.
        self.bide("token", "revoke", "reader", "--url", "bide:./data")
        page.open(self.server.url + "/")
        page.wait("the sign-in", lambda: page.run("location.reload(); return true;") and "Sign in to bide" in page.text())

    def test_a_page_of_another_origin_can_do_nothing(self):
        boss = self.token("boss", "read,write,work,admin")
        self.serve()
        self.enqueue(boss, kind="pack")
        page = self.make_browser()
        self.sign_in(page, boss)
        url = self.server.url

        class Other(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(f"<title>other</title><iframe src='{url}/'></iframe>"
                                 f"<form method=post action='{url}/v1/queues/default/pause' target=hidden></form><iframe name=hidden></iframe>".encode())

            def log_message(self, *_):
                pass

        other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        self.addCleanup(other.server_close)
        self.addCleanup(other.shutdown)
        # Of the same site, even: only the port differs, so that the browser does send the cookie.
        page.open(f"http://127.0.0.1:{other.server_port}/")
        results = page.run("""const [url] = given;
            const attempts = [];
            for (const options of [{method: 'GET'}, {method: 'POST', body: '{}', headers: {'Content-Type': 'text/plain'}, mode: 'no-cors'}, {method: 'POST', body: '{}', headers: {'Content-Type': 'application/json'}}]) {
              try {
                const answer = await fetch(url + (options.method === 'GET' ? '/v1/jobs' : '/v1/queues/default/pause'), {credentials: 'include', ...options});
                attempts.push(answer.type === 'opaque' ? 'opaque' : await answer.text());
              } catch { attempts.push('refused'); }
            }
            document.querySelector('form').submit();
            await new Promise(done => setTimeout(done, 300));
            return attempts;""", url)
        self.assertEqual(results, ["refused", "opaque", "refused"])
        self.assertFalse(self.api("GET", "/v1/queues/default", token=boss)[1]["paused"])
        framed = page.run("try { return document.querySelector('iframe').contentDocument?.body?.innerText ?? 'closed'; } catch { return 'closed'; }")
        self.assertEqual(framed, "closed")

    # ---- For everybody.

    def test_no_page_has_a_violation_that_axe_finds(self):
        source = self.find_axe()
        url = self.serve(without_token=True)
        job = self.enqueue(kind="pack", retry="none", body={"a": 1}, headers={"source": "web"})
        self.run_attempt({"outcome": "dead", "error": "no such street"})
        self.enqueue(kind="later", delay="1h")
        for dark in (False, True):
            page = self.make_browser(dark=dark)
            for width in (1280,) if dark else (1280, 360):
                page.resize(width, 800)
                for path in (*PAGES, f"/jobs/{job}"):
                    page.open(url + path)
                    page.find("h1")
                    self.assertLessEqual(page.run("return document.documentElement.scrollWidth;"), width, path)
                    # As the devtools do it, past the page's policy.
                    page.devtools("Runtime.evaluate", expression=source)
                    found = page.run("""const result = await axe.run(document, {resultTypes: ['violations']});
                        return result.violations.map(each => each.id + ': ' + each.nodes.map(node => node.html + ' ' + node.failureSummary).join(' | ').slice(0, 600));""")
                    self.assertEqual(found, [], f"{path} at {width} {'dark' if dark else 'light'}")

    def find_axe(self):
        """The text of axe-core, which npm brings; kept for the next run."""
        folder = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "bide-tests", "axe-core-4.10.2")
        path = os.path.join(folder, "node_modules", "axe-core", "axe.min.js")
        if not os.path.exists(path):
            if shutil.which("npm") is None:
                self.skipTest("npm is not installed, which brings axe-core")
            os.makedirs(folder, exist_ok=True)
            got = subprocess.run(["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", "axe-core@4.10.2"],
                                 capture_output=True, timeout=120, check=False)
            if got.returncode != 0 or not os.path.exists(path):
                self.skipTest("npm cannot bring axe-core: " + got.stderr.decode()[-200:])
        with open(path, encoding="utf-8") as file:
            return file.read()


if __name__ == "__main__":
    command.main()
