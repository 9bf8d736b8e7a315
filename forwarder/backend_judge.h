/* SPDX-License-Identifier: Apache-2.0 */
/* What all backends think alike of an answer, and where they differ. */
#pragma once

#include <stdint.h>

#include "forwarder/backend.h"

struct judge_rules {
	uint32_t retried; /* bits 1 << code: these statuses of the server pass */
	/* A bad series refuses the request whole: INVALID_ARGUMENT is worth a split by series. */
	bool has_series_apart;
	/* RESOURCE_EXHAUSTED passes only when the server says when to come back. */
	bool needs_retry_info;
};

#define JUDGE_CODE(code) ((uint32_t)1 << (code))

void backend_judge(const struct judge_rules *rules, const struct grpc_result *result,
		   struct backend_answer *out);
