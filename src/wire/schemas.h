// Schemas: what the JSON of the API looks like, as JSON Schema (2020-12), for the OpenAPI document. They follow from
// the tables of fields; a test holds real answers against them.

#pragma once

#include <span>

#include "wire/fields.h"

namespace bide::wire {

std::span<const Schema> schemas();

// Of each file here. One that is a choice of others is put together in schemas().
void add_batch_schemas(Schemas& schemas);
void add_change_schemas(Schemas& schemas);
void add_info_schemas(Schemas& schemas);
void add_job_schemas(Schemas& schemas);
void add_lease_schemas(Schemas& schemas);
void add_settle_schemas(Schemas& schemas);

}  // namespace bide::wire
