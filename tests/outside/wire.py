"""HTTP/1.1 over plain sockets: every framing a client may use, and what becomes of a request when its connection ends."""

import gzip
import json
import socket
import ssl
import time


class Cut(Exception):
    """The connection ended before the whole answer was read. `sent`: whether the server may have seen the request."""

    def __init__(self, text, sent):
        super().__init__(text)
        self.sent = sent


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)

    def code(self):
        """The stable code of a problem document, or nothing."""
        try:
            return json.loads(self.body).get("code", "")
        except (ValueError, AttributeError):
            return ""


FRAMINGS = ("length", "chunked", "gzip", "gzip-chunked")


def encode(method, path, body=None, headers=None, framing="length", rng=None):
    """A request as (head, body) in bytes."""
    fields = {"Host": "127.0.0.1"} | (headers or {})
    if body is not None:
        if framing.startswith("gzip"):
            body = gzip.compress(body, 1)
            fields["Content-Encoding"] = "gzip"
        if framing.endswith("chunked"):
            fields["Transfer-Encoding"] = "chunked"
            body = chunks(body, rng, tiny=framing == "tiny-chunked")
        else:
            fields["Content-Length"] = str(len(body))
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
    return head.encode(), body or b""


def chunks(body, rng, tiny=False):
    """`tiny`: thousands of chunks in what a server reads at once."""
    parts, at = [], 0
    while at < len(body):
        size = rng.choice((1, 7, 100, 4096, 16384, 65536)) if rng else 16384
        size = 1 + size % 60 if tiny else max(size, len(body) // 500)
        part = body[at:at + size]
        parts.append(b"%x\r\n%s\r\n" % (len(part), part))
        at += len(part)
    return b"".join(parts) + b"0\r\n\r\n"


SO_SNDBUFFORCE = 32


class Connection:
    """One connection to `address`: a (host, port) pair or the path of a Unix socket."""

    def __init__(self, address, tls=None, timeout=60, receive_buffer=None):
        try:
            if receive_buffer:  # Small: what is not read stays with the server.
                self.socket = socket.socket()
                self.socket.settimeout(timeout)
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
                self.socket.connect(address)
            elif isinstance(address, str):
                self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.socket.settimeout(timeout)
                self.socket.connect(address)
            else:
                self.socket = socket.create_connection(address, timeout)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if tls:
                    self.socket = tls.wrap_socket(self.socket)
        except OSError as error:
            raise Cut(f"connect: {error}", False) from error
        self.buffer = b""

    def buffer_sends(self, size):
        """Lets the system take so many bytes at once, where it may; a server then finds them without a gap."""
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, size)
        except OSError:
            pass

    def close(self):
        try:
            self.socket.close()
        except OSError:
            pass

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Cut(f"send: {error}", True) from error

    def receive(self, size=262144):
        try:
            data = self.socket.recv(size)
        except OSError as error:
            raise Cut(f"receive: {error}", True) from error
        if not data:
            raise Cut("closed", True)
        return data

    def _line(self):
        while b"\r\n" not in self.buffer:
            self.buffer += self.receive()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def _exactly(self, size):
        parts, have = [self.buffer], len(self.buffer)
        while have < size:
            parts.append(self.receive())
            have += len(parts[-1])
        data = b"".join(parts)
        self.buffer = data[size:]
        return data[:size]

    def read_head(self):
        while True:
            while b"\r\n\r\n" not in self.buffer:
                self.buffer += self.receive()
            head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            status = int(lines[0].split(" ")[1])
            if status != 100:
                break
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return status, headers

    def read_answer(self):
        status, headers = self.read_head()
        if headers.get("transfer-encoding", "").lower() == "chunked":
            parts = []
            while size := int(self._line().split(b";")[0], 16):
                parts.append(self._exactly(size))
                self._line()
            self._line()
            body = b"".join(parts)
        else:
            body = self._exactly(int(headers.get("content-length", "0")))
        if headers.get("content-encoding", "").lower() == "gzip":
            body = gzip.decompress(body)
        return Answer(status, headers, body)

    def call(self, method, path, body=None, headers=None, framing="length", rng=None, apart=0):
        """`apart`: seconds between head and body, so that they come in different packets."""
        head, body = encode(method, path, body, headers, framing, rng)
        if len(body) < 4096 and not apart:
            self.send(head + body)
        else:
            self.send(head)
            time.sleep(apart)
            self._send_body(body)
        answer = self.read_answer()
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
            self.socket = None
        return answer

    def _send_body(self, body):
        """A server that refuses may answer and close before it has read everything: then the answer counts."""
        try:
            self.send(body)
        except Cut as cut:
            try:
                self.buffer += self.receive()
            except Cut:
                raise cut from None


class Client:
    """Calls on one connection, opened again when it was lost. `where()` says where the server is now, and its TLS."""

    def __init__(self, where, timeout=60, headers=None):
        self.where = where
        self.headers = headers or {}  # With every request.
        self.timeout = timeout
        self.connection = None
        self.epoch = None

    def call(self, method, path, body=None, headers=None, framing="length", rng=None, apart=0):
        headers = self.headers | (headers or {})
        self.connect()
        try:
            return self.connection.call(method, path, body, headers, framing, rng, apart)
        except Cut:
            self.drop()
            raise
        except (ValueError, IndexError, EOFError, OSError) as error:
            self.drop()
            raise Cut(f"garbled answer: {error!r}", True) from error

    def connect(self):
        address, tls, epoch = self.where()
        if self.connection is None or self.connection.socket is None or self.epoch != epoch:
            self.drop()
            self.connection, self.epoch = Connection(address, tls, self.timeout), epoch
        return self.connection

    def json(self, method, path, value=None, **more):
        body = None if value is None else json.dumps(value).encode()
        headers = {"Content-Type": "application/json"} | more.pop("headers", {})
        return self.call(method, path, body, headers if body is not None else None, **more)

    def drop(self):
        if self.connection is not None and self.connection.socket is not None:
            self.connection.close()
        self.connection = None


def unverified_tls():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# Raw JSON: what a value looked like in the answer, byte for byte.

_decode = json.JSONDecoder(strict=False).raw_decode
_BLANK = " \t\r\n"


def _skip(text, at):
    while text[at] in _BLANK:
        at += 1
    return at


def raw_object(text, at=0):
    """The fields of the object at `at`, each as (value, its text), and where it ends. A field that comes twice is an error."""
    at = _skip(text, at)
    if text[at] != "{":
        raise ValueError(f"no object at {at}")
    fields, at = {}, _skip(text, at + 1)
    while text[at] != "}":
        name, at = _decode(text, at)
        at = _skip(text, at)
        begin = _skip(text, at + 1)
        value, at = _decode(text, begin)
        if name in fields:
            raise ValueError(f"the field {name} comes twice")
        fields[name] = (value, text[begin:at])
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return fields, at + 1


def raw_items(text):
    """The objects of an array, each as raw_object() gives it."""
    items, at = [], _skip(text, 0) + 1
    at = _skip(text, at)
    while text[at] != "]":
        fields, at = raw_object(text, at)
        items.append(fields)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return items
