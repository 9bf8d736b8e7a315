/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/window.h"

#include "base/cleanup.h"
#include "base/hash_map.h"
#include "base/mem.h"

/* Past both, one event a row takes far less room than one stack a row. */
enum { JOINED_COLUMNS_MAX = 16, JOINED_VALUES_MAX = 1 << 21 };

static bool may_join_rows(const struct profile *profile)
{
	uint32_t n_columns = profile->sample_types.n;
	return n_columns <= JOINED_COLUMNS_MAX ||
	       (uint64_t)n_columns * profile->samples.n <= JOINED_VALUES_MAX;
}

static void begin(struct window *window)
{
	window->profile = profile_new();
	event_columns_fini(&window->columns);
	event_columns_update(&window->columns, window->source, window->only_event, window->profile);
	location_table_clear(&window->locations);
	chain_cache_clear(&window->chains);
	stack_builder_begin(&window->stacks, window->profile);
	labeler_begin(&window->labeler, window->profile);
	window->first_ns = window->last_ns = 0;
}

void window_init(struct window *window, const struct perf_source_info *source,
		 const char *only_event, uint32_t labels, struct process_table *processes,
		 const struct kernel_space *kernel, struct image_table *images)
{
	*window = (struct window){
		.source = source,
		.only_event = only_event,
		.processes = processes,
		.kernel = kernel,
	};
	location_table_init(&window->locations);
	chain_cache_init(&window->chains);
	stack_builder_init(&window->stacks, images, &window->locations, kernel);
	labeler_init(&window->labeler, labels);
	begin(window);
}

void window_fini(struct window *window)
{
	profile_free(window->profile);
	event_columns_fini(&window->columns);
	labeler_fini(&window->labeler);
	stack_builder_fini(&window->stacks);
	chain_cache_fini(&window->chains);
	location_table_fini(&window->locations);
	*window = (struct window){0};
}

void window_update_events(struct window *window)
{
	if (event_columns_is_current(&window->columns, window->source))
		return;
	window_flush(window);
	chain_cache_clear(&window->chains); /* it knows rows by their columns */
	event_columns_update(&window->columns, window->source, window->only_event, window->profile);
}

static bool has_lbr_stack(const struct window *window, const struct sample *sample,
			  uint32_t event_index)
{
	const struct perf_event_attr *attr = &window->source->events[event_index].attr;
	return sample->n_branches && attr->branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK;
}

/* What beside the chain's words decides which row a sample adds to. */
static uint64_t chain_context(const struct window *window, const struct window_sample *item,
			      const struct thread *thread)
{
	/* An odd secret number: no input can be built to make two contexts one. */
	uint64_t odd = window->chains.seed | 1;
	uint64_t place = hash_mix(item->sample.ip ^ thread->process->space->generation * odd);
	uint64_t row = (uint64_t)item->label_set << 32 | (uint64_t)item->misc << 16;
	row ^= (uint64_t)window->columns.first_column[item->event_index] * odd;
	return hash_mix(place ^ row ^ kernel_space_generation(window->kernel) * odd);
}

/* What a process's code is called changes with time: a new moment is a new state of its space. */
static bool enter_moment(struct window *window, struct address_space *space, uint64_t time_ns)
{
	uint64_t moment_ns = jit_scope_look(space->jit, time_ns);
	if (moment_ns == space->jit_moment_ns)
		return false;
	window_flush(window);
	space->jit_moment_ns = moment_ns;
	space->generation = ++window->processes->pool.next_generation;
	return true;
}

/* For the sample that is next; where it is afterwards. */
static struct window_sample *follow_jit(struct window *window, struct address_space *space)
{
	struct window_sample *item = &window->group[window->n_group];
	if (!enter_moment(window, space, item->sample.time_ns))
		return item;
	window->group[0].sample = item->sample;
	return &window->group[0];
}

void window_add(struct window *window, const struct perf_record *record)
{
	struct window_sample *item = &window->group[window->n_group];
	const struct sample *sample = &item->sample;
	struct thread *thread =
		process_table_find_recent(window->processes, sample->pid, sample->tid);
	if (UNLIKELY(!thread)) {
		/* Making a thread may end another, whose sample waits in this group. */
		window_flush(window);
		window->group[0].sample = *sample;
		item = &window->group[0];
		sample = &item->sample;
		thread = process_table_thread(window->processes, sample->pid, sample->tid);
	}
	if (UNLIKELY(thread->process->space->jit)) {
		item = follow_jit(window, thread->process->space);
		sample = &item->sample;
	}
	window->n_group++;
	item->event_index = record->event_index;
	item->misc = record->misc;
	item->label_set = labeler_label(&window->labeler, thread, sample);
	/* An LBR stack is made of branches too, which the cache does not know. */
	item->is_cached = !has_lbr_stack(window, sample, record->event_index);
	if (item->is_cached) {
		item->hash = chain_cache_hash(&window->chains, sample->chain,
					      (size_t)sample->n_chain * sizeof(uint64_t),
					      chain_context(window, item, thread));
		chain_cache_prefetch(&window->chains, item->hash);
	}
	if (window->n_group == WINDOW_GROUP)
		window_flush(window);
}

