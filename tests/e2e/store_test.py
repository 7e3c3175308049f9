"""bide store: checking, compacting, saving and restoring a data directory."""

import json
import os
import random
import resource
import shutil
import time

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

    def journal(self):
        with open(f"{self.folder}/data/{self.segment()}", "rb") as file:
            return file.read()

    def repaired(self, *words):
        """The report of a repair, after which everything must be well."""
        report = self.bide_json("store", "repair", "data", *words)
        self.assertTrue(self.bide_json("store", "check", "data")["ok"])
        self.assertTrue(self.bide_json("audit")["ok"])
        return report

    def bodies(self):
        return sorted(job["body"][:6] for job in self.bide_json("job", "list", "--kind", "k")["jobs"])

    def test_a_damaged_record_is_cut_out_and_the_rest_is_kept(self):
        offset = self.journal().index(b"body 1")
        self.flip(offset)
        self.assertIn("bide store repair", self.run_bide("job", "list")[2])
        self.assertIn("bide store repair", self.run_bide("store", "check", "data")[1])
        preview = self.bide_json("store", "repair", "data", "--dry-run")
        self.assertIsNone(preview["kept_as"])
        self.assertEqual(self.run_bide("store", "check", "data")[0], 65)
        report = self.repaired()
        self.assertEqual(report["lost"], preview["lost"])
        self.assertEqual(len(report["lost"]), 1)
        loss = report["lost"][0]
        self.assertEqual(loss["file"], self.segment())
        self.assertTrue(loss["offset"] < offset < loss["offset"] + loss["bytes"])
        self.assertGreaterEqual(loss["records_after"], 3)
        self.assertEqual(self.bodies(), ["body 0", "body 2", "body 3"])
        self.assertEqual(self.run_bide("store", "check", report["kept_as"])[0], 65)
        self.assertEqual(self.bide_json("store", "repair", "data")["needed"], False)

    def test_a_damaged_header_of_a_batch_costs_none_of_its_records(self):
        data = self.journal()
        self.flip(data.rindex(b"BTCH", 0, data.index(b"body 2")) + 5)
        self.repaired()
        self.assertEqual(len(self.bodies()), 4)

    def test_a_damaged_header_of_a_segment_costs_nothing(self):
        self.flip(20)
        self.repaired()
        self.assertEqual(len(self.bodies()), 4)

    def test_a_journal_that_was_cut_short_opens_again(self):
        with open(f"{self.folder}/data/{self.segment()}", "r+b") as file:
            file.truncate(self.journal().index(b"body 2"))
        os.chmod(f"{self.folder}/data", 0o750)
        report = self.repaired("--keep-as", "old")
        self.assertEqual(os.stat(f"{self.folder}/data").st_mode & 0o7777, 0o750)
        self.assertEqual((self.bodies(), report["kept_as"]), (["body 0", "body 1"], "old"))

    def test_records_of_a_job_that_is_lost_are_dropped(self):
        self.bide("work", "--shell", "exit 65", "--kind", "now", "--drain", "--quiet")
        offset = self.journal().index(b"\x03now")
        self.flip(offset)
        report = self.repaired()
        self.assertGreaterEqual(report["records_dropped"], 2)
        self.assertEqual(self.bide_json("audit")["accepted"], 4)

    def test_noise_anywhere_is_repaired(self):
        shutil.copytree(f"{self.folder}/data", f"{self.folder}/good")
        size = len(self.journal().rstrip(b"\0"))
        chance = random.Random(7)
        for round_ in range(15):
            shutil.rmtree(f"{self.folder}/data")
            shutil.copytree(f"{self.folder}/good", f"{self.folder}/data")
            offset, length = chance.randrange(size), chance.choice((1, 8, 60, 400))
            with open(f"{self.folder}/data/{self.segment()}", "r+b") as file:
                file.seek(offset)
                file.write(chance.randbytes(min(length, size - offset)))
            with self.subTest(round=round_, offset=offset, length=length):
                self.repaired("--keep-as", f"damaged{round_}")

    def test_compacting_gives_back_what_done_jobs_needed_and_a_damaged_snapshot_is_repaired(self):
        with open(f"{self.folder}/large", "wb") as file:
            file.write(random.Random(1).randbytes(500_000))
        for _ in range(10):
            self.bide("enqueue", "go", "@large", "--queue", "other")
        self.bide("work", "--queue", "other", "--shell", "exit 0", "--drain", "--quiet")
        report = self.bide_json("store", "compact", "data")
        self.assertLess(report["after_bytes"], report["before_bytes"] / 2)
        snapshot = next(name for name in os.listdir(f"{self.folder}/data") if name.startswith("snapshot-"))
        shutil.copytree(f"{self.folder}/data", f"{self.folder}/good")
        path = f"{self.folder}/data/{snapshot}"
        with open(path, "rb") as file:
            content = bytearray(file.read())
        content[-60] ^= 1  # In the rows: the last block, before it the last of them.
        with open(path, "wb") as file:
            file.write(content)
        self.assertEqual(self.run_bide("job", "list")[0], 65)
        report = self.repaired()
        self.assertEqual(report["lost"][0]["file"], snapshot)
        self.assertIn("jobs in it are lost", report["lost"][0]["text"])

    def test_a_store_without_damage_is_left_alone(self):
        before = self.journal()
        self.assertIn("nothing to repair", self.bide("store", "repair", "data"))
        self.assertEqual(self.journal(), before)
        self.assert_fails(66, "gone", "store", "repair", "gone")

    def test_a_backup_is_restored(self):
        saved = self.bide_json("store", "backup", "data", "saved")
        self.assertEqual(saved["live_jobs"], 5)
        shutil.rmtree(f"{self.folder}/data")
        self.bide("store", "restore", "saved", "data")
        self.assertEqual(self.bide_json("job", "show", self.ids[0])["body"], "body 0" * 20)
        self.assertTrue(self.bide_json("audit")["ok"])

    def test_a_second_backup_takes_the_place_of_the_first(self):
        self.bide("store", "backup", "data", "saved")
        self.bide("enqueue", "later")
        self.assertEqual(self.bide_json("store", "backup", "data", "saved/")["live_jobs"], 6)
        self.bide("store", "check", "saved")
        self.assertEqual(sorted(os.listdir(self.folder)), ["data", "saved"])

    def test_a_backup_overwrites_nothing_else(self):
        os.makedirs(f"{self.folder}/letters/of")
        self.assert_fails(73, "letters", "store", "backup", "data", "letters")
        self.assert_fails(64, "within the store", "store", "backup", "data", "data/saved")
        # A store that somebody works in is no backup any more.
        self.bide("store", "backup", "data", "saved")
        self.bide("enqueue", "k", "--url", "bide:saved")
        self.assert_fails(73, "no backup that was left as it was made", "store", "backup", "data", "saved")

    def test_a_store_in_use_is_backed_up_by_who_uses_it(self):
        with self.start("work", "--shell", "sleep 0.01", "--quiet") as worker:
            while not os.path.exists(f"{self.folder}/data/socket"):
                time.sleep(0.02)
            for i in range(3):
                self.bide("enqueue", "more")
                saved = self.bide_json("store", "backup", "data", "saved")
                self.assertGreater(saved["bytes"], 0)
                self.assertTrue(json.loads(self.bide("store", "check", "saved", "--json"))["ok"])
            self.bide("store", "restore", "saved", "second")
            self.assertTrue(self.bide_json("audit", "--url", "bide:second")["ok"])
            worker.terminate()

    def test_a_backup_that_was_cut_off_does_not_pass_for_a_whole_one(self):
        code, _, _ = self.run_bide("store", "backup", "data", "saved",
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)))
        self.assertNotEqual(code, 0)
        self.assertFalse(os.path.exists(f"{self.folder}/saved"))
        self.assertEqual(self.run_bide("store", "check", "saved.unfinished")[0], 65)
        self.assertEqual(self.run_bide("job", "list", "--url", "bide:saved.unfinished")[0], 65)
        self.assertEqual(self.bide_json("store", "backup", "data", "saved")["live_jobs"], 5)
        self.assertFalse(os.path.exists(f"{self.folder}/saved.unfinished"))

    def test_compacting_keeps_what_the_settings_of_the_store_keep(self):
        job = self.bide_json("enqueue", "go", "--queue", "other")["id"]
        self.bide("work", "--queue", "other", "--shell", "exit 0", "--drain", "--quiet")
        self.bide_json("store", "compact", "bide:data?result_retention=1d&done_limit=5")
        self.assertEqual(self.bide_json("job", "show", job)["state"], "done")
        self.assert_fails(64, "twice", "store", "compact", "bide:data?done_limit=1&done_limit=2")

    def test_compacting_keeps_every_job(self):
        report = self.bide_json("store", "compact", "data")
        self.assertGreater(report["live_bytes"], 0)
        self.assertIn("the current segment is kept", report["why_not_less"])
        self.assertEqual(self.bide_json("audit")["live"], 5)
        self.bide("store", "check", "data")


if __name__ == "__main__":
    command.main()
