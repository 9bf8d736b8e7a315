/* SPDX-License-Identifier: Apache-2.0 */
/* Any text behind -e, on a host that knows one tracepoint. */
#include <string.h>

#include "base/cleanup.h"
#include "collector/event_attr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct error *find_tracepoint(const char *system, const char *name, uint64_t *out)
{
	if (strcmp(system, "sched") != 0 || strcmp(name, "sched_switch") != 0)
		return error_new(ERROR_NO_ENTRY, "no tracepoint %s:%s", system, name);
	*out = 310;
	return NULL;
}

static void list_tracepoints(struct buf *names)
{
	error_free(buf_printf(names, "sched:sched_switch\n"));
}

static bool refuse_pfm(const char *name, struct pfm_event *out)
{
	(void)name;
	(void)out;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct event_attr_host host = {find_tracepoint, list_tracepoints, refuse_pfm};
	static struct event_attr_list list;
	char *text CLEANUP(cleanup_mem) = mem_alloc(size + 1);

	if (size)
		memcpy(text, data, size);
	text[size] = 0;
	error_free(event_attr_parse(text, &host, &list));
	return 0;
}
