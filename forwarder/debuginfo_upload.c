/* SPDX-License-Identifier: Apache-2.0 */
#include "forwarder/debuginfo_upload.h"

#include <proto/parca_debuginfo.pb-c.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "forwarder/backoff.h"
#include "forwarder/debuginfo_extract.h"
#include "forwarder/debuginfo_state.h"
#include "proto/protobuf_writer.h"

#define LOG_AREA "debuginfo"
#include "base/log.h"

#define NS_PER_S ((uint64_t)1000000000)
#define SERVICE	 "/parca.debuginfo.v1alpha1.DebuginfoService/"

enum {
	MAX_PENDING = 64, /* each holds a descriptor */
	MAX_ATTEMPTS = 8, /* then the descriptor is given back for a while */
	CHUNK_BYTES = 1 << 20,
	MAX_BYTES = 1000000000,
	MAX_ACTIVE = 2,
	JITTER_S = 30,
	FIRST_RETRY_S = 60,
	MAX_RETRY_S = 3600,
	BUSY_S = 300,	   /* somebody else is uploading it */
	AUTH_S = 600,	   /* credentials have to be mended by people */
	REFUSED_S = 86400, /* as it stands the server will not have it */
	GIVEN_UP_S = 3600, /* after MAX_ATTEMPTS */
	CALL_TIMEOUT_S = 60,
	UPLOAD_TIMEOUT_S = 900, /* the server's own */
	UPLOAD_CHUNK_FIELD = 2,
};

struct job {
	struct debuginfo_upload *upload;
	struct job *next;
	struct build_id id;
	char hex[BUILD_ID_HEX_BYTES];
	int fd;
	uint64_t due_ns; /* monotonic; while nothing runs */
	unsigned n_attempts;
	struct backoff backoff;
	bool is_active;
	/* Of the attempt. */
	struct debuginfo_image image;
	bool has_image, is_unreadable;
	struct grpc_call *call;
	void *put;
	struct buf message; /* of a unary call, or the chunk at hand */
	char *upload_id, *signed_url;
};

struct debuginfo_upload {
	struct debuginfo_upload_config config;
	char *state_file;
	struct debuginfo_facts facts;
	struct job *jobs; /* pending ones, in order of offer */
	unsigned n_jobs, n_active;
	struct debuginfo_upload_counts counts;
	struct backoff random;
};

static uint64_t monotonic_ns(const struct debuginfo_upload *upload)
{
	const struct clock *clock = upload->config.clock;
	return clock->monotonic_ns(clock->context);
}

static uint64_t wall_s(const struct debuginfo_upload *upload)
{
	const struct clock *clock = upload->config.clock;
	return clock->wall_ns(clock->context) / NS_PER_S;
}

struct debuginfo_upload *debuginfo_upload_new(const struct debuginfo_upload_config *config)
{
	struct debuginfo_upload *upload = mem_zalloc(1, sizeof(*upload));
	upload->config = *config;
	if (!upload->config.clock)
		upload->config.clock = &clock_system;
	if (!upload->config.max_bytes)
		upload->config.max_bytes = MAX_BYTES;
	if (!upload->config.jitter_ns)
		upload->config.jitter_ns = JITTER_S * NS_PER_S;
	if (!upload->config.retry_ns)
		upload->config.retry_ns = FIRST_RETRY_S * NS_PER_S;
	if (!upload->config.timeout_ns)
		upload->config.timeout_ns = CALL_TIMEOUT_S * NS_PER_S;
	if (!upload->config.max_active)
		upload->config.max_active = MAX_ACTIVE;
	backoff_init(&upload->random, 0, 0, config->seed);
	debuginfo_facts_init(&upload->facts);
	if (!config->state_file)
		return upload;
	upload->state_file = mem_copy_string(config->state_file);
	struct error *err = debuginfo_facts_load(&upload->facts, upload->state_file);
	if (err)
		log_warn("state is begun anew error=\"%s\"", error_text(err));
	error_free(err);
	return upload;
}

