"""What must not become of a job: rules as functions from a View to texts."""

from collections import Counter, defaultdict

CONTENT = ("kind", "queue", "sha", "size", "content_type", "headers", "retry")


def lost(view):
    """Confirmed, never handed to anybody, and not there any more."""
    for label, id in view.acked():
        if _absent(view, id) and not _handed(view, id):
            yield f"{label} {id} was confirmed and is gone"


def vanished(view):
    """Handed out at least once, and without a last record."""
    for label, id in view.acked():
        if _absent(view, id) and _handed(view, id):
            yield f"{label} {id} was leased and is gone"


def _absent(view, id):
    final = view.finals.get(id)
    return final is not None and final["state"] == "absent" and id not in view.cancelled


def _handed(view, id):
    return id in view.leases or id in view.runs or id in view.deliveries


def unexpected(view):
    """There is a job that nobody enqueued, or whose enqueuing was refused."""
    for kind in ("lease", "delivery", "final"):
        for event in view.by_type[kind]:
            if event.get("state") in ("absent", "done"):
                continue  # Of a job that is done not everything is kept.
            if event.get("kind") == "bide.on_done":
                continue  # The server's own.
            enqueues = view.enqueues.get(event.get("label"))
            if not enqueues:
                yield f"{kind} of {event['id']} with the label {event.get('label')!r}, which nobody enqueued"
            elif all(each["verdict"] == "refused" for each in enqueues):
                yield f"{kind} of {event['id']} {event['label']}, which was refused ({enqueues[-1].get('status')})"


def duplicate(view):
    """One job became two."""
    for label, ids in view.ids.items():
        if len(ids) > 1:
            yield f"{label} is {len(ids)} jobs: {sorted(ids)}"


def content(view):
    """What came back is not what was sent."""
    for kind in ("lease", "delivery", "final", "run"):
        for event in view.by_type[kind]:
            label = event.get("label") or view.label.get(event["id"])
            sent = view.enqueued(label)
            if not sent or event.get("sha") is None:
                continue
            names = [name for name in CONTENT if name in event and event[name] != sent[name]]
            if kind in ("run", "delivery") and not sent["content_type"]:
                names = [name for name in names if name != "content_type"]  # Those are told a default.
            if names:
                shown = {name: (sent[name], event[name]) for name in names}
                yield f"{kind} of {event['id']} {label}: (sent, seen) {shown} {event.get('note', '')}"


def result(view):
    """The result is not what the accepted settlement said."""
    for id, event in view.results.items():
        said = [l.settled() for l in view.leases.get(id, ()) if l.settled() and l.settled()["outcome"] == "done"]
        for settle in said:
            if settle.get("sha") and event["state"] == "done" and event.get("sha") != settle["sha"]:
                yield f"{id}: the settlement's result was {settle['sha']}, the server has {event.get('sha')}"
            if settle.get("sha") and settle.get("content_type") and settle["content_type"] != event.get("content_type"):
                yield f"{id}: result of type {settle['content_type']}, the server has {event.get('content_type')}"


def untold(view):
    """`on_done` was not told of a settlement that was accepted, or was told something else."""
    told = defaultdict(list)
    for event in view.by_type["told"]:
        told[event["id"]].append(event)
        if not any(each.get("on_done") for each in view.enqueues.get(view.label.get(event["id"]), ())):
            yield f"told of {event['id']}, for which nobody asked"
    for id, final in view.finals.items():
        sent = view.enqueued(view.label.get(id))
        if not sent or not sent.get("on_done") or not final.get("drained"):
            continue
        for lease in view.leases.get(id, ()):
            settle = lease.settled()
            if settle and settle["outcome"] in ("done", "dead"):
                if not told[id]:
                    yield f"{id} was settled as {settle['outcome']}, and nobody was told"
                for event in told[id]:
                    if event["state"] != settle["outcome"] or (event["sha"] and event["sha"] != settle["sha"]):
                        yield f"{id} was settled as {settle['outcome']} {settle['sha']}; told: {event['state']} {event['sha']}"


def state(view):
    """The last state of a job has no cause, or it came to no end."""
    for id, final in view.finals.items():
        label = view.label.get(id)
        sent = view.enqueued(label) if label else None
        if not sent or id in view.replayed:
            continue
        said = {e["outcome"] for l in view.leases.get(id, ()) for e in l.settles if e["verdict"] != "refused"}
        elsewhere = id in view.runs or id in view.deliveries
        if final["state"] == "done" and "done" not in said and not elsewhere:
            yield f"{label} {id} is done, and nobody said so"
        if final["state"] not in ("done", "dead", "absent") and final.get("drained"):
            yield f"{label} {id} is {final['state']} after everything was healed and drained"


def audit(view):
    """The server's own account does not agree with the record."""
    for event in view.by_type["audit"]:
        said = event["document"]
        if not said["ok"] or said["accepted"] != said["done"] + said["removed"] + said["live"]:
            yield f"audit: {said}"
        states = Counter(final["state"] for final in view.finals.values())
        if event.get("complete"):
            dead = said["details"]["dead"]
            if dead != states["dead"]:
                yield f"audit counts {dead} dead, {states['dead']} were read back"
            if said["done"] != states["done"]:
                yield f"audit counts {said['done']} done, {states['done']} were read back"


RULES = [lost, vanished, unexpected, duplicate, content, result, untold, state, audit]
