"""What a server must not do to its callers and its machine: rules as functions from a View to texts."""

from collections import Counter


def memory(view):
    """More memory than the limits allow."""
    over = [e for e in view.by_type["memory"] if e["anon"] > e["baseline"] + e["limit"]]
    if over:
        worst = max(over, key=lambda event: event["anon"])
        mib = lambda name: f"{worst[name] / 2**20:.0f} MiB"
        yield f"{mib('anon')} in use; {mib('baseline')} at the start, {mib('limit')} allowed on top of it"


def refused(view):
    """Somebody who did nothing wrong was refused."""
    bad = [e for e in view.by_type["request"] if e["innocent"] and not 200 <= (e["status"] or 0) < 300]
    if bad:
        total = sum(e["innocent"] for e in view.by_type["request"])
        yield f"{len(bad)} of {total} innocent requests: {dict(Counter((e['status'], e['code']) for e in bad))}"


def rejected(view):
    """A request without a mistake was called wrong."""
    fine = (None, 408, 409, 429)
    bad = [e for e in view.by_type["enqueue"] if e["verdict"] == "refused" and (e["status"] or 500) < 500 and e["status"] not in fine]
    if bad:
        yield f"{len(bad)} enqueues: {dict(Counter((e['status'], e['code']) for e in bad))}, such as {bad[0]['label']}"
    bad = [e for kind in ("settle", "poll") for e in view.by_type[kind]
           if e["verdict"] == "refused" and e.get("status") in (400, 401, 403, 413, 415, 422)]
    if bad:
        yield f"{len(bad)} {bad[0]['type']}s: {dict(Counter((e['status'], e['code']) for e in bad))}"


def check(view):
    """A promise that the scenario looked at itself."""
    for event in view.by_type["check"]:
        if not event["ok"]:
            yield f"{event['name']}: {event['text']}"


RULES = [memory, refused, rejected, check]
