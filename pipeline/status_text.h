/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's state in the forms that others read: Prometheus' text format, JSON, text for people.
 */
#pragma once

#include <stdio.h>

#include "pipeline/agent_query.h"

/* Exposition format 0.0.4. Counters of base/stats and of this process are read on the way. */
void status_text_write_metrics(FILE *out, const struct agent_state *state);
/* One object with schema_version. */
void status_text_write_json(FILE *out, const struct agent_state *state);
void status_text_write_people(FILE *out, const struct agent_state *state);
