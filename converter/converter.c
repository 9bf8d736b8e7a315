/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a record through the converter: side-band records change the processes and the kernel
 * space as they come; a sample finds its thread, its labels and its stack as they are at that
 * moment and adds its values to one row of the window's profile.
 */
#include "converter/converter.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash_map.h"
#include "base/mem.h"
#include "base/stats.h"
#include "converter/deferred.h"
#include "converter/group_read.h"
#include "converter/sample.h"
#include "converter/scene.h"
#include "converter/symbolize.h"
#include "converter/window.h"

struct converter {
	struct converter_config config;
	const struct perf_source_info *source;
	struct symcache *cache;

	struct scene scene;
	struct deferred_table deferred;
	struct group_read group;

	struct window window;
	struct user_stack user_stacks;
	struct converter_totals totals;
	struct converter_totals published;    /* as far as base/stats was told */
	struct converter_totals window_start; /* when the last window ended */
};

struct converter *converter_new(const struct converter_config *config,
				const struct perf_source_info *source, struct symcache *cache)
{
	struct converter *converter = mem_zalloc(1, sizeof(*converter));
	converter->config = *config;
	converter->source = source;
	converter->cache = cache;
	scene_init(&converter->scene, source, cache);
	group_read_init(&converter->group, source);
	window_init(&converter->window, source, config->event, config->labels,
		    &converter->scene.processes, &converter->scene.kernel,
		    &converter->scene.images);
	user_stack_init(&converter->user_stacks, source, &converter->scene.images, cache,
			config->may_wait);
	converter->window.user_stacks = &converter->user_stacks;
	return converter;
}

void converter_free(struct converter *converter)
{
	if (!converter)
		return;
	deferred_fini(&converter->deferred);
	group_read_fini(&converter->group);
	window_fini(&converter->window);
	user_stack_fini(&converter->user_stacks);
	scene_fini(&converter->scene);
	mem_free(converter);
}

const struct converter_totals *converter_get_totals(const struct converter *converter)
{
	return &converter->totals;
}

size_t converter_window_bytes(const struct converter *converter)
{
	return profile_memory_bytes(converter->window.profile);
}

/* --- samples --- */

static bool is_left_out(const struct converter *converter, const struct perf_record *record)
{
	return converter->window.columns.first_column[record->event_index] == EVENT_COLUMN_NONE;
}

/* What completes a sample whose user part came apart from it. */
struct user_part {
	const uint8_t *chain;
	uint64_t n_chain;
};

static void add_member(struct window *window, const struct perf_record *record,
		       struct sample *member)
{
	*window_next(window) = *member;
	*member = *window_add(window, record);
}

static void add_part(struct converter *converter, const struct perf_record *record,
		     struct sample *part, const struct user_part *user)
{
	if (is_left_out(converter, record))
		converter->totals.filtered += !part->is_member;
	else if (user)
		window_add_deferred(&converter->window, record, part, user->chain, user->n_chain);
	else
		add_member(&converter->window, record, part);
}

/*
 * One record for all members of a group: a sample of the event that fired, and what the others have
 * counted since its last one, on the same stack, which is unwound once. user: NULL when the
 * record's chain is whole.
 */
static void feed_group(struct converter *converter, const struct perf_record *record,
		       const struct sample *whole, const struct user_part *user)
{
	const struct perf_event_attr *attr = &converter->source->events[record->event_index].attr;
	struct sample part = *whole;
	add_part(converter, record, &part, user);
	for (uint64_t i = 0; i < whole->n_read_values; i++) {
		struct group_read_value value = group_read_take(&converter->group, attr, whole, i);
		if (value.event_index == record->event_index ||
		    value.event_index == PERF_EVENT_INDEX_NONE || !value.period)
			continue;
		struct perf_record own = *record;
		part.period = value.period;
		part.is_member = true;
		own.event_index = value.event_index;
		add_part(converter, &own, &part, user);
	}
}

