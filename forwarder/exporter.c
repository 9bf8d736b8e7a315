/* SPDX-License-Identifier: Apache-2.0 */
/* From spool to server: which requests go out when, and what their answers lead to. */
#define LOG_AREA "exporter"
#include "forwarder/exporter.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash_seed.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "forwarder/backoff.h"
#include "forwarder/series.h"

static_assert(STAT_EXPORTER_FAILED_RATE_LIMITED - STAT_EXPORTER_FAILED_OTHER ==
			      BACKEND_REASON_RATE_LIMITED &&
		      BACKEND_REASON_RATE_LIMITED + 1 == BACKEND_REASON_N,
	      "counters in the order of the reasons");

#define NS_PER_S ((uint64_t)1000000000)
#define TEND_NS	 (5 * NS_PER_S)
/* Credentials that were refused twice are not tried again before; people replace them. */
#define AUTH_RETRY_NS	  (300 * NS_PER_S)
#define DEFAULT_INITIAL	  (5 * NS_PER_S)
#define DEFAULT_MAX	  (30 * NS_PER_S)
#define DEFAULT_MAX_AGE	  (24 * 3600 * NS_PER_S)
#define DEFAULT_TIMEOUT	  (10 * NS_PER_S)
#define MAX_BYTES_AT_ONCE ((size_t)32 << 20)
/* 128 requests to a server that takes 0.5 s for each are through in 8 s, less than a window. */
enum { DEFAULT_CONCURRENT = 8, MAX_CONCURRENT = 64 };

const uint32_t exporter_duration_bounds_ms[EXPORTER_DURATION_BUCKETS] = {
	5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10000};

/* A request under way. */
struct upload {
	struct exporter *exporter;
	struct grpc_call *call; /* NULL = this upload is free */
	struct spool_request request;
	struct buf message;
	uint64_t started_ns;
};

struct exporter {
	struct exporter_options options;
	const struct exporter_config *config;
	const struct backend *backend;
	struct spool *spool;
	struct spool_window *window; /* NULL = none is open */
	struct error *encode_error;  /* the first one of the window */
	struct upload *uploads;
	uint32_t n_uploads, n_active;
	size_t active_bytes;
	struct backoff backoff;
	uint64_t retry_at_ns; /* monotonic; 0 = now */
	uint64_t tended_ns;
	uint32_t n_auth_failures;
	struct exporter_counts counts;
};

const char *exporter_shown(const struct exporter_config *config)
{
	return config->shown ? config->shown : config->name;
}

static uint64_t now_ns(const struct exporter *exporter)
{
	return exporter->options.clock->monotonic_ns(exporter->options.clock->context);
}

static uint64_t smaller_nonzero(uint64_t a, uint64_t b)
{
	return !a ? b : !b || a < b ? a : b;
}

static void lost(void *context, const struct spool_lost *lost)
{
	struct exporter *exporter = context;
	/* Of a refusal its answer tells. */
	if (lost->loss == SPOOL_LOSS_REJECTED || !exporter->options.on_event)
		return;
	const struct exporter_event event = {
		.exporter = exporter->config->name,
		.kind = EXPORTER_LOST,
		.sequence = lost->sequence,
		.n_lost = lost->n_requests,
		.summary = {.n_samples = lost->n_samples, .n_profiles = (uint32_t)lost->n_profiles},
		.text = spool_loss_name(lost->loss),
	};
	exporter->options.on_event(exporter->options.context, &event);
}

