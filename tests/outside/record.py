"""The record of a run: what was sent, answered, leased and settled, kept outside the server, with content as digests.

Every event is one JSON object a line with `type` and, for requests, `t0` (before the first byte was sent) and `t1` (after the
whole answer was read), in seconds of the monotonic clock. What the checker concludes, it concludes from these bounds.

  enqueue   label id queue kind sha size content_type headers retry delay_ms keyed verdict status code
            verdict: acked | refused (the server said no, or never saw it) | unknown (the connection ended)
  poll      poll worker queues max lease_ms verdict count held_ms     verdict: answered | refused | unknown
  lease     poll worker id token attempt age_ms held_ms lease_ms, and label queue kind sha size content_type headers retry
  extend    id token lease_ms verdict                                 verdict: kept | lost | refused | unknown
  settle    id token outcome after_ms sha content_type verdict code   verdict: accepted | refused | unknown
  cancel    id verdict
  run       a program's run by `bide work --exec`: worker id attempt token_less sha, t0 start, t1 end or null
  worker    a `bide work` process: worker url lease_ms, t0 started, t1 ended, ended: exit | killed
  delivery  a callback: id attempt token label sha size content_type headers answered
  told      id state sha            what `on_done` was told
  replay    id
  running   queue running           the server's count of running jobs, asked between t0 and t1
  memory    anon limit baseline     bytes
  request   who status code innocent
  fault     name
  outage    from t0, when the server was ended or stopped, to t1, when it answered again
  final     id label state attempts counts reason, and content where the job still has it
  result    id state sha content_type
  audit     document dead
  check     name ok text            a promise that a scenario itself looked at
"""

import json
import threading
import time


class Record:
    def __init__(self, path=None):
        self.path = path
        self.events = []
        self._file = open(path, "w", encoding="utf-8") if path else None
        self._mutex = threading.Lock()

    def add(self, type, **fields):
        event = {"type": type} | fields
        event.setdefault("t1", now())
        with self._mutex:
            event["n"] = len(self.events)
            self.events.append(event)
            if self._file:
                self._file.write(json.dumps(event) + "\n")
        return event

    def of(self, *types):
        with self._mutex:
            return [event for event in self.events if event["type"] in types]

    def close(self):
        with self._mutex:
            if self._file:
                self._file.close()
                self._file = None


def now():
    return time.monotonic()


def load(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
