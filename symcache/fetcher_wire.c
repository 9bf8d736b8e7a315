/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/fetcher_wire.h"

void fetcher_wire_clean(struct fetcher_report_message *message)
{
	message->path[sizeof(message->path) - 1] = 0;
	if (message->server >= SERVER_LIST_MAX)
		message->server = 0;
	for (uint32_t i = 0; i < SERVER_LIST_MAX; i++) {
		message->texts[i][SERVER_REASON_BYTES - 1] = 0;
		if (message->outcomes[i] >= FETCHER_OUTCOME_N)
			message->outcomes[i] = FETCHER_SILENT;
	}
}
