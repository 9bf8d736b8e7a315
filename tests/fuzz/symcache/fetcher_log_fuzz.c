/* SPDX-License-Identifier: Apache-2.0 */
/* The client's account of a query, which holds what servers said; then a report as of a worker. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symcache/fetcher_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct fetcher_report_message *report)
{
	assert(report->server < SERVER_LIST_MAX);
	assert(strnlen(report->path, sizeof(report->path)) < sizeof(report->path));
	for (uint32_t i = 0; i < SERVER_LIST_MAX; i++) {
		assert(report->outcomes[i] < FETCHER_OUTCOME_N);
		assert(strnlen(report->texts[i], SERVER_REASON_BYTES) < SERVER_REASON_BYTES);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fetcher_report_message report;
	memset(&report, 0, sizeof(report));
	fetcher_log_read((const char *)data, size, SERVER_LIST_MAX, &report);
	check(&report);
	memset(&report, 0xa5, sizeof(report));
	memcpy(&report, data, size < sizeof(report) ? size : sizeof(report));
	fetcher_wire_clean(&report);
	check(&report);
	return 0;
}
