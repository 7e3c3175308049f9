"""A history, arranged by job: what the rules of the checker look at."""

from collections import defaultdict

TICK = 0.003  # Milliseconds are rounded, by the server and by us.
ROUNDED_UP = 0.02  # An age is rounded up at each step on the way of a lease, so that nobody takes it for younger than it is.


class Lease:
    """One lease as somebody got it, with what is certain about its time."""

    def __init__(self, event):
        self.event = event
        self.token = int(event["token"])
        self.attempt = event["attempt"]
        self.length = event["lease_ms"] / 1000
        age, held = event.get("age_ms", 0) / 1000, event.get("held_ms", 0) / 1000
        # The answer left the server after t0 + held and came before t1; the lease was given `age` before that.
        self.granted_earliest = event["t0"] + held - age - TICK
        self.granted_latest = event["t1"] - max(0, age - ROUNDED_UP) + TICK
        self.settles = []  # In order of time.
        self.extends = []

    def valid_until(self):
        """Until then it is certainly valid, unless it is settled."""
        times = [self.granted_earliest] + [e["t0"] for e in self.extends if e["verdict"] == "kept"]
        return max(times) + self.length

    def may_have_ended(self):
        """From then on it may have been settled."""
        return min((e["t0"] for e in self.settles if e["verdict"] != "refused"), default=float("inf"))

    def settled(self):
        """The settlement that the server accepted, or None."""
        return next((e for e in self.settles if e["verdict"] == "accepted"), None)

    def may_be_returned(self):
        return any(e["outcome"] == "returned" and e["verdict"] != "refused" for e in self.settles)


class View:
    def __init__(self, events):
        self.events = events
        self.enqueues = defaultdict(list)  # By label.
        self.ids = defaultdict(set)        # Of a label.
        self.label = {}                    # Of an id.
        self.leases = defaultdict(list)    # By id, in order of tokens.
        self.runs = defaultdict(list)
        self.deliveries = defaultdict(list)
        self.finals = {}
        self.results = {}
        self.cancelled = {}                # By id: when it was confirmed, or None.
        self.replayed = set()
        self.by_type = defaultdict(list)
        for event in events:
            self.by_type[event["type"]].append(event)
        self._jobs()
        self._leases()

    def _jobs(self):
        for event in self.by_type["enqueue"]:
            self.enqueues[event["label"]].append(event)
        for event in self.events:
            kind = event["type"]
            if kind in ("enqueue", "lease", "final", "delivery", "run") and event.get("id") and event.get("label"):
                if kind != "enqueue" or event["verdict"] == "acked":
                    self.ids[event["label"]].add(event["id"])
                    self.label.setdefault(event["id"], event["label"])
            if kind == "run":
                self.runs[event["id"]].append(event)
            elif kind == "delivery":
                self.deliveries[event["id"]].append(event)
            elif kind == "final":
                self.finals[event["id"]] = event
            elif kind == "result":
                self.results[event["id"]] = event
            elif kind == "cancel" and event["verdict"] != "refused":
                self.cancelled[event["id"]] = event["t1"] if event["verdict"] == "accepted" else None
            elif kind == "replay":
                self.replayed.add(event["id"])

    def _leases(self):
        by_token = {}
        for event in self.by_type["lease"]:
            lease = Lease(event)
            known = by_token.get((event["id"], lease.token))
            if known:
                known.again = event  # The same lease in two answers: see the rule `twice`.
                continue
            by_token[event["id"], lease.token] = lease
            self.leases[event["id"]].append(lease)
        for leases in self.leases.values():
            leases.sort(key=lambda lease: lease.token)
        for event in self.by_type["settle"]:
            if lease := by_token.get((event["id"], int(event["token"]))):
                lease.settles.append(event)
        for event in self.by_type["extend"]:
            if lease := by_token.get((event["id"], int(event["token"]))):
                lease.extends.append(event)
        for lease in by_token.values():
            lease.settles.sort(key=lambda event: event["t0"])

    def acked(self):
        """Each (label, id) that was confirmed."""
        for label, events in self.enqueues.items():
            for event in events:
                if event["verdict"] == "acked":
                    yield label, event["id"]
                    break

    def enqueued(self, label):
        """The first enqueue event of a label, or None."""
        events = self.enqueues.get(label)
        return events[0] if events else None