struct error *exporter_new(const struct exporter_options *options, struct exporter **out)
{
	const struct exporter_config *config = options->config;
	struct exporter *exporter = mem_zalloc(1, sizeof(*exporter));
	exporter->options = *options;
	exporter->config = config;
	exporter->backend = backend_of_kind(config->kind);
	exporter->n_uploads = config->max_concurrent ? config->max_concurrent : DEFAULT_CONCURRENT;
	if (exporter->n_uploads > MAX_CONCURRENT)
		exporter->n_uploads = MAX_CONCURRENT;
	exporter->uploads = mem_zalloc(exporter->n_uploads, sizeof(*exporter->uploads));
	for (uint32_t i = 0; i < exporter->n_uploads; i++) {
		exporter->uploads[i].exporter = exporter;
		buf_init(&exporter->uploads[i].message, (size_t)1 << 28);
	}
	const struct retry_config *retry = &config->retry;
	backoff_init(&exporter->backoff,
		     retry->initial_interval_ns ? retry->initial_interval_ns : DEFAULT_INITIAL,
		     retry->max_interval_ns ? retry->max_interval_ns : DEFAULT_MAX,
		     hash_seed_make());
	uint64_t max_age = config->max_age_ns ? config->max_age_ns
			   : exporter->backend->default_max_age_ns
				   ? exporter->backend->default_max_age_ns
				   : DEFAULT_MAX_AGE;
	exporter->options.spool.max_age_ns = smaller_nonzero(max_age, retry->max_elapsed_ns);
	struct error *err = spool_open(options->spool_directory, config->name, config->kind,
				       &exporter->options.spool, options->clock, &exporter->spool);
	if (err) {
		exporter_free(exporter);
		return err;
	}
	spool_on_lost(exporter->spool, lost, exporter);
	*out = exporter;
	return NULL;
}

void exporter_free(struct exporter *exporter)
{
	if (!exporter)
		return;
	for (uint32_t i = 0; i < exporter->n_uploads; i++) {
		struct upload *upload = &exporter->uploads[i];
		if (upload->call)
			exporter->options.link.cancel(exporter->options.link.context, upload->call);
		buf_fini(&upload->message);
	}
	if (exporter->window)
		spool_abandon(exporter->window);
	error_free(exporter->encode_error);
	spool_close(exporter->spool);
	mem_free(exporter->uploads);
	mem_free(exporter);
}

/* Filling the spool. */

static struct error *append(void *context, const uint8_t *message, size_t n,
			    const struct request_summary *summary)
{
	spool_append(context, message, n, summary);
	return NULL;
}

void exporter_put(struct exporter *exporter, const struct outgoing_profile *outgoing)
{
	if (!exporter->window)
		exporter->window = spool_begin(exporter->spool);
	struct error *err =
		exporter->backend->encode(exporter->config, outgoing, append, exporter->window);
	if (!err)
		return;
	exporter->counts.unencodable_profiles++;
	stats_add(STAT_EXPORTER_UNENCODABLE, 1);
	exporter->counts.unencodable_samples += series_count_samples(outgoing->profile);
	if (exporter->encode_error)
		error_free(err);
	else
		exporter->encode_error = err;
}

struct error *exporter_commit(struct exporter *exporter)
{
	struct error *err = NULL;
	struct exporter_counts *counts = &exporter->counts;
	counts->last_requests = 0;
	if (exporter->window) {
		uint32_t n_requests = spool_window_requests(exporter->window);
		counts->last_sequence = spool_window_sequence(exporter->window);
		err = spool_commit(exporter->window);
		if (err == error_again)
			return err;
		exporter->window = NULL;
		counts->last_requests = err ? 0 : n_requests;
	}
	counts->is_last_lost = err || exporter->encode_error;
	if (!err)
		err = exporter->encode_error;
	else
		error_free(exporter->encode_error);
	exporter->encode_error = NULL;
	return error_wrap(err, "%s", exporter_shown(exporter->config));
}

/* Answers. */

struct parts {
	struct spool_window *window;
	uint64_t sequence;
	uint32_t n;
};

static struct error *append_part(void *context, const uint8_t *message, size_t n,
				 const struct request_summary *summary)
{
	struct parts *parts = context;
	parts->n++;
	spool_append(parts->window, message, n, summary);
	return NULL;
}

static struct exporter_event make_event(const struct exporter *exporter,
					enum exporter_event_kind kind, const struct upload *upload,
					const struct backend_answer *answer,
					const struct grpc_result *result)
{
	return (struct exporter_event){
		.exporter = exporter->config->name,
		.kind = kind,
		.sequence = upload->request.sequence,
		.summary = upload->request.summary,
		.answer = *answer,
		.result = result,
		.text = kind == EXPORTER_DELIVERED ? answer->text : exporter->counts.last_error,
	};
}

