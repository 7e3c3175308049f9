#!/usr/bin/env python3
"""The checker on made-up histories: each kind of violation is found, and a clean history has none."""

import unittest

import checker


class History:
    """Writes events as the record does, with a clock that the test moves."""

    def __init__(self):
        self.events = []

    def add(self, type, **fields):
        self.events.append({"type": type, "n": len(self.events)} | fields)
        return self

    def enqueue(self, label="a", id="1", verdict="acked", t=0.0, **more):
        fields = dict(label=label, id=id, verdict=verdict, status=201, code="", keyed=False, queue="q", kind="k", sha="s", size=1,
                      content_type="c", headers={"x-outside": label}, retry="none", delay_ms=0, t0=t, t1=t + 0.1)
        return self.add("enqueue", **(fields | more))

    def poll(self, t=1.0, verdict="answered", **more):
        return self.add("poll", **(dict(worker="w", queues=["q"], max=1, lease_ms=10_000, verdict=verdict, t0=t, t1=t + 0.1)
                                   | more))

    def lease(self, token, t=1.0, id="1", label="a", attempt=1, **more):
        fields = dict(poll=0, worker=f"w{token}", id=id, token=str(token), attempt=attempt, age_ms=0, held_ms=0,
                      lease_ms=10_000, label=label, queue="q", kind="k", sha="s", size=1, content_type="c",
                      headers={"x-outside": label}, retry="none", t0=t, t1=t + 0.1)
        return self.add("lease", **(fields | more))

    def extend(self, token, t, verdict="kept"):
        return self.add("extend", id="1", token=str(token), lease_ms=10_000, verdict=verdict, t0=t, t1=t + 0.1)

    def settle(self, token, t=2.0, outcome="done", verdict="accepted", id="1", **more):
        return self.add("settle", **(dict(id=id, token=str(token), outcome=outcome, after_ms=None, sha="r", content_type=None,
                                          verdict=verdict, code="", t0=t, t1=t + 0.1) | more))

    def final(self, state="done", id="1", label="a", attempts=1, **more):
        return self.add("final", id=id, label=label, state=state, attempts=attempts, t1=99, **more)

    def audit(self, **more):
        document = dict(ok=True, accepted=1, done=1, removed=0, live=0, details={"dead": 0})
        return self.add("audit", document=document | more, complete=True)

    def kinds(self):
        return {kind for kind, _ in checker.violations(self.events)}


