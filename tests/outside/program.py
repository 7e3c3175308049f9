"""What `bide work --exec` runs: writes down what it was given, takes its time, and says what becomes of the job.

    program.py FILE SECONDS         the body's first bytes may name another end: see STATUS
"""

import hashlib
import json
import os
import signal
import sys
import time


def line(file, **fields):
    """One write: lines of several processes do not mix."""
    data = (json.dumps(fields) + "\n").encode()
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(handle, data)
    os.close(handle)


def main():
    file, seconds = sys.argv[1], float(sys.argv[2])
    begun = time.monotonic()
    body = sys.stdin.buffer.read()
    environment = os.environ
    run = f"{os.getpid()}-{begun}"
    attempt = int(environment["BIDE_ATTEMPT"])
    line(file, event="begin", run=run, t=begun, id=environment["BIDE_JOB_ID"], attempt=attempt,
         label=environment.get("BIDE_HEADER_X_OUTSIDE"), kind=environment["BIDE_KIND"], queue=environment["BIDE_QUEUE"],
         sha=hashlib.sha256(body).hexdigest()[:24], size=len(body), content_type=environment.get("BIDE_CONTENT_TYPE", ""))

    def stopped(*_):
        line(file, event="end", run=run, t=time.monotonic())
        os._exit(75)

    signal.signal(signal.SIGTERM, stopped)
    time.sleep(seconds)
    sys.stdout.write(f"result of {environment['BIDE_JOB_ID']}")
    line(file, event="end", run=run, t=time.monotonic())
    if attempt == 1 and environment["BIDE_JOB_ID"].endswith(("0", "1")):
        return 75  # Again, as the job's retry policy says.
    return 0


sys.exit(main())
