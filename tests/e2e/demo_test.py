"""bide demo: every job of the evening is accounted for, and the recording in the documentation is of this demo."""

import html
import json
import pathlib
import re

import command

RECORDING = pathlib.Path(__file__).resolve().parents[2] / "docs" / "demo.svg"


def shapes(lines):
    """The lines without what differs from run to run: times, numbers, folders."""
    return {" ".join(re.sub(r"\S*/\S+|[0-9.]+(ms|s)?\b", "#", line).split()) for line in lines}


class DemoTest(command.CommandTest):
    def test_the_recording_shows_what_the_demo_prints(self):
        printed = shapes(self.bide("demo").splitlines())
        recorded = re.findall(r"<text[^>]*>([^<]*)", RECORDING.read_text(encoding="utf-8"))
        # On a busy machine the worker that saw the mail server fail may be dead when it is back.
        optional = {"# the mail server is back: the mails go out"}
        self.assertEqual(shapes(map(html.unescape, recorded)) - printed - optional, {"$ bide demo"})

    def test_every_job_of_the_evening_is_accounted_for(self):
        code, out, err = self.run_bide("demo", "--dir", "evening", "--json")
        self.assertEqual(code, 0, err)
        summary = json.loads(out)
        audit, kinds = summary["audit"], summary["kinds"]
        self.assertTrue(audit["ok"])
        self.assertEqual(audit["accepted"], sum(kind["jobs"] for kind in kinds.values()))
        self.assertEqual({name: kind["jobs"] for name, kind in kinds.items()},
                         {"order": 40, "send_mail": 40, "pack": 40, "charge_card": 1, "render_invoice": 1, "remind": 1})
        self.assertEqual((kinds["render_invoice"]["dead"], kinds["render_invoice"]["attempts"]), (1, 3))
        self.assertEqual(sum(kind["dead"] for kind in kinds.values()), 1)
        self.assertEqual(sum(kind["open"] for kind in kinds.values()), 0)
        self.assertEqual(kinds["charge_card"]["attempts"], 4)
        self.assertGreater(kinds["send_mail"]["done_after_retries"], 0)
        dead = json.loads(self.bide("dead", "list", "--url", "bide:./evening", "--json"))["jobs"]
        self.assertEqual([(job["kind"], job["dead_reason"]) for job in dead], [("render_invoice", "poison")])
        self.bide("store", "check", "evening")


if __name__ == "__main__":
    command.main()
