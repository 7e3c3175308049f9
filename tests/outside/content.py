"""Jobs made from a seed: every byte of a body says whose it is and where in the body it belongs."""

import base64
import hashlib
import json
import random
import uuid

KINDS = ("resize", "mail.send", "order_shipped", "k")
RETRIES = ("none", "fixed(100ms,x4)", "steps(50ms,100ms,300ms)", "exponential(50ms,2,500ms,x5)")
DEFAULT_TEXT = "text/plain; charset=utf-8"  # Of a body_text without a content type.
LABEL = "x-outside"  # The header by which a job is known, also when the answer to its enqueue was lost.


def digest(data):
    return hashlib.sha256(data).hexdigest()[:24]


def pattern(label, size):
    """`size` bytes of text in cells of label and offset, so that foreign or moved bytes are recognised."""
    name = label.encode()
    cell = 64 if size > 4096 and len(name) < 54 else len(name) + 10
    name += b"." * (cell - 10 - len(name))
    return b"".join([b"%s:%08x|" % (name, at) for at in range(0, size + cell, cell)])[:size]


def some_size(rng, large=0.01):
    """Mostly small; `large` is the share of those over 100 KB."""
    if rng.random() < large:
        return rng.randrange(100_000, 2_000_000)
    return rng.choice((0, 1, 2, 30, rng.randrange(400), rng.randrange(400), rng.randrange(8000), rng.randrange(70_000)))


class Job:
    """What is said about one job, and what must come back."""

    def __init__(self, seed, label, queue, size=None, form=None, retry=None, delay_ms=0, large=0.01, own_id=None, more=None):
        rng = random.Random(f"{seed}/{label}")
        self.label, self.queue, self.delay_ms = label, queue, delay_ms
        self.more = more or {}  # Further fields of the item.
        self.kind = rng.choice(KINDS)
        self.retry = retry or rng.choice(RETRIES)
        self.form = form or rng.choice(("body", "body", "body_text", "body_base64"))
        self.headers = {LABEL: label}
        for index in range(rng.choice((0, 0, 1, 3))):
            self.headers[f"h{index}"] = rng.choice(("", "x" * rng.randrange(300), "Grüße, 世界", 'quo"te\\', " spaced "))
        own_id = rng.random() < 0.6 if own_id is None else own_id
        self.id = str(uuid.UUID(int=rng.getrandbits(128), version=4)) if own_id else None
        self.body, self.content_type = self._body(rng, some_size(rng, large) if size is None else size)
        self.sha = digest(self.body)

    def _body(self, rng, size):
        text = pattern(self.label, size)
        if self.form == "body":
            return self._json(rng, text), "application/json"
        if self.form == "body_text":
            if size > 40 and rng.random() < 0.5:
                text = text[:-24] + "\n\t\u0001\u007f é€😀\u2028".encode()
            return text, rng.choice(("text/plain", DEFAULT_TEXT))
        if size > 64 and rng.random() < 0.5:
            text = text[:32] + bytes(range(256))[:size - 32] + text[288:]
            text = text[:size]
        return text, rng.choice(("application/octet-stream", "image/png", ""))

    def _json(self, rng, text):
        """JSON that would come back different from anybody who reads it and writes it anew."""
        inner = b'"' + text + b'"'
        return rng.choice((inner, b'[%s,1.0e+2,  -0 ]' % inner, b'{"a":%s , "a":"twice"}' % inner,
                           b'{"n":12345678901234567890.10,"t":%s}' % inner, b'["\\u0041\\/",%s]' % inner,
                           b'{"deep":[[[{"x":%s}]]], "null":null}' % inner))

    def item(self):
        """The job as the JSON of one item of a request."""
        fields = {"kind": self.kind, "queue": self.queue, "retry": self.retry, "headers": self.headers} | self.more
        if self.id:
            fields["id"] = self.id
        if self.delay_ms:
            fields["delay_ms"] = self.delay_ms
        if self.form != "body" and self.content_type not in ("", DEFAULT_TEXT):
            fields["content_type"] = self.content_type
        if self.form == "body_text":
            fields["body_text"] = self.body.decode()
        elif self.form == "body_base64":
            fields["body_base64"] = base64.b64encode(self.body).decode()
        text = json.dumps(fields, ensure_ascii=self.label.endswith("1")).encode()
        if self.form == "body":
            text = text[:-1] + b', "body": ' + self.body + b"}"
        return text

    def expected(self):
        return {"label": self.label, "queue": self.queue, "kind": self.kind, "sha": self.sha, "size": len(self.body),
                "content_type": self.content_type, "headers": self.headers, "retry": self.retry, "delay_ms": self.delay_ms,
                "on_done": "on_done" in self.more}


def some_result(seed, text):
    """A result made from a seed, as (fields of a settlement as raw JSON, bytes, content type)."""
    rng = random.Random(f"{seed}/result/{text}")
    body = pattern(f"R{text}", rng.choice((0, 5, 60, 900, rng.randrange(20_000))))
    form = rng.choice(("result", "result_text", "result_base64"))
    if form == "result":
        raw = b'{"r": "%s", "n": 1.50e3}' % body
        return b'"result":' + raw, raw, "application/json"
    if form == "result_text":
        return b'"result_text":' + json.dumps(body.decode()).encode(), body, None
    return b'"result_base64":"' + base64.b64encode(body) + b'"', body, None


def returned(fields, name="body"):
    """The bytes of a body or result in an answer's raw fields (wire.raw_object), or None when it has none."""
    if name in fields:
        return fields[name][1].encode()
    if f"{name}_text" in fields:
        return fields[f"{name}_text"][0].encode("utf-8", "surrogatepass")
    if f"{name}_base64" in fields:
        return base64.b64decode(fields[f"{name}_base64"][0])
    return None


def seen(fields):
    """What an answer says about a job, in the words of Job.expected()."""
    headers = fields["headers"][0] if "headers" in fields else {}
    if isinstance(headers, list):
        headers = dict(headers)
    headers = {name: value for name, value in headers.items() if not name.startswith("bide-")}
    body = returned(fields)
    # A body of no bytes may come as no field at all: that is the same content.
    body = b"" if body is None else body
    value = lambda name: fields[name][0] if name in fields else None
    return {"label": headers.get(LABEL), "queue": value("queue"), "kind": value("kind"), "sha": digest(body),
            "size": len(body), "content_type": value("content_type"), "headers": headers, "retry": value("retry"),
            "body": body}