/* Ends the attempt: whatever runs is cancelled. */
static void end_attempt(struct job *job)
{
	struct debuginfo_upload *upload = job->upload;
	if (job->call)
		upload->config.transport.cancel(job->call);
	if (job->put)
		upload->config.transport.cancel_put(job->put);
	job->call = NULL;
	job->put = NULL;
	if (job->has_image)
		debuginfo_image_fini(&job->image);
	job->has_image = job->is_unreadable = false;
	mem_free(TAKE(job->upload_id));
	mem_free(TAKE(job->signed_url));
	buf_fini(&job->message);
	if (job->is_active)
		upload->n_active--;
	job->is_active = false;
}

static void job_free(struct job *job)
{
	end_attempt(job);
	close(job->fd);
	mem_free(job);
}

void debuginfo_upload_free(struct debuginfo_upload *upload)
{
	if (!upload)
		return;
	while (upload->jobs) {
		struct job *job = upload->jobs;
		upload->jobs = job->next;
		job_free(job);
	}
	debuginfo_facts_fini(&upload->facts);
	mem_free(upload->state_file);
	mem_free(upload);
}

static void remove_job(struct job *job)
{
	struct debuginfo_upload *upload = job->upload;
	struct job **place = &upload->jobs;
	while (*place != job)
		place = &(*place)->next;
	*place = job->next;
	upload->n_jobs--;
	job_free(job);
}

static void note_error(struct debuginfo_upload *upload, const struct job *job, const char *text)
{
	snprintf(upload->counts.last_error, sizeof(upload->counts.last_error), "build-id %s: %s",
		 job->hex, text);
}

static void tell(const struct job *job, struct debuginfo_event event)
{
	const struct debuginfo_upload_config *config = &job->upload->config;
	event.id = &job->id;
	if (config->on_event)
		config->on_event(config->context, &event);
}

/* What is known of a build-id from here on; the job ends. */
static void conclude(struct job *job, bool is_done, uint64_t refused_s)
{
	struct debuginfo_upload *upload = job->upload;
	struct debuginfo_fact fact = {
		.id = job->id, .is_done = is_done, .seconds = wall_s(upload) + refused_s};
	remove_job(job);
	debuginfo_facts_set(&upload->facts, &fact);
	if (!upload->state_file)
		return;
	struct error *err = debuginfo_facts_save(&upload->facts, upload->state_file);
	if (err)
		log_warn("state is not kept error=\"%s\"", error_text(err));
	error_free(err);
}

static void refuse(struct job *job, const char *why, uint64_t seconds)
{
	note_error(job->upload, job, why);
	job->upload->counts.n_refused++;
	tell(job, (struct debuginfo_event){.kind = DEBUGINFO_EVENT_REFUSED, .text = why});
	conclude(job, false, seconds);
}

static void conclude_known(struct job *job, const char *why)
{
	job->upload->counts.n_known++;
	tell(job, (struct debuginfo_event){.kind = DEBUGINFO_EVENT_KNOWN, .text = why});
	conclude(job, true, 0);
}

/* Tries again from the first question on: after at least delay_ns, 0 = as the back-off has it.
 * result is NULL unless a call of the attempt failed. */
static void retry(struct job *job, const char *why, uint64_t delay_ns,
		  const struct grpc_result *result)
{
	bool is_auth = result && (result->code == GRPC_UNAUTHENTICATED ||
				  result->code == GRPC_PERMISSION_DENIED);
	const struct debuginfo_event event = {
		.kind = DEBUGINFO_EVENT_FAILED,
		.text = why,
		.error_number = result ? result->error_number : 0,
		.is_auth = is_auth,
	};
	tell(job, event);
	struct debuginfo_upload *upload = job->upload;
	note_error(upload, job, why);
	upload->counts.n_failures++;
	if (++job->n_attempts == MAX_ATTEMPTS) {
		conclude(job, false, GIVEN_UP_S);
		return;
	}
	end_attempt(job);
	uint64_t wait_ns = backoff_next(&job->backoff);
	job->due_ns = monotonic_ns(upload) + (wait_ns > delay_ns ? wait_ns : delay_ns);
}