static void tell(const struct exporter *exporter, const struct exporter_event *event)
{
	if (exporter->options.on_event)
		exporter->options.on_event(exporter->options.context, event);
}

/* It judged a request: what waits behind is not held up. */
static void server_works(struct exporter *exporter)
{
	exporter->n_auth_failures = 0;
	exporter->retry_at_ns = 0;
	backoff_reset(&exporter->backoff);
}

static void count_failed(struct exporter *exporter, enum backend_reason reason, uint64_t n_profiles)
{
	exporter->counts.failed_profiles[reason] += n_profiles;
	stats_add((enum stats_counter)(STAT_EXPORTER_FAILED_OTHER + reason), n_profiles);
}

static void delivered(struct exporter *exporter, struct upload *upload,
		      const struct backend_answer *answer, const struct grpc_result *result)
{
	struct exporter_counts *counts = &exporter->counts;
	const struct request_summary *summary = &upload->request.summary;
	uint64_t n_refused =
		answer->n_refused < summary->n_profiles ? answer->n_refused : summary->n_profiles;
	counts->sent_requests++;
	counts->sent_profiles += summary->n_profiles - n_refused;
	counts->sent_bytes += upload->request.n;
	stats_add(STAT_EXPORTER_SENT_PROFILES, summary->n_profiles - n_refused);
	stats_add(STAT_EXPORTER_SENT_BYTES, upload->request.n);
	counts->refused_profiles += n_refused;
	if (n_refused)
		count_failed(exporter, BACKEND_REASON_REJECTED, n_refused);
	if (n_refused && n_refused == summary->n_profiles) {
		counts->refused_samples += summary->n_samples;
	} else {
		counts->sent_samples += summary->n_samples;
		stats_add(STAT_EXPORTER_SENT_SAMPLES, summary->n_samples);
	}
	counts->last_success_ns =
		exporter->options.clock->wall_ns(exporter->options.clock->context);
	if (answer->text[0])
		log_warn("server has something to say exporter=%s refused_profiles=%" PRIu64
			 " message=\"%s\"",
			 exporter->config->name, n_refused, answer->text);
	if (counts->is_failing)
		log_info("delivering again exporter=%s", exporter->config->name);
	counts->is_failing = false;
	server_works(exporter);
	spool_delivered(exporter->spool, &upload->request);
	const struct exporter_event event =
		make_event(exporter, EXPORTER_DELIVERED, upload, answer, result);
	tell(exporter, &event);
}

/* "UNAVAILABLE: what the backend makes of the answer, else what the server or our client says" */
static void describe(char out[EXPORTER_ERROR_BYTES], const struct grpc_result *result,
		     const struct backend_answer *answer)
{
	const char *text = answer->text[0] ? answer->text : result->message;
	snprintf(out, EXPORTER_ERROR_BYTES, "%s%s%.480s", grpc_code_name(result->code),
		 text[0] ? ": " : "", text);
}

static void try_later(struct exporter *exporter, struct upload *upload,
		      const struct backend_answer *answer, const struct grpc_result *result)
{
	uint64_t now = now_ns(exporter);
	uint64_t wanted = result->retry_delay_ns;
	/* Requests that fail side by side fail for one reason: they are one failure. */
	bool is_new = exporter->retry_at_ns <= now;
	if (is_new)
		exporter->retry_at_ns = now + backoff_next(&exporter->backoff);
	if (is_new && answer->verdict == BACKEND_RETRY_AUTH && exporter->n_auth_failures++ > 0)
		wanted = wanted > AUTH_RETRY_NS ? wanted : AUTH_RETRY_NS;
	if (exporter->retry_at_ns < now + wanted)
		exporter->retry_at_ns = now + wanted;
	spool_put_back(exporter->spool, &upload->request);
	uint64_t delay_ns = exporter->retry_at_ns - now;
	if (!exporter->counts.is_failing)
		log_warn("cannot deliver for now exporter=%s retry_in_s=%.1f err=\"%s\"",
			 exporter->config->name, (double)delay_ns / (double)NS_PER_S,
			 exporter->counts.last_error);
	exporter->counts.is_failing = true;
	struct exporter_event event =
		make_event(exporter, EXPORTER_RETRYING, upload, answer, result);
	event.delay_ns = delay_ns;
	tell(exporter, &event);
}

