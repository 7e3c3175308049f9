#include "wire/schemas.h"

#include <array>

namespace bide::wire {

namespace {

constexpr auto kSchemas = std::to_array<Schema>({
    {"Problem", R"({
  "type": "object",
  "description": "What was wrong (RFC 9457). code is stable.",
  "required": ["type", "status", "code", "detail"],
  "additionalProperties": false,
  "properties": {
    "type": {"type": "string"},
    "title": {"type": "string"},
    "status": {"type": "integer"},
    "code": {"type": "string"},
    "detail": {"type": "string"},
    "field": {"type": "string", "description": "The field or parameter it is about."},
    "offset": {"type": "integer", "description": "The byte of the request body where its JSON goes wrong."},
    "retry_after_ms": {"type": "integer"},
    "results": {"type": "array", "items": {"$ref": "#/components/schemas/EnqueueResult"},
                "description": "invalid_batch: the items that are not valid."}
  }})"},
    {"Headers", R"({
  "anyOf": [
    {"type": "object", "additionalProperties": {"type": "string"}},
    {"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "string"}},
     "description": "Pairs, where a name comes twice."}
  ]})"},
    {"Duration", R"({"type": "string", "description": "A number and a unit, such as 250ms, 10s, 1h30m, 2d.",
  "examples": ["10s", "1h30m"]})"},
    {"RetryPolicy", R"({
  "anyOf": [
    {"type": "string", "description": "exponential(1s,2,1h,x25), steps(10s,100s,1h), fixed(30s,x5) or none; all but none may end in jitter=0.2"},
    {"type": "object",
     "required": ["policy"],
     "additionalProperties": false,
     "properties": {
       "policy": {"enum": ["exponential", "steps", "fixed", "none"]},
       "base": {"$ref": "#/components/schemas/Duration"},
       "factor": {"type": "number", "minimum": 1, "maximum": 100},
       "cap": {"$ref": "#/components/schemas/Duration"},
       "wait": {"$ref": "#/components/schemas/Duration"},
       "waits": {"type": "array", "items": {"$ref": "#/components/schemas/Duration"}, "minItems": 1, "maxItems": 100},
       "max_attempts": {"type": "integer", "minimum": 1, "maximum": 10000},
       "jitter": {"type": "number", "minimum": 0, "maximum": 1}
     }}
  ]})"},
    {"Job", R"({
  "type": "object",
  "required": ["kind"],
  "additionalProperties": false,
  "properties": {
    "id": {"type": "string", "format": "uuid", "description": "Enqueuing it again is harmless."},
    "kind": {"type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9_.:-]{0,127}$"},
    "queue": {"type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9_.:-]{0,127}$", "default": "default"},
    "body": {"description": "Any JSON, kept byte for byte."},
    "body_text": {"type": "string"},
    "body_base64": {"type": "string"},
    "content_type": {"type": "string"},
    "headers": {"$ref": "#/components/schemas/Headers"},
    "headers_base64": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
    "delay": {"$ref": "#/components/schemas/Duration"},
    "delay_ms": {"type": "integer", "minimum": 0},
    "due": {"type": "string", "format": "date-time"},
    "expires": {"type": "string", "format": "date-time", "description": "Not started by then: dead."},
    "time_limit": {"$ref": "#/components/schemas/Duration"},
    "time_limit_ms": {"type": "integer", "minimum": 1},
    "priority": {"type": "integer", "minimum": -100, "maximum": 100},
    "retry": {"$ref": "#/components/schemas/RetryPolicy"},
    "unique_key": {"type": "string", "maxLength": 512},
    "unique_key_base64": {"type": "string"},
    "callback": {"type": "string", "format": "uri", "description": "The server delivers the body there by POST."},
    "on_done": {"type": "string", "format": "uri", "description": "Told when the job is done or dead."},
    "reply_queue": {"type": "string", "description": "Gets a job with the result."}
  }})"},
    {"EnqueueRequest", R"({
  "anyOf": [
    {"$ref": "#/components/schemas/Job"},
    {"type": "array", "items": {"$ref": "#/components/schemas/Job"}, "maxItems": 10000},
    {"type": "object", "required": ["jobs"], "additionalProperties": false,
     "properties": {"jobs": {"type": "array", "items": {"$ref": "#/components/schemas/Job"}, "maxItems": 10000}}}
  ]})"},
    {"Enqueued", R"({
  "type": "object",
  "required": ["id", "existed"],
  "additionalProperties": false,
  "properties": {
    "id": {"type": "string", "format": "uuid"},
    "existed": {"type": "boolean", "description": "A job with this id was there already; nothing was written."},
    "warnings": {"type": "array", "items": {"type": "string"}}
  }})"},
    {"EnqueueResult", R"({
  "type": "object",
  "required": ["index", "status"],
  "additionalProperties": false,
  "properties": {
    "index": {"type": "integer"},
    "status": {"type": "integer", "description": "201, 200 when it existed, or that of the problem."},
    "id": {"type": "string", "format": "uuid"},
    "existed": {"type": "boolean"},
    "warnings": {"type": "array", "items": {"type": "string"}},
    "problem": {"$ref": "#/components/schemas/Problem"}
  }})"},
    {"EnqueueResults", R"({
  "type": "object",
  "required": ["results", "enqueued", "failed"],
  "additionalProperties": false,
  "properties": {
    "results": {"type": "array", "items": {"$ref": "#/components/schemas/EnqueueResult"}},
    "enqueued": {"type": "integer"},
    "failed": {"type": "integer"}
  }})"},
    {"EnqueueAnswer", R"({
  "anyOf": [{"$ref": "#/components/schemas/Enqueued"}, {"$ref": "#/components/schemas/EnqueueResults"}]})"},
    {"AttemptCounts", R"({
  "type": "object",
  "description": "Attempts by how they ended, other than well.",
  "required": ["failed", "timed_out", "lost", "crashed"],
  "additionalProperties": false,
  "properties": {
    "failed": {"type": "integer"}, "timed_out": {"type": "integer"}, "lost": {"type": "integer"}, "crashed": {"type": "integer"}
  }})"},
    {"AttemptError", R"({
  "type": "object",
  "required": ["attempt", "at", "fault"],
  "additionalProperties": false,
  "properties": {
    "attempt": {"type": "integer"},
    "at": {"type": "string", "format": "date-time"},
    "fault": {"enum": ["failed", "timed_out", "lost", "crashed"]},
    "text": {"type": "string"},
    "text_base64": {"type": "string"}
  }})"},
    {"StoredJob", R"({
  "type": "object",
  "description": "A job as the server gives it, whatever it is given for.",
  "required": ["id", "kind", "queue", "due"],
  "properties": {
    "id": {"type": "string", "format": "uuid"},
    "kind": {"type": "string"},
    "queue": {"type": "string"},
    "body": {"description": "The body, when it is JSON."},
    "body_text": {"type": "string", "description": "The body, when it is other text."},
    "body_base64": {"type": "string", "description": "The body, when it is not text."},
    "content_type": {"type": "string"},
    "headers": {"$ref": "#/components/schemas/Headers"},
    "headers_base64": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
    "expires": {"type": "string", "format": "date-time"},
    "time_limit_ms": {"type": "integer"},
    "priority": {"type": "integer"},
    "retry": {"type": "string"},
    "unique_key": {"type": "string"},
    "unique_key_base64": {"type": "string"},
    "due": {"type": "string", "format": "date-time"},
    "counts": {"$ref": "#/components/schemas/AttemptCounts"},
    "errors": {"type": "array", "items": {"$ref": "#/components/schemas/AttemptError"}}
  }})"},
    {"JobInfo", R"({
  "allOf": [{"$ref": "#/components/schemas/StoredJob"}],
  "required": ["state", "attempts", "counts", "errors"],
  "unevaluatedProperties": false,
  "properties": {
    "state": {"enum": ["scheduled", "ready", "running", "done", "dead"]},
    "attempts": {"type": "integer", "description": "Started so far."},
    "worker": {"type": "string"},
    "worker_base64": {"type": "string"},
    "note": {"type": "string"},
    "note_base64": {"type": "string"},
    "finished": {"type": "string", "format": "date-time"},
    "dead_reason": {"enum": ["exhausted", "rejected", "expired", "poison", "damaged"]},
    "result": {},
    "result_text": {"type": "string"},
    "result_base64": {"type": "string"},
    "result_content_type": {"type": "string"}
  }})"},
    {"JobPage", R"({
  "type": "object",
  "required": ["jobs", "next"],
  "additionalProperties": false,
  "properties": {
    "jobs": {"type": "array", "items": {"$ref": "#/components/schemas/JobInfo"}},
    "next": {"type": ["string", "null"], "description": "The cursor of the next page, or null on the last."}
  }})"},
    {"JobResult", R"({
  "type": "object",
  "required": ["id", "state"],
  "additionalProperties": false,
  "properties": {
    "id": {"type": "string", "format": "uuid"},
    "state": {"enum": ["scheduled", "ready", "running", "done", "dead"]},
    "finished": {"type": "string", "format": "date-time"},
    "dead_reason": {"enum": ["exhausted", "rejected", "expired", "poison", "damaged"]},
    "error": {"type": "string"},
    "error_base64": {"type": "string"},
    "result": {},
    "result_text": {"type": "string"},
    "result_base64": {"type": "string"},
    "result_content_type": {"type": "string"}
  }})"},
    {"Explanation", R"({
  "type": "object",
  "required": ["code", "text"],
  "additionalProperties": false,
  "properties": {"code": {"type": "string"}, "text": {"type": "string"}}})"},
    {"Reschedule", R"({
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "due": {"type": "string", "format": "date-time"},
    "delay": {"$ref": "#/components/schemas/Duration"},
    "delay_ms": {"type": "integer", "minimum": 0}
  }})"},
    {"Rescheduled", R"({
  "type": "object",
  "required": ["id", "due"],
  "additionalProperties": false,
  "properties": {"id": {"type": "string", "format": "uuid"}, "due": {"type": "string", "format": "date-time"}}})"},
    {"Cancelled", R"({
  "type": "object",
  "required": ["id", "cancelled"],
  "additionalProperties": false,
  "properties": {"id": {"type": "string", "format": "uuid"}, "cancelled": {"type": "boolean"}}})"},
    {"Cancel", R"({
  "type": "object",
  "required": ["ids"],
  "additionalProperties": false,
  "properties": {
    "ids": {"type": "array", "items": {"type": "string", "format": "uuid"}, "maxItems": 10000},
    "state": {"enum": ["scheduled", "ready", "running", "done", "dead"],
              "description": "Only those that are in this state; the others are answered 409."}
  }})"},
    {"IdResults", R"({
  "type": "object",
  "required": ["results", "succeeded", "failed"],
  "additionalProperties": false,
  "properties": {
    "results": {"type": "array", "items": {
      "type": "object",
      "required": ["id", "status"],
      "additionalProperties": false,
      "properties": {
        "id": {"type": "string", "format": "uuid"},
        "status": {"type": "integer"},
        "problem": {"$ref": "#/components/schemas/Problem"}
      }}},
    "succeeded": {"type": "integer"},
    "failed": {"type": "integer"}
  }})"},
    {"LeaseRequest", R"({
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "queue": {"type": "string"},
    "queues": {"type": "array", "minItems": 1, "maxItems": 256, "items": {"anyOf": [
      {"type": "string"},
      {"type": "object", "required": ["name"], "additionalProperties": false,
       "properties": {"name": {"type": "string"}, "weight": {"type": "integer", "minimum": 1, "maximum": 1000}}}]}},
    "max": {"type": "integer", "minimum": 1, "maximum": 4096, "default": 1},
    "wait": {"$ref": "#/components/schemas/Duration"},
    "wait_ms": {"type": "integer", "minimum": 0, "maximum": 300000},
    "lease": {"$ref": "#/components/schemas/Duration"},
    "lease_ms": {"type": "integer", "minimum": 100, "maximum": 86400000, "default": 15000},
    "worker": {"type": "string", "maxLength": 128},
    "poller": {"type": "string", "maxLength": 128, "description": "Who polls. Ends its polls with /v1/leases/leave."}
  }})"},
    {"LeaveRequest", R"({
  "type": "object",
  "required": ["poller"],
  "additionalProperties": false,
  "properties": {"poller": {"type": "string", "minLength": 1, "maxLength": 128}}})"},
    {"Left", R"({"type": "object", "additionalProperties": false})"},
    {"Lease", R"({
  "allOf": [{"$ref": "#/components/schemas/StoredJob"}],
  "required": ["token", "attempt", "age_ms"],
  "unevaluatedProperties": false,
  "properties": {
    "token": {"type": "string", "description": "Digits. Goes with every extension and settlement."},
    "attempt": {"type": "integer"},
    "age_ms": {"type": "integer", "description": "How long ago the lease was given: its time runs from then."}
  }})"},
    {"Leases", R"({
  "type": "object",
  "required": ["leases", "held_ms"],
  "additionalProperties": false,
  "properties": {
    "leases": {"type": "array", "items": {"$ref": "#/components/schemas/Lease"}},
    "held_ms": {"type": "integer", "description": "How long the request was here. What else it took, it was on its way."}
  }})"},
    {"ExtendRequest", R"({
  "type": "object",
  "required": ["leases"],
  "additionalProperties": false,
  "properties": {"leases": {"type": "array", "maxItems": 10000, "items": {
    "type": "object",
    "required": ["id", "token"],
    "additionalProperties": false,
    "properties": {"id": {"type": "string", "format": "uuid"}, "token": {"type": ["string", "integer"]}}}}}})"},
    {"Extended", R"({
  "type": "object",
  "required": ["leases"],
  "additionalProperties": false,
  "properties": {"leases": {"type": "array", "items": {
    "type": "object",
    "required": ["id", "token", "lost", "cancel_requested"],
    "additionalProperties": false,
    "properties": {
      "id": {"type": "string", "format": "uuid"},
      "token": {"type": "string"},
      "lost": {"type": "boolean", "description": "Not yours any more: stop."},
      "cancel_requested": {"type": "boolean", "description": "Somebody cancelled the job: stop soon."}
    }}}}})"},
    {"Settlement", R"({
  "type": "object",
  "required": ["id", "token", "outcome"],
  "additionalProperties": false,
  "properties": {
    "id": {"type": "string", "format": "uuid"},
    "token": {"type": ["string", "integer"]},
    "outcome": {"enum": ["done", "failed", "retry", "dead", "returned"]},
    "result": {},
    "result_text": {"type": "string"},
    "result_base64": {"type": "string"},
    "result_content_type": {"type": "string"},
    "after": {"$ref": "#/components/schemas/Duration"},
    "after_ms": {"type": "integer", "minimum": 0},
    "error": {"type": "string"},
    "error_base64": {"type": "string"},
    "fault": {"enum": ["failed", "timed_out"]},
    "reason": {"enum": ["exhausted", "rejected"]},
    "body": {},
    "body_text": {"type": "string"},
    "body_base64": {"type": "string"},
    "note": {"type": "string"},
    "note_base64": {"type": "string"},
    "effects": {"type": "array", "items": {"$ref": "#/components/schemas/Job"}}
  }})"},
    {"SettleRequest", R"({
  "anyOf": [
    {"$ref": "#/components/schemas/Settlement"},
    {"type": "object", "required": ["settlements"], "additionalProperties": false,
     "properties": {"settlements": {"type": "array", "maxItems": 10000, "items": {"$ref": "#/components/schemas/Settlement"}}}}
  ]})"},
    {"SettleResult", R"({
  "type": "object",
  "required": ["id", "token", "status"],
  "additionalProperties": false,
  "properties": {
    "id": {"type": "string", "format": "uuid"},
    "token": {"type": "string"},
    "status": {"type": "integer"},
    "problem": {"$ref": "#/components/schemas/Problem"}
  }})"},
    {"SettleAnswer", R"({
  "anyOf": [
    {"$ref": "#/components/schemas/SettleResult"},
    {"type": "object", "required": ["settlements", "settled", "failed"], "additionalProperties": false,
     "properties": {
       "settlements": {"type": "array", "items": {"$ref": "#/components/schemas/SettleResult"}},
       "settled": {"type": "integer"},
       "failed": {"type": "integer"}}}
  ]})"},
    {"Queue", R"({
  "type": "object",
  "required": ["name", "paused", "scheduled", "ready", "running", "dead", "done", "oldest_ready", "workers"],
  "additionalProperties": false,
  "properties": {
    "name": {"type": "string"},
    "paused": {"type": "boolean"},
    "scheduled": {"type": "integer"},
    "ready": {"type": "integer"},
    "running": {"type": "integer"},
    "dead": {"type": "integer"},
    "done": {"type": "integer", "description": "Still remembered."},
    "oldest_ready": {"type": ["string", "null"], "format": "date-time", "description": "When the longest waiting ready job was due."},
    "workers": {"type": "integer", "description": "Subscriptions that take from it."}
  }})"},
    {"Queues", R"({
  "type": "object",
  "required": ["queues"],
  "additionalProperties": false,
  "properties": {"queues": {"type": "array", "items": {"$ref": "#/components/schemas/Queue"}}}})"},
    {"QueuePaused", R"({
  "type": "object",
  "required": ["name", "paused"],
  "additionalProperties": false,
  "properties": {"name": {"type": "string"}, "paused": {"type": "boolean"}}})"},
    {"Purged", R"({
  "type": "object",
  "required": ["removed"],
  "additionalProperties": false,
  "properties": {"removed": {"type": "integer"}}})"},
    {"Filter", R"({
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "state": {"type": "string"},
    "queue": {"type": "string"},
    "kind": {"type": "string"},
    "error": {"type": "string", "description": "Contained in the newest error text."},
    "since": {"type": "string", "format": "date-time"},
    "until": {"type": "string", "format": "date-time"}
  }})"},
    {"Choice", R"({
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "ids": {"type": "array", "items": {"type": "string", "format": "uuid"}, "maxItems": 10000},
    "filter": {"$ref": "#/components/schemas/Filter"},
    "limit": {"type": "integer", "minimum": 1},
    "dry_run": {"type": "boolean"}
  }})"},
    {"Replay", R"({
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "ids": {"type": "array", "items": {"type": "string", "format": "uuid"}, "maxItems": 10000},
    "filter": {"$ref": "#/components/schemas/Filter"},
    "limit": {"type": "integer", "minimum": 1},
    "dry_run": {"type": "boolean"},
    "keep_attempts": {"type": "boolean", "default": false},
    "delay": {"$ref": "#/components/schemas/Duration"},
    "delay_ms": {"type": "integer", "minimum": 0}
  }})"},
    {"SweepResult", R"({
  "type": "object",
  "required": ["matched", "succeeded", "failed", "dry_run", "problems"],
  "additionalProperties": false,
  "properties": {
    "matched": {"type": "integer"},
    "succeeded": {"type": "integer"},
    "failed": {"type": "integer"},
    "dry_run": {"type": "boolean"},
    "problems": {"type": "array", "description": "The first ten.", "items": {
      "type": "object",
      "required": ["id", "problem"],
      "additionalProperties": false,
      "properties": {"id": {"type": "string", "format": "uuid"}, "problem": {"$ref": "#/components/schemas/Problem"}}}}
  }})"},
    {"ChoiceAnswer", R"({
  "anyOf": [{"$ref": "#/components/schemas/IdResults"}, {"$ref": "#/components/schemas/SweepResult"}]})"},
    {"Audit", R"({
  "type": "object",
  "required": ["ok", "accepted", "done", "removed", "live", "details", "problems"],
  "additionalProperties": false,
  "properties": {
    "ok": {"type": "boolean"},
    "accepted": {"type": "integer"},
    "done": {"type": "integer"},
    "removed": {"type": "integer"},
    "live": {"type": "integer"},
    "details": {"type": "object", "additionalProperties": {"type": "integer"}},
    "problems": {"type": "array", "items": {"type": "string"}}
  }})"},
    {"Pressure", R"({
  "type": "object",
  "required": ["level", "reason", "retry_after_ms"],
  "additionalProperties": false,
  "properties": {
    "level": {"enum": ["ok", "high", "blocked"]},
    "reason": {"type": "string"},
    "retry_after_ms": {"type": "integer"}
  }})"},
    {"Capabilities", R"({
  "type": "object",
  "required": ["why_not"],
  "additionalProperties": {"type": "boolean"},
  "properties": {"why_not": {"type": "string"}}})"},
    {"Delivery", R"({
  "type": "object",
  "required": ["id", "job", "kind", "queue", "attempt", "url", "at", "took_ms", "status", "outcome", "error"],
  "additionalProperties": false,
  "properties": {
    "id": {"type": "string", "format": "uuid", "description": "Of the delivery, for its replay."},
    "job": {"type": "string", "format": "uuid"},
    "kind": {"type": "string"},
    "queue": {"type": "string"},
    "attempt": {"type": "integer"},
    "url": {"type": "string", "description": "Without its query, which may hold a secret."},
    "at": {"type": "string", "format": "date-time"},
    "took_ms": {"type": "integer"},
    "status": {"type": ["integer", "null"], "description": "Of the receiver's answer; null: there was none."},
    "outcome": {"enum": ["done", "accepted", "dead", "failed", "returned"]},
    "error": {"type": "string", "description": "Empty: it went well."}
  }})"},
    {"CallbackHost", R"({
  "type": "object",
  "required": ["host", "breaker", "pause_ms", "limit", "under_way", "waiting", "failures", "typical_ms", "last_error"],
  "additionalProperties": false,
  "properties": {
    "host": {"type": "string", "description": "With its port."},
    "breaker": {"enum": ["closed", "open", "half-open"], "description": "open: nothing is sent; half-open: one is tried."},
    "pause_ms": {"type": "integer", "description": "Until something is sent again."},
    "limit": {"type": "integer", "description": "Deliveries at a time, as the host keeps up."},
    "under_way": {"type": "integer"},
    "waiting": {"type": "integer"},
    "failures": {"type": "integer", "description": "In a row."},
    "typical_ms": {"type": "integer", "description": "How long it takes to answer."},
    "last_error": {"type": "string"}
  }})"},
    {"Callbacks", R"({
  "type": "object",
  "required": ["policy", "queues", "waiting", "sending", "accepted", "deliveries", "next", "hosts"],
  "additionalProperties": false,
  "properties": {
    "policy": {"enum": ["off", "allow-list", "public-only"]},
    "queues": {"type": "array", "items": {"type": "string"}, "description": "Whose jobs the server delivers."},
    "waiting": {"type": "integer"},
    "sending": {"type": "integer"},
    "accepted": {"type": "integer", "description": "Answered 202, and not settled yet."},
    "deliveries": {"type": "array", "items": {"$ref": "#/components/schemas/Delivery"}, "description": "Newest first."},
    "next": {"type": ["string", "null"], "description": "before of the next page, or null on the last."},
    "hosts": {"type": "array", "items": {"$ref": "#/components/schemas/CallbackHost"}}
  }})"},
    {"CallbackReplayed", R"({
  "type": "object",
  "required": ["id", "how"],
  "additionalProperties": false,
  "properties": {
    "id": {"type": "string", "format": "uuid", "description": "Of the job: a new one when it was enqueued."},
    "how": {"enum": ["replayed", "hastened", "enqueued"],
            "description": "It was dead and is put back, it waited and is due now, or it is gone and a copy was enqueued."}
  }})"},
});

}  // namespace

std::span<const Schema> schemas() { return kSchemas; }

}  // namespace bide::wire