/* A call that did not end with OK. */
static void handle_failure(struct job *job, const struct grpc_result *result)
{
	uint64_t delay_ns = result->retry_delay_ns;
	if (result->failure != GRPC_FAILURE_NONE) {
		retry(job, result->message, delay_ns, result);
		return;
	}
	switch (result->code) {
	case GRPC_ALREADY_EXISTS: /* this very file, and it was no use */
		conclude_known(job, result->message);
		return;
	case GRPC_FAILED_PRECONDITION:
		retry(job, result->message, BUSY_S * NS_PER_S, result);
		return;
	case GRPC_UNAUTHENTICATED:
	case GRPC_PERMISSION_DENIED:
		retry(job, result->message, AUTH_S * NS_PER_S, result);
		return;
	case GRPC_INVALID_ARGUMENT:
	case GRPC_UNIMPLEMENTED:
		refuse(job, result->message, REFUSED_S);
		return;
	default:
		retry(job, result->message, delay_ns, result);
	}
}

/* Messages. Unary calls have theirs in job->message. */

static bool next_unary(void *context, uint32_t index, const uint8_t **bytes_out, size_t *n_out)
{
	const struct job *job = context;
	*bytes_out = job->message.data;
	*n_out = job->message.size;
	return index == 0;
}

static void start_call(struct job *job, const char *path, grpc_message_fn next, grpc_result_fn done,
		       uint64_t timeout_ns)
{
	const struct debuginfo_transport *transport = &job->upload->config.transport;
	const struct grpc_request request = {.path = path,
					     .next_message = next,
					     .done = done,
					     .context = job,
					     .timeout_ns = timeout_ns};
	job->call = transport->call(transport->context, &request);
}

static void start_unary(struct job *job, const char *path, const ProtobufCMessage *message,
			grpc_result_fn done)
{
	size_t n = protobuf_c_message_get_packed_size(message);
	buf_clear(&job->message);
	struct error *err = buf_reserve(&job->message, n);
	if (err) {
		retry(job, error_text(err), 0, NULL);
		error_free(err);
		return;
	}
	job->message.size = protobuf_c_message_pack(message, job->message.data);
	start_call(job, path, next_unary, done, job->upload->config.timeout_ns);
}

static Parca__Debuginfo__V1alpha1__BuildIDType type_of(const struct build_id *id)
{
	switch ((enum build_id_kind)id->kind) {
	case BUILD_ID_GNU:
		return PARCA__DEBUGINFO__V1ALPHA1__BUILD_IDTYPE__BUILD_ID_TYPE_GNU;
	case BUILD_ID_GO:
		return PARCA__DEBUGINFO__V1ALPHA1__BUILD_IDTYPE__BUILD_ID_TYPE_GO;
	case BUILD_ID_HASH:
		return PARCA__DEBUGINFO__V1ALPHA1__BUILD_IDTYPE__BUILD_ID_TYPE_HASH;
	case BUILD_ID_NONE:
		break;
	}
	return PARCA__DEBUGINFO__V1ALPHA1__BUILD_IDTYPE__BUILD_ID_TYPE_UNKNOWN_UNSPECIFIED;
}

/* Step 4: the server has all of it. */

static void on_finished(void *context, const struct grpc_result *result)
{
	struct job *job = context;
	job->call = NULL;
	if (result->code != GRPC_OK) {
		handle_failure(job, result);
		return;
	}
	job->upload->counts.n_uploaded++;
	job->upload->counts.n_uploaded_bytes += job->image.n_bytes;
	tell(job, (struct debuginfo_event){.kind = DEBUGINFO_EVENT_UPLOADED,
					   .n_bytes = job->image.n_bytes,
					   .text = ""});
	log_info("debug information was uploaded build_id=%s bytes=%llu", job->hex,
		 (unsigned long long)job->image.n_bytes);
	conclude(job, true, 0);
}

