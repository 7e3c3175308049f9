"""Checks a history against all rules; README.md says what each one means.

    checker.py HISTORY              prints what is wrong with it, and ends with 1 when something is
"""

import json
import sys
from collections import Counter

import rules_jobs
import rules_leases
import rules_server
from record import load
from view import View

RULES = rules_jobs.RULES + rules_leases.RULES + rules_server.RULES


def violations(events):
    """Every violation as (kind, text)."""
    view = View(events)
    return [(each.__name__, text) for each in RULES for text in each(view)]


def invalid(events):
    """Why the run proves nothing: planned faults that did not fire, too little load, jobs that were not read back."""
    view, reasons = View(events), []
    fired = Counter(event["name"] for event in view.by_type["fault"])
    for plan in view.by_type["plan"]:
        for name, count in plan["faults"].items():
            if fired[name] < count:
                reasons.append(f"the fault {name} fired {fired[name]} of {count} times")
        counts = {"acked": sum(1 for _ in view.acked()), "leases": len(view.by_type["lease"]),
                  "settled": sum(e["verdict"] == "accepted" for e in view.by_type["settle"]),
                  "runs": len(view.by_type["run"]), "deliveries": len(view.by_type["delivery"]),
                  "requests": len(view.by_type["request"])}
        for name, count in plan["minimum"].items():
            if counts[name] < count:
                reasons.append(f"{counts[name]} {name}, at least {count} are needed")
        unread = [id for _, id in view.acked() if id not in view.finals] if plan.get("read_back", True) else []
        if unread:
            reasons.append(f"{len(unread)} confirmed jobs were not read back, such as {unread[0]}")
    return reasons


if __name__ == "__main__":
    found = violations(load(sys.argv[1]))
    for kind, text in found:
        print(f"{kind}: {text}")
    print(json.dumps(Counter(kind for kind, _ in found)))
    sys.exit(bool(found))