class CheckerTest(unittest.TestCase):
    def clean(self):
        return History().enqueue().poll().lease(5).settle(5)

    def assert_only(self, kind, history):
        self.assertEqual(history.kinds(), {kind})

    def test_a_clean_history_has_no_violation(self):
        self.assertEqual(self.clean().final().audit().kinds(), set())

    def test_confirmed_and_gone_is_lost(self):
        self.assert_only("lost", History().enqueue().final("absent", attempts=None))

    def test_an_enqueue_of_unknown_end_may_be_gone(self):
        self.assertEqual(History().enqueue(verdict="unknown", id=None).kinds(), set())

    def test_cancelled_and_gone_is_fine(self):
        history = History().enqueue().add("cancel", id="1", verdict="accepted", t0=1, t1=2).final("absent", attempts=None)
        self.assertEqual(history.kinds(), set())

    def test_leased_and_gone_is_vanished(self):
        self.assert_only("vanished", self.clean().final("absent"))

    def test_a_job_that_nobody_enqueued_is_unexpected(self):
        self.assert_only("unexpected", History().poll().lease(5, label="b").settle(5))

    def test_a_job_that_was_refused_is_unexpected(self):
        self.assert_only("unexpected", History().enqueue(verdict="refused", status=503).poll().lease(5).settle(5))

    def test_one_label_with_two_ids_is_a_duplicate(self):
        self.assert_only("duplicate", self.clean().lease(6, id="2").settle(6, id="2"))

    def test_one_lease_in_two_answers_is_found(self):
        self.assert_only("twice", self.clean().lease(5, worker="other"))

    def test_other_bytes_types_and_headers_are_found(self):
        for change in ({"sha": "z"}, {"content_type": "z"}, {"headers": {}}, {"kind": "z"}, {"retry": "z"}):
            self.assert_only("content", History().enqueue().poll().lease(5, **change).settle(5))

    def test_another_result_is_found(self):
        self.assert_only("result", self.clean().final().add("result", id="1", state="done", sha="z", content_type=None))

    def test_who_asked_to_be_told_and_was_not_is_found(self):
        history = History().enqueue(on_done=True).poll().lease(5).settle(5).final(drained=True)
        self.assert_only("untold", history)
        self.assertEqual(history.add("told", id="1", state="done", sha="r").kinds(), set())
        self.assert_only("untold", history.add("told", id="1", state="done", sha="z"))
        self.assert_only("untold", self.clean().final().add("told", id="1", state="done", sha="r"))

    def test_before_the_delay_is_early(self):
        self.assert_only("early", History().enqueue(delay_ms=5000).poll().lease(5).settle(5))

    def test_before_the_wait_of_a_retry_is_early(self):
        history = History().enqueue().poll().lease(5).settle(5, outcome="retry", after_ms=3000).lease(6, t=4, attempt=2)
        self.assert_only("early", history.settle(6, t=5))

    def test_a_lease_after_done_is_found(self):
        self.assert_only("run_after_settle", self.clean().lease(6, t=3, attempt=2))

    def test_a_lease_after_a_cancel_is_found(self):
        cancelled = dict(id="1", verdict="accepted", t0=1, t1=2)
        self.assert_only("run_after_cancel", History().enqueue().add("cancel", **cancelled).lease(5, t=3).settle(5, t=4))
        self.assertEqual(History().enqueue().lease(5, t=0.5).add("cancel", **cancelled).settle(5, t=3).kinds(), set())

    def test_a_replayed_job_may_run_again(self):
        history = History().enqueue().poll().lease(5).settle(5, outcome="dead").add("replay", id="1")
        self.assertEqual(history.lease(6, t=3).settle(6, t=4).final().kinds(), set())

    def test_two_valid_leases_overlap(self):
        self.assert_only("overlap", History().enqueue().poll().lease(5).lease(6, t=8, attempt=2))

    def test_a_lease_that_is_over_does_not_overlap(self):
        self.assertEqual(History().enqueue().poll().lease(5).lease(6, t=12, attempt=2).kinds(), set())

    def test_an_extended_lease_overlaps_later(self):
        self.assert_only("overlap", History().enqueue().poll().lease(5).extend(5, 9).lease(6, t=15, attempt=2))

    def test_a_lease_with_an_unknown_settlement_may_be_over(self):
        history = History().enqueue().poll().lease(5).settle(5, outcome="failed", verdict="unknown").lease(6, t=3, attempt=2)
        self.assertEqual(history.kinds(), set())

    def test_two_programs_at_once_overlap(self):
        run = dict(id="1", label="a", sha="s", size=1, content_type="c", kind="k", queue="q")
        history = History().enqueue(sha="s").add("worker", worker="p", queues=["q"], ended="exit", t0=0, t1=50, unseen=0,
                                                    lease_ms=15_000)
        history.add("run", worker="p", attempt=1, t0=1, t1=20, **run).add("run", worker="o", attempt=2, t0=10, t1=11, **run)
        self.assert_only("overlap", history)
        self.assertEqual(history.add("outage", t0=2, t1=9).kinds(), set())

    def test_a_stale_settlement_that_is_accepted_is_found(self):
        history = History().enqueue().poll().lease(5).lease(6, t=12, attempt=2).settle(5, t=13, outcome="failed")
        self.assert_only("stale", history)

    def test_a_settlement_sent_again_is_not_stale(self):
        history = History().enqueue().poll().lease(5).settle(5, outcome="failed", verdict="unknown", t=2)
        history.lease(6, t=12, attempt=2).settle(5, t=13, outcome="failed").settle(6, t=14)
        self.assertEqual(history.kinds(), set())

    def test_the_same_attempt_twice_is_uncounted(self):
        self.assert_only("uncounted", History().enqueue().poll().lease(5).lease(6, t=12))

    def test_a_returned_attempt_comes_again(self):
        self.assertEqual(History().enqueue().poll().lease(5).settle(5, outcome="returned").lease(6, t=3).kinds(), set())

    def test_dead_unrun_is_charged(self):
        self.assert_only("charged", History().enqueue().poll().final("dead", attempts=1, reason="exhausted"))

    def test_a_lost_answer_explains_as_many_attempts_as_it_asked_for(self):
        history = History().enqueue().enqueue("b", "2").poll(verdict="unknown")
        history.final("dead", attempts=1)
        self.assertEqual(history.kinds(), set())
        self.assert_only("charged", history.final("dead", id="2", label="b", attempts=1))

    def test_an_attempt_that_was_skipped_is_charged(self):
        self.assert_only("charged", History().enqueue().poll().lease(5, attempt=2).settle(5).final(attempts=2))

    def test_an_old_lease_is_found(self):
        history = History().enqueue().poll().lease(5, age_ms=10_500)
        self.assertIn("aged", history.kinds())

    def test_more_running_than_asked_for_is_found(self):
        history = self.clean().add("running", queue="q", running=70, t0=1.0, t1=1.1)
        self.assert_only("overrun", history)
        self.assertEqual(self.clean().poll(t=1.0, max=10).add("running", queue="q", running=70, t0=1.0, t1=1.1).kinds(), set())

    def test_what_an_answer_lacks_may_be_on_its_way_but_not_for_long(self):
        history = self.clean().poll(t=1.0, max=100, count=10).add("running", queue="q", running=150, t0=2.0, t1=2.1)
        self.assertEqual(history.kinds(), set())
        self.assert_only("overrun", history.add("running", queue="q", running=150, t0=20.0, t1=20.1))

    def test_memory_beyond_the_limit_is_found(self):
        self.assert_only("memory", History().add("memory", anon=101, limit=60, baseline=40))
        self.assertEqual(History().add("memory", anon=100, limit=60, baseline=40).kinds(), set())

    def test_an_innocent_who_is_refused_or_cut_off_is_found(self):
        self.assert_only("refused", History().add("request", who="i", status=503, code="unavailable", innocent=True))
        self.assert_only("refused", History().add("request", who="i", status=None, code="closed", innocent=True))
        self.assertEqual(History().add("request", who="i", status=503, code="", innocent=False).kinds(), set())

    def test_a_request_that_is_called_wrong_is_found(self):
        self.assert_only("rejected", History().enqueue(verdict="refused", status=400, code="invalid_json", id=None))
        self.assertEqual(History().enqueue(verdict="refused", status=507, code="disk_full", id=None).kinds(), set())

    def test_done_without_a_word_is_found(self):
        self.assertIn("state", History().enqueue().final("done", attempts=0).kinds())

    def test_not_finished_after_the_drain_is_found(self):
        self.assert_only("state", History().enqueue().final("ready", attempts=0, drained=True))

    def test_an_audit_that_disagrees_is_found(self):
        self.assert_only("audit", self.clean().final().audit(ok=False))
        self.assert_only("audit", self.clean().final().audit(accepted=2))
        self.assert_only("audit", self.clean().final().audit(details={"dead": 1}))

    def test_a_promise_that_a_scenario_saw_broken_is_found(self):
        self.assert_only("check", History().add("check", name="stop", ok=False, text=""))

    def test_a_fault_that_did_not_fire_makes_a_run_invalid(self):
        history = self.clean().final().add("plan", faults={"kill": 2}, minimum={}).add("fault", name="kill")
        self.assertEqual(len(checker.invalid(history.events)), 1)
        self.assertEqual(checker.invalid(history.add("fault", name="kill").events), [])

    def test_too_little_load_makes_a_run_invalid(self):
        history = self.clean().final().add("plan", faults={}, minimum={"acked": 2})
        self.assertEqual(len(checker.invalid(history.events)), 1)

    def test_a_job_that_was_not_read_back_makes_a_run_invalid(self):
        self.assertEqual(len(checker.invalid(self.clean().add("plan", faults={}, minimum={}).events)), 1)

    def test_every_rule_has_a_history_that_breaks_it(self):
        with open(__file__, encoding="utf-8") as file:
            text = file.read()
        for rule in checker.RULES:
            self.assertIn(f'"{rule.__name__}"', text)


if __name__ == "__main__":
    unittest.main()