static void finish(struct job *job)
{
	Parca__Debuginfo__V1alpha1__MarkUploadFinishedRequest message =
		PARCA__DEBUGINFO__V1ALPHA1__MARK_UPLOAD_FINISHED_REQUEST__INIT;
	message.build_id = job->hex;
	message.upload_id = job->upload_id;
	start_unary(job, SERVICE "MarkUploadFinished", &message.base, on_finished);
}

/* Step 3: the bytes, as a stream of messages or as a PUT. */

static bool read_image(struct job *job, uint64_t offset, uint8_t *out, size_t n)
{
	struct error *err = debuginfo_image_read(&job->image, offset, out, n);
	if (err) {
		note_error(job->upload, job, error_text(err));
		job->is_unreadable = true;
	}
	error_free(err);
	return !job->is_unreadable;
}

/* Message 0 says what comes, the others bring it. */
static bool next_upload(void *context, uint32_t index, const uint8_t **bytes_out, size_t *n_out)
{
	struct job *job = context;
	if (index == 0) {
		Parca__Debuginfo__V1alpha1__UploadInfo info =
			PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_INFO__INIT;
		Parca__Debuginfo__V1alpha1__UploadRequest message =
			PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_REQUEST__INIT;
		info.build_id = job->hex;
		info.upload_id = job->upload_id;
		message.data_case = PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_REQUEST__DATA_INFO;
		message.info = &info;
		size_t n = protobuf_c_message_get_packed_size(&message.base);
		buf_clear(&job->message);
		struct error *err = buf_reserve(&job->message, n);
		job->is_unreadable = err != NULL;
		error_free(err);
		if (job->is_unreadable)
			return false;
		job->message.size = protobuf_c_message_pack(&message.base, job->message.data);
	} else {
		uint64_t offset = (uint64_t)(index - 1) * CHUNK_BYTES;
		if (offset >= job->image.n_bytes || job->is_unreadable)
			return false;
		uint64_t left = job->image.n_bytes - offset;
		size_t n = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
		buf_clear(&job->message);
		struct protobuf_writer w = protobuf_writer_make(&job->message);
		protobuf_writer_header(&w, UPLOAD_CHUNK_FIELD, n);
		struct error *err = protobuf_writer_end(&w);
		if (!err)
			err = buf_reserve(&job->message, n);
		job->is_unreadable = err != NULL;
		error_free(err);
		if (job->is_unreadable ||
		    !read_image(job, offset, job->message.data + job->message.size, n))
			return false;
		job->message.size += n;
	}
	*bytes_out = job->message.data;
	*n_out = job->message.size;
	return true;
}

/* Whether the server says that it has all bytes. */
static bool is_complete(const struct job *job, const struct grpc_result *result)
{
	Parca__Debuginfo__V1alpha1__UploadResponse *response =
		parca__debuginfo__v1alpha1__upload_response__unpack(NULL, result->n_response,
								    result->response);
	bool is_complete = response && response->size == job->image.n_bytes;
	if (response)
		parca__debuginfo__v1alpha1__upload_response__free_unpacked(response, NULL);
	return is_complete;
}

static void on_uploaded(void *context, const struct grpc_result *result)
{
	struct job *job = context;
	job->call = NULL;
	if (job->is_unreadable) /* what the server got is cut */
		refuse(job, "the file changed while it was read", GIVEN_UP_S);
	else if (result->code != GRPC_OK)
		handle_failure(job, result);
	else if (!is_complete(job, result))
		retry(job, "the server did not get all bytes of the upload", 0, NULL);
	else
		finish(job);
}

static bool read_put(void *context, uint64_t offset, uint8_t *out, size_t n)
{
	return read_image(context, offset, out, n);
}

