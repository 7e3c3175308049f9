"""bide demo: every job of the evening is accounted for."""

import json

import command


class DemoTest(command.CommandTest):
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