static void reject(struct exporter *exporter, struct upload *upload, struct backend_answer *answer,
		   const struct grpc_result *result)
{
	char reason[EXPORTER_ERROR_BYTES];
	describe(reason, result, answer);
	struct error *err =
		spool_reject(exporter->spool, &upload->request, upload->message.data, reason);
	if (err) {
		log_warn("cannot set a refused request aside exporter=%s err=\"%s\"",
			 exporter->config->name, error_text(err));
		error_free(err);
		try_later(exporter, upload, answer, result);
		return;
	}
	log_warn("server refused a request for good exporter=%s profiles=%" PRIu32
		 " samples=%" PRIu64 " err=\"%s\"",
		 exporter->config->name, upload->request.summary.n_profiles,
		 upload->request.summary.n_samples, reason);
	server_works(exporter);
	const struct exporter_event event =
		make_event(exporter, EXPORTER_REJECTED, upload, answer, result);
	tell(exporter, &event);
}

static void split(struct exporter *exporter, struct upload *upload, struct backend_answer *answer,
		  const struct grpc_result *result)
{
	struct parts parts = {.window = spool_begin(exporter->spool)};
	parts.sequence = spool_window_sequence(parts.window);
	struct error *err = exporter->backend->split(exporter->config, upload->message.data,
						     upload->message.size, append_part, &parts);
	if (err) {
		if (error_get_code(err) == ERROR_LIMIT)
			answer->reason = BACKEND_REASON_TOO_LARGE;
		snprintf(answer->text, sizeof(answer->text), "%s", error_text(err));
		error_free(err);
		spool_abandon(parts.window);
		reject(exporter, upload, answer, result);
		return;
	}
	err = spool_commit_parts(parts.window);
	if (err) {
		log_warn("cannot keep the parts of a request exporter=%s err=\"%s\"",
			 exporter->config->name, error_text(err));
		error_free(err);
		try_later(exporter, upload, answer, result);
		return;
	}
	spool_delivered(exporter->spool, &upload->request);
	server_works(exporter);
	struct exporter_event event = make_event(exporter, EXPORTER_SPLIT, upload, answer, result);
	event.parts_sequence = parts.sequence;
	event.n_parts = parts.n;
	tell(exporter, &event);
}

static void count_attempt(struct exporter *exporter, const struct upload *upload,
			  const struct grpc_result *result, const struct backend_answer *answer)
{
	struct exporter_counts *counts = &exporter->counts;
	uint64_t took_ns = now_ns(exporter) - upload->started_ns;
	counts->requests[result->code]++;
	counts->n_durations++;
	counts->sum_durations_ns += took_ns;
	stats_add(STAT_EXPORTER_REQUESTS, 1);
	stats_add(STAT_EXPORTER_REQUEST_NS, took_ns);
	for (int i = 0; i < EXPORTER_DURATION_BUCKETS; i++)
		counts->durations[i] +=
			took_ns <= (uint64_t)exporter_duration_bounds_ms[i] * (NS_PER_S / 1000);
	if (answer->verdict == BACKEND_DELIVERED)
		return;
	count_failed(exporter, answer->reason, upload->request.summary.n_profiles);
	describe(counts->last_error, result, answer);
}