static void on_put(void *context, int http_status, const char *message)
{
	struct job *job = context;
	job->put = NULL;
	char text[256];
	snprintf(text, sizeof(text), "PUT to the signed URL: HTTP %d %s", http_status, message);
	if (job->is_unreadable)
		refuse(job, "the file changed while it was read", GIVEN_UP_S);
	else if (http_status / 100 == 2)
		finish(job);
	else
		retry(job, text, 0, NULL);
}

static void start_put(struct job *job)
{
	const struct debuginfo_transport *transport = &job->upload->config.transport;
	if (!transport->put) {
		refuse(job, "the server wants uploads to a signed URL", REFUSED_S);
		return;
	}
	const struct debuginfo_put put = {.url = job->signed_url,
					  .n_bytes = job->image.n_bytes,
					  .read = read_put,
					  .done = on_put,
					  .context = job};
	struct error *err = transport->put(transport->context, &put, &job->put);
	if (err)
		refuse(job, error_text(err), REFUSED_S);
	error_free(err);
}

/* Step 2: the server says how it wants it. */

typedef Parca__Debuginfo__V1alpha1__UploadInstructions upload_instructions;

static void follow_instructions(struct job *job, const upload_instructions *instructions)
{
	job->upload_id = mem_copy_string(instructions->upload_id);
	job->signed_url = mem_copy_string(instructions->signed_url);
	switch (instructions->upload_strategy) {
	case PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_INSTRUCTIONS__UPLOAD_STRATEGY__UPLOAD_STRATEGY_GRPC:
		start_call(job, SERVICE "Upload", next_upload, on_uploaded,
			   UPLOAD_TIMEOUT_S * NS_PER_S);
		return;
	case PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_INSTRUCTIONS__UPLOAD_STRATEGY__UPLOAD_STRATEGY_SIGNED_URL:
		start_put(job);
		return;
	default:
		refuse(job, "the server names no way to upload", REFUSED_S);
	}
}

static void on_initiated(void *context, const struct grpc_result *result)
{
	struct job *job = context;
	job->call = NULL;
	if (result->code != GRPC_OK) {
		handle_failure(job, result);
		return;
	}
	Parca__Debuginfo__V1alpha1__InitiateUploadResponse *response =
		parca__debuginfo__v1alpha1__initiate_upload_response__unpack(
			NULL, result->n_response, result->response);
	if (response && response->upload_instructions)
		follow_instructions(job, response->upload_instructions);
	else
		retry(job, "InitiateUpload was answered without instructions", 0, NULL);
	if (response)
		parca__debuginfo__v1alpha1__initiate_upload_response__free_unpacked(response, NULL);
}

static void initiate(struct job *job)
{
	struct error *err =
		debuginfo_extract(job->fd, &job->id, job->upload->config.max_bytes, &job->image);
	if (err) {
		refuse(job, error_text(err), REFUSED_S);
		error_free(err);
		return;
	}
	job->has_image = true;
	Parca__Debuginfo__V1alpha1__InitiateUploadRequest message =
		PARCA__DEBUGINFO__V1ALPHA1__INITIATE_UPLOAD_REQUEST__INIT;
	message.build_id = job->hex;
	message.size = (int64_t)job->image.n_bytes;
	message.hash = job->image.hash;
	message.build_id_type = type_of(&job->id);
	start_unary(job, SERVICE "InitiateUpload", &message.base, on_initiated);
}

/* Step 1: whether the server wants it at all. */

static void on_asked(void *context, const struct grpc_result *result)
{
	struct job *job = context;
	job->call = NULL;
	if (result->code != GRPC_OK) {
		handle_failure(job, result);
		return;
	}
	Parca__Debuginfo__V1alpha1__ShouldInitiateUploadResponse *response =
		parca__debuginfo__v1alpha1__should_initiate_upload_response__unpack(
			NULL, result->n_response, result->response);
	if (!response) {
		retry(job, "ShouldInitiateUpload was answered with something else", 0, NULL);
		return;
	}
	if (response->should_initiate_upload) {
		initiate(job);
	} else if (strcasestr(response->reason, "in progress")) {
		retry(job, response->reason, BUSY_S * NS_PER_S, NULL);
	} else {
		conclude_known(job, response->reason);
	}
	parca__debuginfo__v1alpha1__should_initiate_upload_response__free_unpacked(response, NULL);
}

