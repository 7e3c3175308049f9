// Routes to look at deliveries, and to do one again.
//
//   GET /v1/callbacks?limit=100&job=ID&before=DELIVERY
//     {"policy":"allow-list","queues":["callbacks"],"waiting":0,"sending":1,"accepted":0,
//      "deliveries":[{"id":...,"job":...,"kind":...,"queue":...,"attempt":1,"url":"https://host:443/path?***",
//                     "at":...,"took_ms":12,"status":200,"outcome":"done","error":""}],
//      "next":null,
//      "hosts":[{"host":"host:443","breaker":"closed","pause_ms":0,"limit":5,"under_way":1,"waiting":0,"failures":0,
//                "typical_ms":12,"last_error":""}]}
//   Deliveries come newest first; next is the `before` of the next page; status is null where there was no answer.
//
//   POST /v1/callbacks/{id}/replay
//     {"id":JOB,"how":"replayed"}    it was dead: put back with a fresh budget
//     {"id":JOB,"how":"hastened"}    it waited for its next attempt: due now
//     {"id":JOB,"how":"enqueued"}    it was done, or is gone: a new job with the same body

#pragma once

#include <memory>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "server/callbacks/callback_options.h"
#include "server/callbacks/deliverer.h"
#include "server/callbacks/delivery_log.h"
#include "server/http/route.h"

namespace bide::server {

// The inspector may be null. Must not be called once the deliverer is gone, which the routes share.
Routes callback_routes(const CallbackOptions& options, std::shared_ptr<Deliverer> deliverer,
                       std::shared_ptr<DeliveryLog> log, std::shared_ptr<Broker> broker,
                       std::shared_ptr<Inspector> inspector);

}  // namespace bide::server