static void answered(void *context, const struct grpc_result *result)
{
	struct upload *upload = context;
	struct exporter *exporter = upload->exporter;
	upload->call = NULL;
	exporter->n_active--;
	exporter->active_bytes -= upload->request.n;
	struct backend_answer answer = {0};
	exporter->backend->judge(result, &answer);
	count_attempt(exporter, upload, result, &answer);
	switch (answer.verdict) {
	case BACKEND_DELIVERED:
		delivered(exporter, upload, &answer, result);
		break;
	case BACKEND_RETRY:
	case BACKEND_RETRY_AUTH:
		try_later(exporter, upload, &answer, result);
		break;
	case BACKEND_SPLIT:
		split(exporter, upload, &answer, result);
		break;
	case BACKEND_SPLIT_SERIES:
		if (upload->request.summary.n_profiles > 1)
			split(exporter, upload, &answer, result);
		else
			reject(exporter, upload, &answer, result);
		break;
	case BACKEND_REJECT:
		reject(exporter, upload, &answer, result);
		break;
	}
	buf_clear(&upload->message);
	exporter_run(exporter);
}

/* Sending. */

static bool next_message(void *context, uint32_t index, const uint8_t **bytes_out, size_t *n_out)
{
	const struct upload *upload = context;
	*bytes_out = upload->message.data;
	*n_out = upload->message.size;
	return index == 0;
}

static struct upload *free_upload(struct exporter *exporter)
{
	for (uint32_t i = 0; i < exporter->n_uploads; i++) {
		if (!exporter->uploads[i].call)
			return &exporter->uploads[i];
	}
	return NULL;
}

/* False when no more can be started now. */
static bool start_one(struct exporter *exporter)
{
	struct upload *upload = free_upload(exporter);
	/* After a failure one request finds out whether it is over. */
	if (!upload || (exporter->counts.is_failing && exporter->n_active))
		return false;
	buf_clear(&upload->message);
	struct error *err = spool_take(exporter->spool, &upload->request, &upload->message);
	if (err) {
		if (err != error_no_entry) {
			snprintf(exporter->counts.last_error, sizeof(exporter->counts.last_error),
				 "%s", error_text(err));
			log_warn("cannot read the spool exporter=%s err=\"%s\"",
				 exporter->config->name, error_text(err));
			exporter->retry_at_ns = now_ns(exporter) + backoff_next(&exporter->backoff);
			exporter->counts.is_failing = true;
		}
		error_free(err);
		return false;
	}
	if (exporter->n_active && exporter->active_bytes + upload->request.n > MAX_BYTES_AT_ONCE) {
		spool_put_back(exporter->spool, &upload->request);
		return false;
	}
	const struct grpc_request request = {
		.path = exporter->backend->path,
		.next_message = next_message,
		.done = answered,
		.context = upload,
		.timeout_ns = exporter->config->remote.timeout_ns
				      ? exporter->config->remote.timeout_ns
				      : DEFAULT_TIMEOUT,
	};
	upload->started_ns = now_ns(exporter);
	exporter->n_active++;
	exporter->active_bytes += upload->request.n;
	upload->call = exporter->options.link.call(exporter->options.link.context, &request);
	return true;
}

void exporter_run(struct exporter *exporter)
{
	uint64_t now = now_ns(exporter);
	if (!exporter->tended_ns || now - exporter->tended_ns >= TEND_NS) {
		exporter->tended_ns = now;
		spool_tend(exporter->spool);
	}
	if (exporter->retry_at_ns > now)
		return;
	while (start_one(exporter))
		;
}

uint64_t exporter_wake_ns(const struct exporter *exporter)
{
	uint64_t tend_ns = exporter->tended_ns + TEND_NS;
	uint64_t retry_ns = exporter->retry_at_ns;
	return retry_ns && retry_ns > exporter->tended_ns && retry_ns < tend_ns ? retry_ns
										: tend_ns;
}

bool exporter_is_idle(const struct exporter *exporter)
{
	struct spool_counts counts;
	spool_get_counts(exporter->spool, &counts);
	return !exporter->n_active && !counts.requests;
}

void exporter_get_counts(const struct exporter *exporter, struct exporter_counts *out)
{
	*out = exporter->counts;
	out->exporter = exporter->config->name;
	out->n_active = exporter->n_active;
	out->queue_capacity_bytes = spool_capacity_bytes(exporter->spool);
	spool_get_counts(exporter->spool, &out->queue);
}
