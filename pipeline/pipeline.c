/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/pipeline.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mailbox.h"
#include "base/mem.h"
#include "base/stats.h"
#include "pipeline/record_block.h"

enum { MAX_WAITING = 64, MAX_WAITING_FOR_CALL = 1024 };

struct pipeline_call {
	pipeline_call_fn fn;
	void *context;
	int fd; /* written by the convert thread when fn is back */
};

struct pipeline {
	struct pipeline_config config;
	/* Main thread. */
	struct record_block *current;
	/* Oldest first: blocks, without samples unless it is patient, or the call below. */
	void **waiting;
	size_t n_waiting, waiting_capacity;
	bool is_calling;
	bool is_patient; /* since a call, until everything has gone into the mailbox */
	struct pipeline_losses losses;
	/* Both threads. */
	struct mailbox *mailbox;
	int failure_fd;
	struct pipeline_call call; /* the convert thread's while it is in the mailbox */
	/* Convert thread until it was joined. */
	pthread_t thread;
	bool has_thread;
	struct error *failure;
};

static struct error *pass(const struct pipeline *pipeline, const struct perf_record *records,
			  size_t n)
{
	for (size_t i = 0; i < pipeline->config.n_sinks; i++) {
		const struct pipeline_sink *sink = &pipeline->config.sinks[i];
		struct error *err = sink->add(sink->context, records, n);
		if (err)
			return err;
	}
	return NULL;
}

static struct error *work_on(struct pipeline *pipeline, const void *item)
{
	if (item == &pipeline->call)
		return pipeline->call.fn(pipeline->call.context);
	const struct record_block *block = item;
	return pass(pipeline, block->records, block->n);
}

static void free_item(const struct pipeline *pipeline, void *item)
{
	if (item != &pipeline->call)
		record_block_free(item);
}

/* Goes on taking after a failure, so that the other side never waits for room in vain. */
static void *run(void *context)
{
	struct pipeline *pipeline = context;
	for (void *item; mailbox_take(pipeline->mailbox, MAILBOX_FOREVER, &item);) {
		if (!pipeline->failure) {
			pipeline->failure = work_on(pipeline, item);
			if (pipeline->failure)
				eventfd_write(pipeline->failure_fd, 1);
		}
		if (item == &pipeline->call)
			eventfd_write(pipeline->call.fd, 1);
		free_item(pipeline, item);
	}
	return NULL;
}

/* Signals are the main thread's business. */
static struct error *start_thread(struct pipeline *pipeline)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int rc = pthread_create(&pipeline->thread, NULL, run, pipeline);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return error_number(error_errno(rc, "cannot start the convert thread"), 117);
	pipeline->has_thread = true;
	pthread_setname_np(pipeline->thread, "convert");
	return NULL;
}

struct error *pipeline_open(const struct pipeline_config *config, struct pipeline **out)
{
	struct pipeline *pipeline = mem_zalloc(1, sizeof(*pipeline));
	pipeline->config = *config;
	pipeline->failure_fd = pipeline->call.fd = -1;
	struct error *err = NULL;
	if (config->is_threaded) {
		size_t n = config->max_blocks ? config->max_blocks : PIPELINE_BLOCKS_DEFAULT;
		pipeline->mailbox = mailbox_new(n);
		pipeline->failure_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		pipeline->call.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		err = pipeline->failure_fd < 0 || pipeline->call.fd < 0
			      ? error_number(error_errno(errno, "convert thread"), 107)
			      : start_thread(pipeline);
	}
	if (err) {
		pipeline_close(pipeline);
		return err;
	}
	*out = pipeline;
	return NULL;
}

/* False when some still wait. */
static bool send_waiting(struct pipeline *pipeline)
{
	size_t n = 0;
	while (n < pipeline->n_waiting && mailbox_put(pipeline->mailbox, pipeline->waiting[n]))
		n++;
	pipeline->n_waiting -= n;
	if (n)
		memmove(pipeline->waiting, pipeline->waiting + n,
			pipeline->n_waiting * sizeof(pipeline->waiting[0]));
	if (pipeline->n_waiting == 0 && !pipeline->is_calling)
		pipeline->is_patient = false;
	return pipeline->n_waiting == 0;
}

static void let_wait(struct pipeline *pipeline, void *item)
{
	if (pipeline->n_waiting == pipeline->waiting_capacity) {
		pipeline->waiting_capacity =
			pipeline->waiting_capacity ? 2 * pipeline->waiting_capacity : MAX_WAITING;
		pipeline->waiting = mem_realloc(pipeline->waiting, pipeline->waiting_capacity,
						sizeof(*pipeline->waiting));
	}
	pipeline->waiting[pipeline->n_waiting++] = item;
}

/* All of the current block, though the mailbox has no room. */
static void let_current_wait(struct pipeline *pipeline)
{
	if (pipeline->current)
		let_wait(pipeline, pipeline->current);
	pipeline->current = NULL;
}