/* A deferred_finish_fn. */
static void finish_deferred(void *context, const struct perf_record *record, const uint8_t *chain,
			    uint64_t n_chain)
{
	struct converter *converter = context;
	const struct perf_event_attr *attr = &converter->source->events[record->event_index].attr;
	struct sample sample;
	window_update_events(&converter->window);
	if (!sample_read(record, attr, converter->source->is_swapped, &sample))
		converter->totals.malformed++;
	/* Since it came, its event may have been found to be a dummy. */
	else if (!group_read_applies(attr) && is_left_out(converter, record))
		converter->totals.filtered++;
	else if (group_read_applies(attr))
		feed_group(converter, record, &sample,
			   &(struct user_part){.chain = chain, .n_chain = n_chain});
	else
		window_add_deferred(&converter->window, record, &sample, chain, n_chain);
}

static bool waits_for_user_part(const struct converter *converter, const struct sample *sample)
{
	return sample->n_chain >= 2 &&
	       sample_u64(sample->chain, (size_t)sample->n_chain - 2,
			  converter->source->is_swapped) == PERF_CONTEXT_USER_DEFERRED;
}

static void feed_sample(struct converter *converter, const struct perf_record *record)
{
	const struct perf_source_info *source = converter->source;
	converter->totals.taken++;
	if (UNLIKELY(record->event_index >= source->n_events)) {
		converter->totals.no_event++;
		return;
	}
	window_update_events(&converter->window);
	struct sample *sample = window_next(&converter->window);
	if (UNLIKELY(!sample_read(record, &source->events[record->event_index].attr,
				  source->is_swapped, sample))) {
		converter->totals.malformed++;
		return;
	}
	bool is_group = group_read_applies(&source->events[record->event_index].attr);
	if (UNLIKELY(!is_group && is_left_out(converter, record))) {
		converter->totals.filtered++;
		return;
	}
	/* A copied stack is the user part, here and now. */
	if (UNLIKELY(waits_for_user_part(converter, sample) && !user_stack_is_there(sample))) {
		uint64_t cookie =
			sample_u64(sample->chain, (size_t)sample->n_chain - 1, source->is_swapped);
		deferred_add(&converter->deferred, record, sample->tid, cookie, finish_deferred,
			     converter);
		return;
	}
	if (UNLIKELY(is_group)) {
		const struct sample whole = *sample;
		feed_group(converter, record, &whole, NULL);
		return;
	}
	window_add(&converter->window, record);
}

/* --- side band --- */

static bool feed_lost(struct converter *converter, const struct record_view *view)
{
	struct record_lost lost;
	if (view->record->type == PERF_RECORD_LOST) {
		if (!record_read_lost(view, &lost))
			return false;
		converter->totals.lost_events += lost.n;
	} else {
		if (!record_read_lost_samples(view, &lost))
			return false;
		converter->totals.lost_samples += lost.n;
	}
	return true;
}

static bool feed_cgroup(struct converter *converter, const struct record_view *view)
{
	struct record_cgroup cgroup;
	if (!record_read_cgroup(view, &cgroup))
		return false;
	labeler_add_cgroup(&converter->window.labeler, cgroup.id, cgroup.path);
	return true;
}

static bool feed_deferred_chain(struct converter *converter, const struct record_view *view)
{
	const struct sample_layout layout = scene_layout(&converter->scene, view->record);
	struct record_deferred_chain chain;
	if (!record_read_deferred_chain(view, &layout, &chain))
		return false;
	deferred_complete(&converter->deferred, chain.tid, chain.cookie, chain.entries, chain.n,
			  finish_deferred, converter);
	return true;
}

/* Names of a past moment, which COMM records say better: only checked. */
static bool check_thread_map(const struct record_view *view)
{
	struct record_thread_map map;
	uint64_t tid;
	const char *comm;
	if (!record_read_thread_map(view, &map))
		return false;
	while (record_thread_map_next(&map, &tid, &comm))
		continue;
	return map.next == map.n;
}

static bool feed_side_band(struct converter *converter, const struct perf_record *record)
{
	const struct record_view view = scene_view(&converter->scene, record);
	enum scene_outcome outcome = scene_feed(&converter->scene, &view);
	if (outcome != SCENE_UNMOVED)
		return outcome == SCENE_CHANGED;
	switch (record->type) {
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return feed_lost(converter, &view);
	case PERF_RECORD_THROTTLE:
		converter->totals.throttled++;
		return true;
	case PERF_RECORD_CGROUP:
		return feed_cgroup(converter, &view);
	case PERF_RECORD_CALLCHAIN_DEFERRED:
		return feed_deferred_chain(converter, &view);
	case PERF_RECORD_THREAD_MAP:
		return check_thread_map(&view);
	/* Known, and nothing in them bears on a profile. */
	case PERF_RECORD_UNTHROTTLE:
	case PERF_RECORD_READ:
	case PERF_RECORD_AUX:
	case PERF_RECORD_ITRACE_START:
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
	case PERF_RECORD_NAMESPACES:
	case PERF_RECORD_BPF_EVENT:
	case PERF_RECORD_TEXT_POKE:
	case PERF_RECORD_AUX_OUTPUT_HW_ID:
		return true;
	default:
		if (record->type < PERF_RECORD_USER_TYPE_START ||
		    record->type >= PERF_RECORD_USER_MAX)
			converter->totals.unknown_records++;
		return true;
	}
}

