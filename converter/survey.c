/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/survey.h"

#include "base/mem.h"
#include "converter/deferred.h"
#include "converter/record.h"
#include "converter/sample.h"
#include "converter/scene.h"
#include "converter/survey_place.h"
#include "converter/survey_tables.h"

/* A record has at most 64 KiB, so a chain and its deferred part have no more words than this. */
enum { CHAIN_WORDS_MAX = 2 * (65536 / 8) };

struct survey {
	const struct perf_source_info *source;
	struct scene scene;
	struct deferred_table deferred;
	struct survey_tables tables;
	struct survey_report report;
	uint32_t event_capacity;
	uint64_t frames[CHAIN_WORDS_MAX]; /* of the sample at hand, without markers */
	size_t n_frames;
};

const char *survey_kind_name(enum survey_kind kind)
{
	static const char *const names[SURVEY_KINDS] = {
		[SURVEY_FILE] = "file",
		[SURVEY_VDSO] = "vdso",
		[SURVEY_ANON] = "anon",
		[SURVEY_SPECIAL] = "special",
		[SURVEY_KERNEL] = "kernel",
		[SURVEY_MODULE] = "module",
		[SURVEY_BPF] = "bpf",
		[SURVEY_GUEST_KERNEL] = "guest-kernel",
		[SURVEY_GUEST_USER] = "guest-user",
		[SURVEY_HYPERVISOR] = "hypervisor",
		[SURVEY_UNKNOWN] = "unknown",
		[SURVEY_KERNEL_UNMAPPED] = "kernel-unmapped",
	};
	return names[kind];
}

struct survey *survey_new(const struct perf_source_info *source)
{
	struct survey *survey = mem_zalloc(1, sizeof(*survey));
	survey->source = source;
	scene_init(&survey->scene, source, NULL);
	survey_tables_init(&survey->tables);
	return survey;
}

void survey_free(struct survey *survey)
{
	if (!survey)
		return;
	survey_tables_fini(&survey->tables, &survey->report);
	mem_free(survey->report.events);
	deferred_fini(&survey->deferred);
	scene_fini(&survey->scene);
	mem_free(survey);
}

/* Events can be added while records are read. */
static void update_events(struct survey *survey)
{
	struct survey_report *report = &survey->report;
	uint32_t n = survey->source->n_events;
	if (n > survey->event_capacity) {
		survey->event_capacity = n * 2;
		report->events = mem_realloc(report->events, survey->event_capacity,
					     sizeof(*report->events));
	}
	for (; report->n_events < n; report->n_events++)
		report->events[report->n_events] = (struct survey_event){0};
}

/* --- samples --- */

static bool is_kernel_side(uint64_t marker, bool is_kernel)
{
	switch (marker) {
	case PERF_CONTEXT_KERNEL:
	case PERF_CONTEXT_HV:
	case PERF_CONTEXT_GUEST:
	case PERF_CONTEXT_GUEST_KERNEL:
		return true;
	case PERF_CONTEXT_USER:
	case PERF_CONTEXT_USER_DEFERRED:
	case PERF_CONTEXT_GUEST_USER:
		return false;
	default:
		return is_kernel;
	}
}

static void count_words(struct survey *survey, const uint8_t *words, uint64_t n, bool is_kernel)
{
	struct survey_chains *chains = &survey->report.chains;
	for (size_t i = 0; i < n; i++) {
		uint64_t word = sample_u64(words, i, survey->source->is_swapped);
		chains->n_entries++;
		if (word >= PERF_CONTEXT_MAX) {
			is_kernel = is_kernel_side(word, is_kernel);
			continue;
		}
		if (survey->n_frames < CHAIN_WORDS_MAX)
			survey->frames[survey->n_frames++] = word;
		chains->n_frames++;
		if (is_kernel)
			chains->n_kernel_frames++;
		else
			chains->n_user_frames++;
	}
}

static bool is_kernel_sample(uint16_t misc)
{
	switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
	case PERF_RECORD_MISC_HYPERVISOR:
	case PERF_RECORD_MISC_GUEST_KERNEL:
		return true;
	default:
		return false;
	}
}

static bool waits_for_user_part(const struct survey *survey, const struct sample *sample)
{
	return sample->n_chain >= 2 &&
	       sample_u64(sample->chain, (size_t)sample->n_chain - 2, survey->source->is_swapped) ==
		       PERF_CONTEXT_USER_DEFERRED;
}

/* The sample's own chain without its last n_left_out words, then the deferred part. */
static void count_chain(struct survey *survey, const struct perf_record *record,
			const struct sample *sample, uint64_t n_left_out, const uint8_t *deferred,
			uint64_t n_deferred)
{
	struct survey_chains *chains = &survey->report.chains;
	const struct perf_event_attr *attr = &survey->source->events[record->event_index].attr;
	survey->n_frames = 0;
	if (attr->sample_type & PERF_SAMPLE_CALLCHAIN) {
		count_words(survey, sample->chain, sample->n_chain - n_left_out,
			    is_kernel_sample(record->misc));
		count_words(survey, deferred, n_deferred, false);
		if (sample->n_chain)
			chains->n_with++;
		else
			chains->n_empty++;
		if (survey->n_frames > chains->max_frames)
			chains->max_frames = survey->n_frames;
	}
	if (survey->n_frames == 0)
		survey->frames[survey->n_frames++] = sample->ip;
	survey_tables_add_stack(&survey->tables, &survey->report, sample->pid, record->event_index,
				survey->frames, survey->n_frames);
}

