"""Tokens from the command line."""

import json
import os
import stat
import subprocess

import command
import running_server


class TokenTest(command.CommandTest):
    def test_a_token_is_printed_once_alone_and_kept_as_a_hash_that_nobody_else_reads(self):
        code, out, err = self.run_bide("token", "create", "deploy", "--scope", "read,write", "--expires", "90d")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"^bide_[A-Za-z0-9_-]{43}\n$")
        self.assertIn("shown this once", err)
        path = f"{self.folder}/data/tokens"
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with open(path, encoding="utf-8") as file:
            content = file.read()
        self.assertNotIn(out.strip()[5:], content)
        self.assertRegex(content, r"(?m)^deploy read,write \S+Z \S+Z [0-9a-f]{64}$")
        self.assertNotIn(out.strip(), self.bide("token", "list"))

    def test_tokens_are_listed_and_revoked(self):
        made = self.bide_json("token", "create", "one", "--scope", "work", "--scope", "read")
        self.assertEqual((made["name"], made["scopes"], made["expires"], made["state"]), ("one", ["read", "work"], None, "good"))
        self.bide("token", "create", "two", "--scope", "admin")
        self.assertEqual([token["name"] for token in self.bide_json("token", "list")["tokens"]], ["one", "two"])
        self.assertRegex(self.bide("token", "list"), r"(?m)^one +read,work +all .* never$")
        self.assertEqual(self.bide_json("token", "revoke", "one", "two")["revoked"], ["one", "two"])
        self.assertIn("no tokens", self.bide("token", "list"))

    def test_jobs_live_beside_the_tokens(self):
        self.bide("token", "create", "one", "--scope", "read")
        self.bide("enqueue", "k")
        self.bide("store", "check", "data")
        self.bide("store", "backup", "data", "saved")
        self.assertEqual(stat.S_IMODE(os.stat(f"{self.folder}/saved/tokens").st_mode), 0o600)
        self.assertEqual(self.bide_json("token", "list", "--url", "bide:./saved"), self.bide_json("token", "list"))
        self.assertEqual(len(self.bide_json("token", "list")["tokens"]), 1)

    def test_mistakes_are_told(self):
        self.bide("token", "create", "one", "--scope", "read")
        self.assert_fails(64, "--scope is missing", "token", "create", "two")
        self.assert_fails(64, "did you mean 'write'?", "token", "create", "two", "--scope", "wrte")
        self.assert_fails(64, "invalid name '../x'", "token", "create", "../x", "--scope", "read")
        self.assert_fails(64, "not in the future", "token", "create", "two", "--scope", "read", "--expires", "2020-01-01T00:00:00Z")
        self.assert_fails(64, "--expires", "token", "create", "two", "--scope", "read", "--expires", "soon")
        code, _, err = self.run_bide("token", "create", "one", "--scope", "read")
        self.assertNotEqual(code, 0)
        self.assertIn("bide token revoke one", err)
        self.assert_fails(66, "did you mean 'one'?", "token", "revoke", "oen")
        self.assert_fails(66, "nothing was revoked", "token", "revoke", "one", "two")
        self.assertEqual(len(self.bide_json("token", "list")["tokens"]), 1)
        self.assert_fails(64, "--token-file", "token", "list", "--url", "amqp://localhost")
        self.assert_fails(64, "where the server runs", "token", "list", "--url", "http://localhost:7070")

    def test_a_list_without_a_data_directory_is_66_and_makes_none(self):
        self.assert_fails(66, "there is no data directory './data'", "token", "list")
        self.assertEqual(os.listdir(self.folder), [])
        os.mkdir(f"{self.folder}/data")
        self.assertIn("no tokens", self.bide("token", "list"))

    def test_a_file_that_others_may_read_is_refused(self):
        self.bide("token", "create", "one", "--scope", "read")
        os.chmod(f"{self.folder}/data/tokens", 0o644)
        self.assert_fails(77, "chmod 600", "token", "list")

    def test_a_damaged_file_is_told_with_its_line_and_left_alone(self):
        path = f"{self.folder}/tokens"
        with open(path, "w", encoding="utf-8") as file:
            file.write("bide-tokens 1\nwhat is this\n")
        os.chmod(path, 0o600)
        code, _, err = self.run_bide("token", "create", "x", "--scope", "read", "--token-file", path)
        self.assertNotEqual(code, 0)
        self.assertIn(f"{path}:2:", err)
        with open(path, encoding="utf-8") as file:
            self.assertIn("what is this", file.read())

    def start_server(self):
        server = running_server.RunningServer(command.BIDE, self.folder, without_token=False).start()
        self.addCleanup(server.end)
        return server

    def test_a_worker_whose_token_is_wrong_missing_or_too_weak_ends_with_one_line_and_77(self):
        reader = self.bide("token", "create", "reader", "--scope", "read").strip()
        server = self.start_server()
        for token in ("bide_" + "x" * 43, "", reader):
            code, out, err = self.run_bide("work", "--exec", "true", "--url", server.url,
                                           environment={"BIDE_TOKEN": token})
            self.assertEqual(code, 77, out + err)
            self.assertRegex(err, r"^bide: error: [^\n]*gives no jobs to this worker: [^\n]+\n$")

    def test_a_worker_whose_token_is_revoked_ends_with_77(self):
        token = self.bide("token", "create", "worker", "--scope", "work").strip()
        server = self.start_server()
        worker = subprocess.Popen([command.BIDE, "work", "--exec", "true", "--url", server.url], cwd=self.folder,
                                  env=self.environment() | {"BIDE_TOKEN": token}, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        self.addCleanup(lambda: worker.poll() is None and worker.kill())
        self.bide("enqueue", "k", "--wait")
        self.bide("token", "revoke", "worker")
        # Its poll is answered once more, or is refused at once.
        self.bide("enqueue", "k")
        out, err = worker.communicate(timeout=100)
        self.assertEqual(worker.returncode, 77, out + err)
        self.assertIn(b"gives no jobs to this worker", err)

    def test_waiting_without_the_right_to_read_says_that_the_job_is_enqueued(self):
        token = self.bide("token", "create", "writer", "--scope", "write").strip()
        server = self.start_server()
        code, out, err = self.run_bide("enqueue", "k", "--wait", "--url", server.url, environment={"BIDE_TOKEN": token})
        self.assertEqual((code, out), (77, ""))
        job, = self.bide_json("job", "list")["jobs"]
        self.assertRegex(err, rf"^bide: error: job {job['id']} is enqueued, but waiting for it failed: [^\n]*read[^\n]*\n$")
        _, _, err = self.run_bide("enqueue", "k", "--wait", "--json", "--url", server.url, environment={"BIDE_TOKEN": token})
        self.assertIn(json.loads(err)["error"]["id"], [job["id"] for job in self.bide_json("job", "list")["jobs"]])

    def test_draining_without_the_right_to_read_is_refused_before_a_job_runs(self):
        token = self.bide("token", "create", "worker", "--scope", "work").strip()
        self.bide("enqueue", "k")
        server = self.start_server()
        self.assert_fails(77, "read", "work", "--exec", "true", "--drain", "--url", server.url,
                          environment={"BIDE_TOKEN": token})
        self.assertEqual(self.bide_json("job", "list")["jobs"][0]["attempts"], 0)

    def test_what_cannot_be_reached_is_named_with_its_port_and_a_hint(self):
        port = running_server.free_port()
        self.assert_fails(69, f"cannot reach http://127.0.0.1:{port}: ", "job", "list",
                          "--url", f"http://127.0.0.1:{port}?patience=0")
        self.assert_fails(69, "`bide serve`", "job", "list", "--url", f"http://127.0.0.1:{port}?patience=0")
        server = self.start_server()
        self.assert_fails(69, "is it http://", "job", "list", "--url", f"https://127.0.0.1:{server.port}?patience=0")


if __name__ == "__main__":
    command.main()
