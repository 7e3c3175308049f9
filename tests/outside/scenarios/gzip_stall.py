"""Strangers without a token send compressed bodies to routes that take none, and stall: others are not refused for it."""

import gzip

import wire
from context import Watch
from innocent import surrounded, wait_calls
from readback import read_back

MIB = 2**20
ROUTES = ("GET /healthz", "GET /readyz", "GET /v1/openapi.json", "GET /v1/pressure", "POST /v1/jobs", "GET /nowhere")


def run(context):
    context.plan(faults={"gzip stall": 1}, minimum={"acked": 20, "requests": 40})
    held = 64 * MIB
    server = context.server(tokens=True, limits={"held_bytes": held, "body_bytes": held // 8}).start()
    Watch(context, server, memory_limit=held + 64 * MIB).start()
    surrounded(context, server, 4, lambda innocents: attack(context, server, innocents, held // 8))
    read_back(server.client(), context.record)


def attack(context, server, innocents, body_bytes):
    wait_calls(innocents, 3)
    packed = gzip.compress(bytes(body_bytes // 2 + body_bytes // 16), 9)
    strangers = []
    for number in range(48 if context.long else 24):
        # The first eight as it was once seen; then every route on its own.
        method, path = ROUTES[0 if number < 8 else number % len(ROUTES)].split()
        connection = wire.Connection(server.where()[0], timeout=60)
        head = (f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
                f"Content-Length: {len(packed) + 10}\r\n\r\n")
        try:
            connection.send(head.encode() + packed)
        except wire.Cut:
            pass  # Refused before it was through: as it should be.
        strangers.append(connection)
    context.record.add("fault", name="gzip stall")
    wait_calls(innocents, 15)
    for connection in strangers:
        connection.close()
    wait_calls(innocents, 2)