static struct stack_input stack_input_of(const struct window *window, const struct sample *sample,
					 uint32_t event_index, uint16_t misc)
{
	const struct thread *thread =
		process_table_recent(window->processes, sample->pid, sample->tid);
	return (struct stack_input){
		.sample = sample,
		.space = thread->process->space,
		.misc = misc,
		.is_swapped = window->source->is_swapped,
		.has_lbr_stack = has_lbr_stack(window, sample, event_index),
	};
}

static uint32_t add_row(struct window *window, uint32_t event_index, uint32_t stack,
			uint32_t label_set)
{
	return profile_add_row(window->profile, stack, label_set,
			       window->columns.first_column[event_index]);
}

static void add_values(struct window *window, const struct sample *sample, uint32_t row)
{
	int64_t *values = profile_values(window->profile, row);
	if (sample->is_member) {
		event_columns_add_period(sample->period, values);
		return;
	}
	event_columns_add(&window->columns, sample->period, values);
	window->n_written++;
	uint64_t time_ns = sample->time_ns;
	if (!time_ns)
		return;
	if (!window->first_ns || time_ns < window->first_ns)
		window->first_ns = time_ns;
	if (time_ns > window->last_ns)
		window->last_ns = time_ns;
}

static uint32_t find_row(struct window *window, const struct window_sample *item)
{
	if (!item->is_cached)
		return add_row(window, item->event_index, item->stack, item->label_set);
	/* A chain may be twice in one group. */
	uint32_t row = chain_cache_find(&window->chains, item->hash);
	if (row != CHAIN_CACHE_NONE)
		return row;
	row = add_row(window, item->event_index, item->stack, item->label_set);
	chain_cache_put(&window->chains, item->hash, row);
	return row;
}

/* Reads new chains from first on until the builder has enough; the index behind the last sample. */
static uint32_t read_chains(struct window *window, uint32_t first)
{
	uint32_t i = first;
	stack_begin(&window->stacks);
	for (; i < window->n_group && !stack_is_full(&window->stacks); i++) {
		struct window_sample *item = &window->group[i];
		item->row = item->is_cached ? chain_cache_find(&window->chains, item->hash)
					    : CHAIN_CACHE_NONE;
		if (item->row != CHAIN_CACHE_NONE) {
			__builtin_prefetch(profile_values(window->profile, item->row), 1);
			continue;
		}
		const struct stack_input input =
			stack_input_of(window, &item->sample, item->event_index, item->misc);
		item->chain = stack_read(&window->stacks, &input);
	}
	return i;
}

static void build_stacks(struct window *window, uint32_t first, uint32_t end)
{
	stack_locate(&window->stacks);
	for (uint32_t i = first; i < end; i++) {
		if (window->group[i].row == CHAIN_CACHE_NONE)
			stack_join(&window->stacks, &window->group[i].chain);
	}
	for (uint32_t i = first; i < end; i++) {
		struct window_sample *item = &window->group[i];
		if (item->row != CHAIN_CACHE_NONE)
			continue;
		item->stack = stack_finish(&window->stacks, &item->chain);
		profile_prefetch_row(window->profile, item->stack, item->label_set,
				     window->columns.first_column[item->event_index]);
	}
}

void window_flush(struct window *window)
{
	for (uint32_t first = 0, end; first < window->n_group; first = end) {
		end = read_chains(window, first);
		build_stacks(window, first, end);
		for (uint32_t i = first; i < end; i++) {
			const struct window_sample *item = &window->group[i];
			uint32_t row =
				item->row != CHAIN_CACHE_NONE ? item->row : find_row(window, item);
			add_values(window, &item->sample, row);
		}
	}
	window->n_group = 0;
}

void window_add_deferred(struct window *window, const struct perf_record *record,
			 const struct sample *sample, const uint8_t *chain, uint64_t n_chain)
{
	window_flush(window);
	struct thread *thread = process_table_recent(window->processes, sample->pid, sample->tid);
	if (thread->process->space->jit)
		enter_moment(window, thread->process->space, sample->time_ns);
	uint32_t label_set = labeler_label(&window->labeler, thread, sample);
	struct stack_input input =
		stack_input_of(window, sample, record->event_index, record->misc);
	input.deferred = chain;
	input.n_deferred = n_chain;
	uint32_t stack = stack_build(&window->stacks, &input);
	add_values(window, sample, add_row(window, record->event_index, stack, label_set));
}

void window_close(struct window *window)
{
	window_flush(window);
	profile_trim(window->profile);
	location_table_move(&window->locations, window->profile);
}

struct profile *window_take_profile(struct window *window)
{
	struct profile *profile = window->profile;
	if (may_join_rows(profile))
		profile_join_rows(profile);
	profile_trim(profile);
	begin(window);
	return profile;
}
