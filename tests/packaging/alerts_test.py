"""The rules for Prometheus in docs/metrics.md: promtool accepts them, they fire when they should, and every metric that
they and the document name is one that there is.

alerts_test.py SOURCE_FOLDER
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(sys.argv[1])
SUFFIX = re.compile(r"_(bucket|sum|count)$")

# One minute a column: dead jobs appear, a queue is not worked on, the disk fills up, callbacks fail.
CASES = """
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'up{job="bide"}', values: '1x5 0x20'}
      - {series: 'bide_jobs_finished_total{queue="mail",outcome="dead"}', values: '0x5 3x20'}
      - {series: 'bide_jobs_finished_total{queue="mail",outcome="done"}', values: '0+60x30'}
      - {series: 'bide_queue_oldest_age_seconds{queue="mail"}', values: '0x5 60+60x30'}
      - {series: 'bide_queue_oldest_age_seconds{queue="calm"}', values: '0x40'}
      - {series: 'bide_pressure{reason="the disk is full"}', values: '0x5 2x20'}
      - {series: 'bide_duplicate_starts_total{reason="lost"}', values: '0x5 0+10x20'}
      - {series: 'bide_callback_attempts_total{outcome="done"}', values: '0+10x40'}
      - {series: 'bide_callback_attempts_total{outcome="failed"}', values: '0+10x40'}
    promql_expr_test:
      - expr: queue:bide_jobs_finished:rate5m{queue="mail",outcome="done"}
        eval_time: 20m
        exp_samples: [{labels: 'queue:bide_jobs_finished:rate5m{queue="mail",outcome="done"}', value: 1}]
    alert_rule_test:
      - {eval_time: 4m, alertname: BideDown, exp_alerts: []}
      - {eval_time: 12m, alertname: BideDown, exp_alerts: [{exp_labels: {job: bide, severity: critical}}]}
      - {eval_time: 4m, alertname: BideJobsDie, exp_alerts: []}
      - {eval_time: 8m, alertname: BideJobsDie, exp_alerts: [{exp_labels: {queue: mail, severity: warning}}]}
      - {eval_time: 8m, alertname: BideQueueStuck, exp_alerts: []}
      - {eval_time: 25m, alertname: BideQueueStuck, exp_alerts: [{exp_labels: {queue: mail, severity: warning}}]}
      - {eval_time: 4m, alertname: BideBlocked, exp_alerts: []}
      - {eval_time: 12m, alertname: BideBlocked, exp_alerts: [{exp_labels: {reason: the disk is full, severity: critical}}]}
      - {eval_time: 4m, alertname: BideRunsTwice, exp_alerts: []}
      - {eval_time: 20m, alertname: BideRunsTwice, exp_alerts: [{exp_labels: {reason: lost, severity: warning}}]}
      - {eval_time: 30m, alertname: BideCallbacksFail, exp_alerts: [{exp_labels: {severity: warning}}]}
"""


def read(path):
    with open(f"{SOURCE}/{path}", encoding="utf-8") as file:
        return file.read()


def rules():
    """The one block of YAML in the document, without what people read."""
    return re.search(r"```yaml\n(.*?)```", read("docs/metrics.md"), re.DOTALL)[1]


def promtool(folder, *words):
    done = subprocess.run(["promtool", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60, check=False)
    return done.returncode, done.stdout


class AlertsTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="bide-alerts-test-")
        self.addCleanup(self._folder.cleanup)
        self.folder = self._folder.name
        # What an alert says is for people; the cases are about when it is said.
        silent = re.sub(r"\n +annotations:\n( +(summary|description): [^\n]*\n)+", "\n", rules())
        for name, content in (("given.yml", rules()), ("rules.yml", silent), ("cases.yml", CASES)):
            with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
                file.write(content)

    def test_promtool_accepts_them(self):
        code, text = promtool(self.folder, "check", "rules", "--lint=all", "--lint-fatal", "given.yml")
        self.assertEqual(code, 0, text)

    def test_they_fire_when_they_should_and_not_before(self):
        code, text = promtool(self.folder, "test", "rules", "cases.yml")
        self.assertEqual(code, 0, text)

    def test_the_document_names_what_there_is_and_all_of_it(self):
        there_are = set(re.findall(r'family\("(bide_\w+)"', read("src/metrics/metrics.cc")))
        self.assertGreaterEqual(len(there_are), 12)
        text = read("docs/metrics.md")
        named = {SUFFIX.sub("", name) for name in re.findall(r"(?<![\w:])bide_\w+", text)}
        self.assertEqual(named - there_are, set())
        rows = set(re.findall(r"^\| `(bide_\w+)", text, re.MULTILINE))
        self.assertEqual(rows, there_are)


if __name__ == "__main__":
    if shutil.which("promtool") is None:
        print("promtool is not installed")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1], verbosity=2)
