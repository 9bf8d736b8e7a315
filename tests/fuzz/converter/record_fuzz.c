/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as events and records, through the converter to its profile. The input:
 *
 *     u8 flags: 1 other byte order, 2 events come one by one, 4 all labels, 8 only event "e1"
 *     4 events of 16 bytes (see read_event)
 *     records: u8 type, u8 event (128 = synthetic), u16 misc, u16 bytes of the body, body
 *
 * Type 255 lets one more event appear, 254 ends the window, 253 is our own exec record.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cursor.h"
#include "base/mem.h"
#include "converter/converter.h"
#include "proto/pprof_encode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_EVENTS = 4, TYPE_EXEC = 253, TYPE_WINDOW = 254, TYPE_EVENT = 255 };
enum { FLAG_SWAPPED = 1, FLAG_LATE = 2, FLAG_LABELS = 4, FLAG_ONLY = 8 };

struct run {
	struct cursor in;
	struct perf_source_info source;
	struct perf_event_info events[N_EVENTS];
	struct converter *converter;
};

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void read_event(struct run *run, uint32_t i)
{
	static char names[N_EVENTS][4] = {"e0", "e1", "e1", "e3"};
	struct perf_event_info *event = &run->events[i];
	struct perf_event_attr *attr = &event->attr;
	attr->sample_type = cursor_u32(&run->in);
	attr->read_format = cursor_u8(&run->in);
	attr->type = cursor_u8(&run->in) % 6;
	attr->config = cursor_u8(&run->in) % 16;
	uint8_t bits = cursor_u8(&run->in);
	perf_attr_set(attr, PERF_ATTR_FREQ, bits & 1);
	perf_attr_set(attr, PERF_ATTR_SAMPLE_ID_ALL, bits & 2);
	attr->branch_sample_type = (bits & 4 ? PERF_SAMPLE_BRANCH_CALL_STACK : 0u) |
				   (bits & 8 ? PERF_SAMPLE_BRANCH_HW_INDEX : 0u) |
				   (bits & 16 ? PERF_SAMPLE_BRANCH_COUNTERS : 0u);
	attr->sample_period = cursor_u32(&run->in);
	attr->sample_regs_user = cursor_u16(&run->in);
	attr->sample_regs_intr = cursor_u16(&run->in);
	event->name = names[i];
	event->layout = sample_layout_of(attr);
}

/* What every profile must hold, whatever came in. */
static void check_profile(const struct profile *profile)
{
	for (uint32_t i = 0; i < profile->locations.n; i++) {
		const struct profile_location *location = &profile->locations.items[i];
		must(location->mapping < profile->mappings.n);
		const struct profile_mapping *mapping = &profile->mappings.items[location->mapping];
		must(location->address >= mapping->memory_start);
		must(location->address < mapping->memory_limit || location->address == UINT64_MAX);
	}
	struct buf out;
	buf_init(&out, (size_t)1 << 28);
	const struct pprof_encode_options options = {.gzip_level = 0};
	struct error *err = pprof_encode_buf(profile, &options, &out);
	must(!err);
	buf_fini(&out);
}

static uint64_t count_samples(const struct profile *profile)
{
	uint64_t n = 0;
	/* One event: its count comes first. Several: each has two columns. */
	uint32_t columns = profile->sample_types.n;
	uint32_t step = columns > 3 ? 2 : columns;
	for (uint32_t i = 0; i < profile->samples.n; i++) {
		for (uint32_t c = 0; c < columns; c += step)
			n += (uint64_t)profile_value(profile, i, c);
	}
	return n;
}

/* Samples in the profile. */
static uint64_t end_window(struct run *run)
{
	struct profile *profile = NULL;
	struct error *err = converter_finish(run->converter, NULL, NULL, &profile);
	if (err) {
		must(error_get_code(err) == ERROR_NO_ENTRY);
		error_free(err);
		return 0;
	}
	check_profile(profile);
	uint64_t n = count_samples(profile);
	profile_free(profile);
	return n;
}

static void feed(struct run *run, uint8_t type)
{
	uint8_t event = cursor_u8(&run->in);
	uint16_t misc = cursor_u16(&run->in);
	size_t n = cursor_u16(&run->in) % 8192;
	if (n > cursor_left(&run->in))
		n = cursor_left(&run->in);
	struct perf_record record = {
		.type = type == TYPE_EXEC ? PERF_RECORD_PERFPIPE_EXEC : type,
		.event_index = event & 127,
		.is_synthetic = event & 128,
		.misc = misc,
		.size = (uint32_t)(sizeof(struct perf_event_header) + n),
	};
	uint8_t *bytes = mem_zalloc(record.size, 1);
	const uint8_t *body = cursor_bytes(&run->in, n);
	if (n)
		memcpy(bytes + sizeof(struct perf_event_header), body, n);
	record.bytes = bytes;
	must(!converter_feed(run->converter, &record, 1));
	mem_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run *run = mem_zalloc(1, sizeof(*run));
	run->in = cursor_make(data, size, false);
	uint8_t flags = cursor_u8(&run->in);
	for (uint32_t i = 0; i < N_EVENTS; i++)
		read_event(run, i);
	run->source.events = run->events;
	run->source.n_events = flags & FLAG_LATE ? 0 : N_EVENTS;
	run->source.is_swapped = flags & FLAG_SWAPPED;
	const struct symcache_config cache_config = {.no_symbols = true, .sysroot = "/nonexistent"};
	struct symcache *cache = symcache_new(&cache_config);
	const struct converter_config config = {
		.labels = flags & FLAG_LABELS ? 0xffu : CONVERTER_LABEL_DEFAULT,
		.event = flags & FLAG_ONLY ? "e1" : NULL,
	};
	run->converter = converter_new(&config, &run->source, cache);
	uint64_t n_counted = 0;
	while (cursor_left(&run->in)) {
		uint8_t type = cursor_u8(&run->in);
		if (type == TYPE_EVENT)
			run->source.n_events += run->source.n_events < N_EVENTS;
		else if (type == TYPE_WINDOW)
			n_counted += end_window(run);
		else
			feed(run, type);
	}
	n_counted += end_window(run);
	const struct converter_totals *t = converter_get_totals(run->converter);
	must(t->taken == t->written + t->malformed + t->no_event + t->filtered);
	/* A dummy that was all there was loses its column when a real event comes. */
	must(flags & FLAG_LATE || n_counted == t->written);
	converter_free(run->converter);
	symcache_free(cache);
	mem_free(run);
	return 0;
}