/* Unwound ones that did not get to the thread's start. */
static uint64_t count_cut(const struct user_stack_totals *totals)
{
	return totals->unwound - totals->stops[UNWIND_STOP_END];
}

/* Tells base/stats what the totals grew by. */
static void publish(struct converter *converter)
{
	const struct converter_totals *t = &converter->totals, *p = &converter->published;
	stats_add(STAT_SAMPLES_TAKEN, t->taken - p->taken);
	stats_add(STAT_SAMPLES_WRITTEN, t->written - p->written);
	stats_add(STAT_SAMPLES_MALFORMED, t->malformed - p->malformed);
	stats_add(STAT_SAMPLES_NO_EVENT, t->no_event - p->no_event);
	stats_add(STAT_SAMPLES_FILTERED, t->filtered - p->filtered);
	stats_add(STAT_SAMPLES_LOST, t->lost_samples - p->lost_samples);
	stats_add(STAT_EVENTS_LOST, t->lost_events - p->lost_events);
	stats_add(STAT_THROTTLED, t->throttled - p->throttled);
	stats_add(STAT_USER_STACKS_UNWOUND, t->user_stacks.unwound - p->user_stacks.unwound);
	stats_add(STAT_USER_STACKS_CUT, count_cut(&t->user_stacks) - count_cut(&p->user_stacks));
	stats_add(STAT_USER_STACKS_SHORT, t->user_stacks.stops[UNWIND_STOP_DUMP_SHORT] -
						  p->user_stacks.stops[UNWIND_STOP_DUMP_SHORT]);
	stats_add(STAT_USER_STACKS_SKIPPED, t->user_stacks.skipped - p->user_stacks.skipped);
	stats_add(STAT_RECORDS_UNKNOWN, t->unknown_records - p->unknown_records);
	stats_add(STAT_RECORDS_MALFORMED, t->malformed_records - p->malformed_records);
	converter->published = converter->totals;
}

struct error *converter_feed(void *context, const struct perf_record *records, size_t n)
{
	struct converter *converter = context;
	struct converter_totals *totals = &converter->totals;
	for (size_t i = 0; i < n; i++) {
		if (records[i].type == PERF_RECORD_SAMPLE) {
			feed_sample(converter, &records[i]);
			continue;
		}
		window_flush(&converter->window);
		totals->malformed_records += !feed_side_band(converter, &records[i]);
	}
	window_flush(&converter->window);
	totals->written = converter->window.n_written;
	totals->user_stacks = converter->user_stacks.totals;
	stats_add(STAT_RECORDS_READ, n);
	publish(converter);
	return NULL;
}

/* --- the end of a window --- */

/* Takes text. */
static void add_comment(struct profile *profile, char *text)
{
	profile_add_comment(profile, text);
	mem_free(text);
}

static void add_trusted_files(const struct converter *converter)
{
	for (uint32_t i = 0; i < converter->scene.images.n; i++) {
		const struct image *image = image_table_get(&converter->scene.images, i);
		if (image->module && module_get_state(image->module) == MODULE_OK_TRUSTED)
			add_comment(converter->window.profile,
				    mem_format("taken on trust: %s", image->path));
	}
}

static void add_event_comments(const struct converter *converter)
{
	for (uint32_t e = 0; e < converter->window.columns.n_events; e++) {
		const struct perf_event_info *event = &converter->source->events[e];
		if (converter->window.columns.first_column[e] != EVENT_COLUMN_NONE)
			add_comment(converter->window.profile,
				    mem_format("event: %s, %s %" PRIu64, event->name,
					       perf_attr_has(&event->attr, PERF_ATTR_FREQ)
						       ? "Hz"
						       : "period",
					       event->attr.sample_period));
	}
	if (converter->window.columns.ns_per_sample)
		add_comment(converter->window.profile,
			    mem_format("cpu/nanoseconds is an estimate: %" PRId64
				       " ns (1/Hz) a sample",
				       converter->window.columns.ns_per_sample));
}

