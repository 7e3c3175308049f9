// The whole library in one include. Typed bodies (<bide/json.h>), Asio (<bide/asio.h>) and the test kit (<bide/testing.h>) are apart.

#pragma once

#include "bide/body.h"
#include "bide/broker.h"
#include "bide/client.h"
#include "bide/context.h"
#include "bide/coroutine.h"
#include "bide/enqueue_options.h"
#include "bide/events.h"
#include "bide/inspector.h"
#include "bide/job.h"
#include "bide/job_id.h"
#include "bide/lease.h"
#include "bide/middleware.h"
#include "bide/pressure.h"
#include "bide/queue_rules.h"
#include "bide/request.h"
#include "bide/result.h"
#include "bide/retry_policy.h"
#include "bide/schedule.h"
#include "bide/wait.h"
#include "bide/worker.h"