static void start(struct job *job)
{
	job->is_active = true;
	job->upload->n_active++;
	buf_init(&job->message, 2 * CHUNK_BYTES);
	Parca__Debuginfo__V1alpha1__ShouldInitiateUploadRequest message =
		PARCA__DEBUGINFO__V1ALPHA1__SHOULD_INITIATE_UPLOAD_REQUEST__INIT;
	message.build_id = job->hex;
	message.build_id_type = type_of(&job->id);
	start_unary(job, SERVICE "ShouldInitiateUpload", &message.base, on_asked);
}

/* From outside. */

static struct job *find_job(const struct debuginfo_upload *upload, const struct build_id *id)
{
	for (struct job *job = upload->jobs; job; job = job->next) {
		if (job->id.kind == id->kind && build_id_equal(&job->id, id))
			return job;
	}
	return NULL;
}

enum debuginfo_state debuginfo_upload_state(const struct debuginfo_upload *upload,
					    const struct build_id *id)
{
	if (find_job(upload, id))
		return DEBUGINFO_PENDING;
	const struct debuginfo_fact *fact = debuginfo_facts_find(&upload->facts, id);
	if (!fact)
		return DEBUGINFO_UNKNOWN;
	if (fact->is_done)
		return DEBUGINFO_DONE;
	return fact->seconds > wall_s(upload) ? DEBUGINFO_REFUSED : DEBUGINFO_UNKNOWN;
}

bool debuginfo_upload_wants(const struct debuginfo_upload *upload, const struct build_id *id)
{
	return build_id_is_set(id) && upload->n_jobs < MAX_PENDING &&
	       debuginfo_upload_state(upload, id) == DEBUGINFO_UNKNOWN;
}

void debuginfo_upload_offer(struct debuginfo_upload *upload, const struct build_id *id, int fd)
{
	if (!debuginfo_upload_wants(upload, id)) {
		close(fd);
		return;
	}
	struct job *job = mem_zalloc(1, sizeof(*job));
	job->upload = upload;
	job->id = *id;
	job->fd = fd;
	build_id_format(id, job->hex);
	backoff_init(&job->backoff, upload->config.retry_ns, MAX_RETRY_S * NS_PER_S,
		     backoff_random(&upload->random, UINT64_MAX));
	job->due_ns =
		monotonic_ns(upload) + backoff_random(&upload->random, upload->config.jitter_ns);
	struct job **place = &upload->jobs;
	while (*place)
		place = &(*place)->next;
	*place = job;
	upload->n_jobs++;
}

void debuginfo_upload_withdraw(struct debuginfo_upload *upload, const struct build_id *id)
{
	struct job *job = find_job(upload, id);
	if (job)
		remove_job(job);
}

/* The job that waits for the earliest time; NULL when none may start. */
static struct job *next_job(const struct debuginfo_upload *upload)
{
	struct job *next = NULL;
	if (upload->n_active >= upload->config.max_active)
		return NULL;
	for (struct job *job = upload->jobs; job; job = job->next) {
		if (!job->is_active && (!next || job->due_ns < next->due_ns))
			next = job;
	}
	return next;
}

uint64_t debuginfo_upload_next_ns(const struct debuginfo_upload *upload)
{
	const struct job *job = next_job(upload);
	return job ? job->due_ns : UINT64_MAX;
}

void debuginfo_upload_tick(struct debuginfo_upload *upload)
{
	uint64_t now_ns = monotonic_ns(upload);
	for (struct job *job; (job = next_job(upload)) && job->due_ns <= now_ns;)
		start(job);
}

void debuginfo_upload_get_counts(const struct debuginfo_upload *upload,
				 struct debuginfo_upload_counts *out)
{
	*out = upload->counts;
}