/* What became of this window's samples. */
static void add_count_comments(const struct converter *converter)
{
	const struct converter_totals *t = &converter->totals, *w = &converter->window_start;
	struct profile *profile = converter->window.profile;
	const struct {
		const char *name;
		uint64_t n;
	} counts[] = {
		{"lost_events", t->lost_events - w->lost_events},
		{"lost_samples", t->lost_samples - w->lost_samples},
		{"dropped_malformed", t->malformed - w->malformed},
		{"dropped_no_event", t->no_event - w->no_event},
		{"left_out", t->filtered - w->filtered},
		{"throttled", t->throttled - w->throttled},
		{"user_stacks_unwound", t->user_stacks.unwound - w->user_stacks.unwound},
		{"user_stacks_by_frame_pointers", t->user_stacks.outdone - w->user_stacks.outdone},
		{"user_stacks_not_unwound", t->user_stacks.skipped - w->user_stacks.skipped},
	};
	add_comment(profile, mem_format("samples: %" PRIu64 " taken, %" PRIu64 " written",
					t->taken - w->taken, t->written - w->written));
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		if (counts[i].n)
			add_comment(profile,
				    mem_format("%s: %" PRIu64, counts[i].name, counts[i].n));
	}
}

/* Why unwinding ended before the thread's start. */
static void add_cut_comments(const struct converter *converter)
{
	const struct user_stack_totals *t = &converter->totals.user_stacks,
				       *w = &converter->window_start.user_stacks;
	for (int stop = UNWIND_STOP_END + 1; stop < UNWIND_STOP_N; stop++) {
		if (t->stops[stop] > w->stops[stop])
			add_comment(converter->window.profile,
				    mem_format("user_stacks_cut, %s: %" PRIu64,
					       unwind_stop_text((enum unwind_stop)stop),
					       t->stops[stop] - w->stops[stop]));
	}
}

static void add_jit_comment(struct profile *profile, const char *what, const char *outcome,
			    uint64_t n, int32_t pid)
{
	if (n)
		add_comment(profile, mem_format("%s: %" PRIu64 " (%s), first of pid %d", what, n,
						outcome, pid));
}

/* Files with names of JIT code that were there and not believed, or not wholly read. */
static void add_jit_comments(const struct converter *converter)
{
	const struct jit_totals *jit = &converter->totals.jit;
	struct profile *profile = converter->window.profile;
	for (int i = 0; i < JIT_FILE_STATE_N; i++) {
		const char *outcome = jit_file_state_text((enum jit_file_state)i);
		if (jit_file_is_refused((enum jit_file_state)i))
			add_jit_comment(profile, "JIT map not used", outcome, jit->maps[i],
					jit->map_pids[i]);
		if (i != JIT_FILE_OK)
			add_jit_comment(profile, "jitdump not used", outcome, jit->dumps[i],
					jit->dump_pids[i]);
	}
	for (int i = 0; i < JIT_DUMP_STATE_N; i++) {
		if (i != JIT_DUMP_OK)
			add_jit_comment(profile,
					i == JIT_DUMP_DAMAGED ? "jitdump" : "jitdump not used",
					jit_dump_state_text((enum jit_dump_state)i),
					jit->dump_states[i], jit->dump_state_pids[i]);
	}
	if (jit->n_unmet)
		add_comment(profile,
			    mem_format("JIT map without frames: %" PRIu64 " (no call chain reaches "
				       "its code: frame pointers?), first of pid %d",
				       jit->n_unmet, jit->unmet_pid));
	if (jit->n_malformed)
		add_comment(profile, mem_format("jit_names_malformed: %" PRIu64, jit->n_malformed));
	if (jit->n_left_out)
		add_comment(profile, mem_format("jit_names_left_out: %" PRIu64, jit->n_left_out));
}

/*
 * How many bytes of a recorder's command line are its own: the program, its command and options up
 * to the first word that is neither an option nor a number. What comes behind may be the command
 * that was recorded, whose arguments belong to its user (paths, tokens); only the word behind "--",
 * its program, is kept.
 */
