"""Every command in docs/api.md is run against a real server, in order, and answers as it is printed there."""

import json
import os
import re
import subprocess

import command
import running_server

PAGE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "api.md")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
SPAN = re.compile(r"\d[\d.]*(ms|[dhms])( \d[\d.]*(ms|[dhms]))*")
VOLATILE = {"token", "age_ms", "held_ms", "next", "workers", "ids_memory_bytes"}


def commands_of(page):
    """(command, the answer as printed) of each."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", page, re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, _, printed = part.partition("\n")
            found.append((line, printed.strip()))
    return found


def settled(value, name=""):
    """The same each time it is run."""
    if isinstance(value, dict):
        return {key: settled(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [settled(each) for each in value]
    if name in VOLATILE:
        return "..."
    if name == "text":
        return SPAN.sub("SPAN", value)
    return TIME.sub("TIME", UUID.sub("UUID", value)) if isinstance(value, str) else value


def documents(text):
    """One JSON document after another."""
    found, decoder = [], json.JSONDecoder()
    text = text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].strip()
    return found


class Examples:
    """Runs the commands one by one; what later ones need from earlier answers is in the environment."""

    def __init__(self, url, folder):
        self.environment = {"PATH": os.environ["PATH"], "BIDE": url, "HOME": folder}

    def run(self, line):
        result = subprocess.run(["sh", "-c", line], env=self.environment, capture_output=True, text=True, timeout=60,
                                check=True)
        self.remember(line, documents(result.stdout))
        return result.stdout

    def remember(self, line, answers):
        answer = answers[0]
        if line.endswith("/v1/leases"):
            self.environment["LEASED"] = answer["leases"][0]["id"]
            self.environment["TOKEN"] = answer["leases"][0]["token"]
        if "state=scheduled" in line:
            self.environment["SCHEDULED"] = answer["jobs"][0]["id"]
        if line.endswith("/purge"):
            self.environment["DEAD"] = self.kill_one()

    def kill_one(self):
        """The page speaks of a dead job: somebody has to make one."""
        def call(path, body):
            return json.loads(subprocess.run(["curl", "-s", "--json", json.dumps(body), self.environment["BIDE"] + path],
                                             capture_output=True, text=True, timeout=60, check=True).stdout)

        call("/v1/jobs", {"kind": "resize", "queue": "graves"})
        lease = call("/v1/leases", {"queue": "graves", "wait": "30s"})["leases"][0]
        call("/v1/leases/settle", {"id": lease["id"], "token": lease["token"], "outcome": "dead", "error": "no such file"})
        return lease["id"]


class ApiDocsTest(command.CommandTest):
    def test_every_command_answers_as_printed(self):
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        server = running_server.RunningServer(command.BIDE, self.folder).start()
        self.addCleanup(server.end)
        examples = Examples(server.url, self.folder)
        commands = commands_of(page)
        self.assertGreater(len(commands), 20)
        for line, printed in commands:
            with self.subTest(line):
                answer = examples.run(line)
                self.assertEqual(settled(documents(answer)), settled(documents(printed)))

    def test_every_code_is_on_the_page(self):
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        source = os.path.join(os.path.dirname(__file__), "..", "..", "src", "wire", "problem.cc")
        with open(source, encoding="utf-8") as file:
            kinds = re.findall(r'^    \{"(\w+)", (\d+), "(.*)"\},$', file.read(), re.M)
        self.assertGreater(len(kinds), 50)
        for code, status, title in kinds:
            self.assertTrue(f"| {status} | `{code}` | {title} |" in page, f"docs/api.md does not list {status} {code}: {title}")


if __name__ == "__main__":
    command.main()