/* A deferred_finish_fn. */
static void finish_deferred(void *context, const struct perf_record *record, const uint8_t *chain,
			    uint64_t n_chain)
{
	struct survey *survey = context;
	const struct perf_event_attr *attr = &survey->source->events[record->event_index].attr;
	struct sample sample;
	if (!sample_read(record, attr, survey->source->is_swapped, &sample))
		return; /* it was read once already */
	if (chain)
		survey->report.n_deferred_merged++;
	else
		survey->report.n_deferred_left++;
	/* The cookie is no entry; nor is its marker when nothing came to stand behind it. */
	count_chain(survey, record, &sample, chain ? 1 : 2, chain, n_chain);
}

static void count_parts(struct survey_report *report, const struct sample *sample)
{
	report->n_user_regs += sample->user_regs != NULL;
	report->n_user_stacks += sample->stack != NULL;
	report->user_stack_bytes += sample->stack_bytes;
	report->n_with_branches += sample->n_branches != 0;
	report->n_branches += sample->n_branches;
	report->n_raw += sample->raw_bytes != 0;
	if (!sample->time_ns)
		return;
	if (!report->first_ns || sample->time_ns < report->first_ns)
		report->first_ns = sample->time_ns;
	if (sample->time_ns > report->last_ns)
		report->last_ns = sample->time_ns;
}

static void feed_sample(struct survey *survey, const struct perf_record *record)
{
	const struct perf_source_info *source = survey->source;
	struct survey_report *report = &survey->report;
	if (UNLIKELY(record->event_index >= source->n_events)) {
		report->n_no_event++;
		return;
	}
	const struct perf_event_attr *attr = &source->events[record->event_index].attr;
	struct sample sample;
	if (UNLIKELY(!sample_read(record, attr, source->is_swapped, &sample))) {
		report->n_malformed++;
		return;
	}
	update_events(survey);
	struct survey_event *event = &report->events[record->event_index];
	event->n_samples++;
	event->period_sum += sample.period;
	if (attr->read_format & PERF_FORMAT_GROUP)
		event->n_read_values += sample.n_read_values;
	report->n_samples++;
	count_parts(report, &sample);

	struct thread *thread =
		process_table_recent(&survey->scene.processes, sample.pid, sample.tid);
	char text[THREAD_COMM_BYTES];
	survey_tables_add_task(&survey->tables, report, thread_comm(thread, text), sample.pid);
	struct survey_place place = survey_place_find(&survey->scene.kernel, thread->process->space,
						      record->misc, sample.ip);
	survey_tables_add_place(&survey->tables, report, sample.pid, &place, sample.period);
	if (UNLIKELY(waits_for_user_part(survey, &sample))) {
		uint64_t cookie =
			sample_u64(sample.chain, (size_t)sample.n_chain - 1, source->is_swapped);
		deferred_add(&survey->deferred, record, sample.tid, cookie, finish_deferred,
			     survey);
		return;
	}
	count_chain(survey, record, &sample, 0, NULL, 0);
}

/* --- side band --- */

static bool feed_lost(struct survey *survey, const struct record_view *view)
{
	struct survey_report *report = &survey->report;
	struct record_lost lost;
	if (view->record->type == PERF_RECORD_LOST) {
		if (!record_read_lost(view, &lost))
			return false;
		report->n_lost_records++;
		report->n_lost_events += lost.n;
		return true;
	}
	if (!record_read_lost_samples(view, &lost))
		return false;
	report->n_lost_samples_records++;
	report->n_lost_samples += lost.n;
	return true;
}

static bool feed_deferred_chain(struct survey *survey, const struct record_view *view)
{
	const struct sample_layout layout = scene_layout(&survey->scene, view->record);
	struct record_deferred_chain chain;
	if (!record_read_deferred_chain(view, &layout, &chain))
		return false;
	survey->report.n_deferred_records++;
	deferred_complete(&survey->deferred, chain.tid, chain.cookie, chain.entries, chain.n,
			  finish_deferred, survey);
	return true;
}

/* Only what changes the scene or counts is read. */
static bool feed_side_band(struct survey *survey, const struct perf_record *record)
{
	const struct record_view view = scene_view(&survey->scene, record);
	switch (record->type) {
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return feed_lost(survey, &view);
	case PERF_RECORD_CALLCHAIN_DEFERRED:
		return feed_deferred_chain(survey, &view);
	default:
		return scene_feed(&survey->scene, &view) != SCENE_MALFORMED;
	}
}

struct error *survey_feed(void *context, const struct perf_record *records, size_t n)
{
	struct survey *survey = context;
	for (size_t i = 0; i < n; i++) {
		if (records[i].type == PERF_RECORD_SAMPLE)
			feed_sample(survey, &records[i]);
		else if (!feed_side_band(survey, &records[i]))
			survey->report.n_malformed_records++;
	}
	return NULL;
}

const struct survey_report *survey_finish(struct survey *survey)
{
	deferred_flush(&survey->deferred, finish_deferred, survey);
	update_events(survey);
	survey_tables_sort(&survey->tables, &survey->report);
	return &survey->report;
}