static size_t own_words(const char *cmdline)
{
	size_t end = 0;
	for (size_t i = 0; cmdline[end]; i++) {
		size_t begin = end + strspn(cmdline + end, " ");
		size_t n = strcspn(cmdline + begin, " ");
		const char *word = cmdline + begin;
		if (n == 2 && memcmp(word, "--", 2) == 0) {
			size_t program = begin + n + strspn(word + n, " ");
			return program + strcspn(cmdline + program, " ");
		}
		if (i >= 2 && word[0] != '-' && strspn(word, "0123456789.,") < n)
			return end;
		end = begin + n;
	}
	return end;
}

static void add_command_comment(struct profile *profile, const char *cmdline)
{
	size_t n = own_words(cmdline);
	add_comment(profile,
		    mem_format("command: %.*s%s", (int)n, cmdline, cmdline[n] ? " ..." : ""));
}

/* Facts for people; nothing reads them to work. */
static void add_comments(const struct converter *converter)
{
	const struct perf_source_info *source = converter->source;
	struct profile *profile = converter->window.profile;
	if (source->hostname)
		add_comment(profile, mem_format("host: %s", source->hostname));
	if (source->os_release)
		add_comment(profile, mem_format("kernel: %s %s", source->os_release,
						source->arch ? source->arch : ""));
	if (source->cmdline)
		add_command_comment(profile, source->cmdline);
	add_event_comments(converter);
	add_count_comments(converter);
	add_cut_comments(converter);
	add_trusted_files(converter);
	add_jit_comments(converter);
}

static void set_times(const struct converter *converter)
{
	const struct perf_source_info *source = converter->source;
	struct profile *profile = converter->window.profile;
	uint64_t span = converter->window.last_ns - converter->window.first_ns;
	profile->duration_nanos = (int64_t)span;
	if (source->has_clock_pair && converter->window.first_ns)
		profile->time_nanos =
			(int64_t)(source->clock_pair_wall_ns +
				  (converter->window.first_ns - source->clock_pair_event_ns));
	else if (source->recorded_at_ns > span)
		profile->time_nanos = (int64_t)(source->recorded_at_ns - span);
	if (profile->time_nanos && !source->has_clock_pair)
		profile_add_comment(profile,
				    "time is approximate: the recording has no wall clock, "
				    "it is when the file was made less its length");
}

static struct error *check_event(const struct converter *converter)
{
	if (!converter->config.event || converter->window.columns.n_used)
		return NULL;
	struct buf names CLEANUP(buf_fini);
	buf_init(&names, 4096);
	for (uint32_t e = 0; e < converter->source->n_events; e++) {
		struct error *err = buf_printf(&names, "%s%s", e ? ", " : "",
					       converter->source->events[e].name);
		if (err) {
			error_free(err);
			break;
		}
	}
	return error_number(error_new(ERROR_NO_ENTRY, "no event \"%s\" in the input; it has: %s",
				      converter->config.event, buf_string(&names)),
			    612);
}

struct error *converter_finish(struct converter *converter,
			       void (*progress)(void *, uint64_t, uint64_t), void *progress_context,
			       struct profile **out)
{
	deferred_flush(&converter->deferred, finish_deferred, converter);
	window_update_events(&converter->window);
	converter->totals.written = converter->window.n_written;
	publish(converter);
	struct error *err = check_event(converter);
	if (err)
		return err;
	converter->totals.n_locations = converter->window.locations.n;
	window_close(&converter->window);
	const struct symbolize_input input = {
		.profile = converter->window.profile,
		.images = &converter->scene.images,
		.jit = &converter->scene.jit,
		.kernel = &converter->scene.kernel,
		.source = converter->source,
		.cache = converter->cache,
		.main_path = converter->config.main_path,
		.progress = progress,
		.progress_context = progress_context,
	};
	image_table_adopt_build_ids(&converter->scene.images, converter->source);
	symbolize(&input, converter->totals.frames);
	converter->totals.jit = converter->scene.jit.totals;
	jit_table_end_window(&converter->scene.jit);
	set_times(converter);
	add_comments(converter);
	converter->window_start = converter->totals;
	*out = window_take_profile(&converter->window);
	return NULL;
}
