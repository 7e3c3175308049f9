"""bide store: checking, compacting, saving and restoring a data directory."""

import os
import shutil

import command


class StoreTest(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.ids = [self.bide("enqueue", "k", f"body {i}" * 20, "--delay", "1h").strip() for i in range(4)]
        self.bide("enqueue", "now", "x")
        self.bide("work", "--kind", "now", "--shell", "exit 0", "--queue", "other", "--drain", "--quiet")

    def segment(self):
        return "journal/" + min(os.listdir(f"{self.folder}/data/journal"))

    def flip(self, offset):
        with open(f"{self.folder}/data/{self.segment()}", "r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 0x10]))

    def test_a_good_store_checks_clean_and_agrees_with_the_audit(self):
        report = self.bide_json("store", "check", "data")
        audit = self.bide_json("audit")
        self.assertTrue(report["ok"])
        self.assertEqual(report["findings"], [])
        self.assertEqual(report["jobs"]["accepted"], audit["accepted"])
        self.assertEqual(report["jobs"]["waiting"], audit["details"]["scheduled"] + audit["details"]["ready"])
        self.assertIn("no damage", self.bide("store", "check", "data"))

    def test_a_flipped_bit_is_found_and_opening_is_refused(self):
        with open(f"{self.folder}/data/{self.segment()}", "rb") as file:
            offset = file.read().index(b"body 2")
        self.flip(offset)
        code, out, _ = self.run_bide("store", "check", "data")
        self.assertEqual(code, 65)
        self.assertIn(f"damage: {self.segment()}, offset ", out)
        self.assertEqual(self.run_bide("job", "list")[0], 65)
        self.assertEqual(self.run_bide("store", "backup", "data", "copy")[0], 65)
        self.flip(offset)
        self.bide("store", "check", "data")

    def test_a_backup_is_restored(self):
        saved = self.bide_json("store", "backup", "data", "saved")
        self.assertEqual(saved["live_jobs"], 5)
        self.assertEqual(self.run_bide("store", "backup", "data", "saved")[0], 73)
        shutil.rmtree(f"{self.folder}/data")
        self.bide("store", "restore", "saved", "data")
        self.assertEqual(self.bide_json("job", "show", self.ids[0])["body"], "body 0" * 20)
        self.assertTrue(self.bide_json("audit")["ok"])

    def test_compacting_keeps_every_job(self):
        self.assertGreater(self.bide_json("store", "compact", "data")["live_bytes"], 0)
        self.assertEqual(self.bide_json("audit")["live"], 5)
        self.bide("store", "check", "data")


if __name__ == "__main__":
    command.main()