static void count_losses(struct pipeline *pipeline, size_t n_samples, size_t n_others)
{
	pipeline->losses.samples += n_samples;
	pipeline->losses.others += n_others;
	stats_add(STAT_MAILBOX_DROPPED, n_samples + n_others);
}

/* The current block is full and there is no room: only what later samples need is kept. */
static void thin_out(struct pipeline *pipeline)
{
	if (pipeline->is_patient && pipeline->n_waiting < MAX_WAITING_FOR_CALL) {
		let_current_wait(pipeline);
		return;
	}
	struct record_block *block = pipeline->current;
	count_losses(pipeline, record_block_drop_samples(block), 0);
	if (block->n < RECORD_BLOCK_RECORDS / 2 && block->used_bytes < RECORD_BLOCK_BYTES / 2)
		return;
	if (pipeline->n_waiting < MAX_WAITING) {
		let_current_wait(pipeline);
		return;
	}
	pipeline->current = NULL;
	count_losses(pipeline, 0, block->n);
	record_block_free(block);
}

void pipeline_flush(struct pipeline *pipeline)
{
	if (!pipeline->mailbox || !send_waiting(pipeline))
		return;
	struct record_block *block = pipeline->current;
	if (block && block->n && mailbox_put(pipeline->mailbox, block))
		pipeline->current = NULL;
}

static void add_record(struct pipeline *pipeline, const struct perf_record *record)
{
	for (int attempt = 0; attempt < 2; attempt++) {
		if (!pipeline->current)
			pipeline->current = record_block_new();
		if (record_block_add(pipeline->current, record))
			return;
		pipeline_flush(pipeline);
		if (pipeline->current)
			thin_out(pipeline);
	}
	bool is_sample = record->type == PERF_RECORD_SAMPLE;
	count_losses(pipeline, is_sample, !is_sample);
}

struct error *pipeline_feed(void *context, const struct perf_record *records, size_t n)
{
	struct pipeline *pipeline = context;
	if (!pipeline->mailbox)
		return pass(pipeline, records, n);
	for (size_t i = 0; i < n; i++)
		add_record(pipeline, &records[i]);
	return NULL;
}

int pipeline_failure_fd(const struct pipeline *pipeline)
{
	return pipeline->failure_fd;
}

void pipeline_call(struct pipeline *pipeline, pipeline_call_fn fn, void *context)
{
	assert(pipeline->mailbox && !pipeline->is_calling);
	pipeline->call.fn = fn;
	pipeline->call.context = context;
	pipeline->is_calling = pipeline->is_patient = true;
	let_current_wait(pipeline);
	let_wait(pipeline, &pipeline->call);
	(void)send_waiting(pipeline);
}

int pipeline_call_fd(const struct pipeline *pipeline)
{
	return pipeline->call.fd;
}

bool pipeline_is_calling(struct pipeline *pipeline)
{
	eventfd_t n;
	if (pipeline->is_calling && eventfd_read(pipeline->call.fd, &n) == 0)
		pipeline->is_calling = false;
	return pipeline->is_calling;
}

/* The rings rest by now, so waiting for room harms nobody. */
static void send_rest(struct pipeline *pipeline)
{
	for (size_t i = 0; i < pipeline->n_waiting; i++) {
		if (!mailbox_put_wait(pipeline->mailbox, pipeline->waiting[i]))
			free_item(pipeline, pipeline->waiting[i]);
	}
	pipeline->n_waiting = 0;
	struct record_block *block = pipeline->current;
	pipeline->current = NULL;
	if (block && !mailbox_put_wait(pipeline->mailbox, block))
		record_block_free(block);
}

static void join(struct pipeline *pipeline)
{
	if (!pipeline->has_thread)
		return;
	mailbox_close(pipeline->mailbox);
	pthread_join(pipeline->thread, NULL);
	pipeline->has_thread = false;
}

struct error *pipeline_finish(struct pipeline *pipeline)
{
	if (pipeline->has_thread) {
		send_rest(pipeline);
		join(pipeline);
	}
	struct error *err = pipeline->failure;
	pipeline->failure = NULL;
	return err;
}

struct pipeline_losses pipeline_get_losses(const struct pipeline *pipeline)
{
	return pipeline->losses;
}

void pipeline_close(struct pipeline *pipeline)
{
	if (!pipeline)
		return;
	join(pipeline);
	for (size_t i = 0; i < pipeline->n_waiting; i++)
		free_item(pipeline, pipeline->waiting[i]);
	mem_free(pipeline->waiting);
	record_block_free(pipeline->current);
	if (pipeline->mailbox)
		mailbox_free(pipeline->mailbox, record_block_free);
	if (pipeline->failure_fd >= 0)
		close(pipeline->failure_fd);
	if (pipeline->call.fd >= 0)
		close(pipeline->call.fd);
	error_free(pipeline->failure);
	mem_free(pipeline);
}
