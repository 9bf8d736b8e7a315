/* SPDX-License-Identifier: Apache-2.0 */
/* A source for tests: a list of records in memory, handed on as it is. */
#include <assert.h>

#include "base/mem.h"
#include "collector/collector.h"
#include "collector/perf_file_events.h"

enum { BATCH_RECORDS = 512 };

struct fake_source {
	struct record_source base; /* first */
	const struct perf_source_info *info;
	struct perf_file_events events;
	const uint8_t *next;
	const uint8_t *end;
};

/* The list is a test's own: a size that does not fit is the test's fault. */
static struct perf_record take_record(struct fake_source *fake)
{
	struct cursor c =
		cursor_make(fake->next, (size_t)(fake->end - fake->next), fake->info->is_swapped);
	struct perf_record record = {.bytes = fake->next, .event_index = PERF_EVENT_INDEX_NONE};
	record.type = cursor_u32(&c);
	record.misc = cursor_u16(&c);
	record.size = cursor_u16(&c);
	assert(record.size >= sizeof(struct perf_event_header) &&
	       record.size <= fake->end - fake->next);
	if (record.type < PERF_RECORD_KERNEL_MAX)
		perf_file_events_route(&fake->events, &record);
	fake->next += record.size;
	return record;
}

static struct error *fake_drain(struct record_source *source, perf_record_sink_fn sink,
				void *context)
{
	struct fake_source *fake = (struct fake_source *)source;
	while (fake->next < fake->end) {
		struct perf_record batch[BATCH_RECORDS];
		size_t n = 0;
		while (n < BATCH_RECORDS && fake->next < fake->end)
			batch[n++] = take_record(fake);
		struct error *err = sink(context, batch, n);
		if (err)
			return err;
	}
	return error_no_entry;
}

static const struct perf_source_info *fake_info(struct record_source *source)
{
	return ((struct fake_source *)source)->info;
}

static void fake_close(struct record_source *source)
{
	struct fake_source *fake = (struct fake_source *)source;
	perf_file_events_fini(&fake->events);
	mem_free(fake);
}

static const struct record_source_ops fake_ops = {
	.kind = "fake",
	.drain = fake_drain,
	.info = fake_info,
	.close = fake_close,
};

struct record_source *fake_source_new(const struct perf_source_info *info, const void *bytes,
				      size_t size)
{
	struct fake_source *fake = mem_zalloc(1, sizeof(*fake));
	fake->base.ops = &fake_ops;
	fake->info = info;
	fake->next = bytes;
	fake->end = fake->next + size;
	perf_file_events_init_borrow(&fake->events, info);
	return &fake->base;
}
