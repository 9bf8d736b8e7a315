/* SPDX-License-Identifier: Apache-2.0 */
/* What this process uses, as Prometheus' client libraries tell it; proc(5). */
#pragma once

#include <stdint.h>

struct process_facts {
	double cpu_seconds;
	double start_seconds; /* since the epoch */
	uint64_t resident_bytes, virtual_bytes;
	uint64_t n_fds, max_fds;
};

/* What cannot be read is 0. */
void process_facts_read(struct process_facts *out);
