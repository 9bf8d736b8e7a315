/* SPDX-License-Identifier: Apache-2.0 */
/* The uploader against a server made of scripted answers: time and transport are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <proto/parca_debuginfo.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "forwarder/debuginfo_extract.h"
#include "forwarder/debuginfo_upload.h"
#include "tests/support/elf_writer.h"
#include "tests/support/temp_dir.h"

#define NS_PER_S 1000000000ull
#define SERVICE	 "/parca.debuginfo.v1alpha1.DebuginfoService/"

/* The calls that run. */
static struct {
	struct grpc_request requests[16];
	bool is_running[16];
	unsigned n, n_cancelled;
	struct debuginfo_put put;
	bool has_put;
} wire;

static struct grpc_call *start_call(void *context, const struct grpc_request *request)
{
	(void)context;
	assert_true(wire.n < 16);
	wire.requests[wire.n] = *request;
	wire.is_running[wire.n] = true;
	return (struct grpc_call *)&wire.is_running[wire.n++];
}

static void cancel_call(struct grpc_call *call)
{
	*(bool *)call = false;
	wire.n_cancelled++;
}

static struct error *start_put(void *context, const struct debuginfo_put *put, void **handle_out)
{
	(void)context;
	if (strncmp(put->url, "https://", 8) != 0)
		return error_new(ERROR_USAGE, "strange URL");
	wire.put = *put;
	wire.has_put = true;
	*handle_out = &wire.put;
	return NULL;
}

static void cancel_put(void *handle)
{
	assert_ptr_equal(handle, &wire.put);
	wire.has_put = false;
}

static struct clock_fake fake;
static struct clock test_clock;

/* What was told last, and how often. */
static struct {
	unsigned n;
	int kind;
	struct build_id id;
	uint64_t n_bytes;
	char text[64];
	int error_number;
	bool is_auth;
} told;

static void happened(void *context, const struct debuginfo_event *event)
{
	assert_ptr_equal(context, &told);
	told.n++;
	told.kind = (int)event->kind;
	told.id = *event->id;
	told.n_bytes = event->n_bytes;
	told.error_number = event->error_number;
	told.is_auth = event->is_auth;
	snprintf(told.text, sizeof(told.text), "%s", event->text);
}

static struct debuginfo_upload *make(const char *state_file)
{
	memset(&wire, 0, sizeof(wire));
	memset(&told, 0, sizeof(told));
	test_clock = clock_from_fake(&fake);
	const struct debuginfo_upload_config config = {
		.transport = {start_call, cancel_call, start_put, cancel_put, NULL},
		.clock = &test_clock,
		.state_file = state_file,
		.seed = 1,
		.on_event = happened,
		.context = &told,
	};
	return debuginfo_upload_new(&config);
}

/* An ELF file whose debug information takes three chunks. */
static int open_elf(void)
{
	static uint8_t debug[5 << 19];
	for (size_t i = 0; i < sizeof(debug); i++)
		debug[i] = (uint8_t)(i * 7 + i / 251);
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	elf_writer_text(&writer, 0x1000, 1 << 16);
	elf_writer_section(&writer, ".debug_info", SHT_PROGBITS, 0, 0, debug, sizeof(debug));
	size_t n;
	const uint8_t *bytes = elf_writer_finish(&writer, &n);
	int fd = memfd_create("elf", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_null(file_write(fd, bytes, n));
	elf_writer_fini(&writer);
	return fd;
}

static struct build_id make_id(uint8_t first)
{
	uint8_t bytes[20] = {first, 2, 3};
	struct build_id id = build_id_make(bytes, sizeof(bytes));
	id.kind = BUILD_ID_GO; /* so that it need not be the program's */
	return id;
}

/* Lets time pass until something starts. */
static void wait(struct debuginfo_upload *upload)
{
	uint64_t next_ns = debuginfo_upload_next_ns(upload);
	assert_true(next_ns != UINT64_MAX);
	if (next_ns > fake.now_monotonic_ns) {
		fake.now_wall_ns += next_ns - fake.now_monotonic_ns;
		fake.now_monotonic_ns = next_ns;
	}
	debuginfo_upload_tick(upload);
}

/* The call that was started last, to this method; its only message. */
static struct buf take_message(const char *path)
{
	assert_true(wire.n > 0 && wire.is_running[wire.n - 1]);
	const struct grpc_request *request = &wire.requests[wire.n - 1];
	assert_string_equal(request->path, path);
	assert_true(request->timeout_ns > 0);
	const uint8_t *bytes;
	size_t n;
	struct buf message;
	buf_init(&message, 1 << 20);
	assert_true(request->next_message(request->context, 0, &bytes, &n));
	assert_null(buf_append(&message, bytes, n));
	assert_false(request->next_message(request->context, 1, &bytes, &n));
	return message;
}

static void finish_call(const struct grpc_result *result)
{
	unsigned i = wire.n - 1;
	assert_true(wire.is_running[i]);
	wire.is_running[i] = false;
	wire.requests[i].done(wire.requests[i].context, result);
}

static void answer(const ProtobufCMessage *message)
{
	size_t n = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes = mem_alloc(n);
	protobuf_c_message_pack(message, bytes);
	const struct grpc_result result = {
		.code = GRPC_OK, .message = "", .response = bytes, .n_response = n};
	finish_call(&result);
	mem_free(bytes);
}

static void answer_code(enum grpc_code code, const char *message)
{
	const struct grpc_result result = {.code = code, .message = message};
	finish_call(&result);
}

static void answer_should(bool should, const char *reason)
{
	struct buf message = take_message(SERVICE "ShouldInitiateUpload");
	buf_fini(&message);
	Parca__Debuginfo__V1alpha1__ShouldInitiateUploadResponse response =
		PARCA__DEBUGINFO__V1ALPHA1__SHOULD_INITIATE_UPLOAD_RESPONSE__INIT;
	response.should_initiate_upload = should;
	response.reason = (char *)reason;
	answer(&response.base);
}

static char *signed_url = "https://store.example/7?signature=x";

/* Gives the size that was announced. */
static uint64_t answer_initiate(int strategy)
{
	struct buf message = take_message(SERVICE "InitiateUpload");
	Parca__Debuginfo__V1alpha1__InitiateUploadRequest *request =
		parca__debuginfo__v1alpha1__initiate_upload_request__unpack(NULL, message.size,
									    message.data);
	assert_non_null(request);
	assert_int_equal(strlen(request->hash), 32);
	assert_int_equal(request->build_id_type,
			 PARCA__DEBUGINFO__V1ALPHA1__BUILD_IDTYPE__BUILD_ID_TYPE_GO);
	uint64_t size = (uint64_t)request->size;
	parca__debuginfo__v1alpha1__initiate_upload_request__free_unpacked(request, NULL);
	buf_fini(&message);
	Parca__Debuginfo__V1alpha1__UploadInstructions instructions =
		PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_INSTRUCTIONS__INIT;
	Parca__Debuginfo__V1alpha1__InitiateUploadResponse response =
		PARCA__DEBUGINFO__V1ALPHA1__INITIATE_UPLOAD_RESPONSE__INIT;
	instructions.upload_id = "upload-7";
	instructions.signed_url = signed_url;
	instructions.upload_strategy =
		(Parca__Debuginfo__V1alpha1__UploadInstructions__UploadStrategy)strategy;
	response.upload_instructions = &instructions;
	answer(&response.base);
	return size;
}

/* Reads the stream as a server does; gives the bytes. */
static struct buf take_upload(void)
{
	const struct grpc_request *request = &wire.requests[wire.n - 1];
	assert_string_equal(request->path, SERVICE "Upload");
	struct buf all;
	buf_init(&all, 1 << 30);
	const uint8_t *bytes;
	size_t n;
	for (uint32_t i = 0; request->next_message(request->context, i, &bytes, &n); i++) {
		assert_true(n < 4 << 20);
		Parca__Debuginfo__V1alpha1__UploadRequest *message =
			parca__debuginfo__v1alpha1__upload_request__unpack(NULL, n, bytes);
		assert_non_null(message);
		if (i == 0) {
			assert_int_equal(message->data_case,
					 PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_REQUEST__DATA_INFO);
			assert_string_equal(message->info->upload_id, "upload-7");
		} else {
			assert_int_equal(
				message->data_case,
				PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_REQUEST__DATA_CHUNK_DATA);
			assert_true(message->chunk_data.len > 0);
			assert_null(buf_append(&all, message->chunk_data.data,
					       message->chunk_data.len));
		}
		parca__debuginfo__v1alpha1__upload_request__free_unpacked(message, NULL);
	}
	return all;
}

static void answer_upload(uint64_t size)
{
	Parca__Debuginfo__V1alpha1__UploadResponse response =
		PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_RESPONSE__INIT;
	response.size = size;
	answer(&response.base);
}

static void answer_finish(void)
{
	struct buf message = take_message(SERVICE "MarkUploadFinished");
	Parca__Debuginfo__V1alpha1__MarkUploadFinishedRequest *request =
		parca__debuginfo__v1alpha1__mark_upload_finished_request__unpack(NULL, message.size,
										 message.data);
	assert_string_equal(request->upload_id, "upload-7");
	assert_int_equal(strlen(request->build_id), 40);
	parca__debuginfo__v1alpha1__mark_upload_finished_request__free_unpacked(request, NULL);
	buf_fini(&message);
	Parca__Debuginfo__V1alpha1__MarkUploadFinishedResponse response =
		PARCA__DEBUGINFO__V1ALPHA1__MARK_UPLOAD_FINISHED_RESPONSE__INIT;
	answer(&response.base);
}

static void debuginfo_upload_sends_a_file_once(void **state)
{
	(void)state;
	struct debuginfo_upload *upload = make(NULL);
	struct build_id id = make_id(1);
	assert_true(debuginfo_upload_wants(upload, &id));
	debuginfo_upload_offer(upload, &id, open_elf());
	assert_int_equal(debuginfo_upload_state(upload, &id), DEBUGINFO_PENDING);
	assert_false(debuginfo_upload_wants(upload, &id));
	/* Not at once: a fleet would. */
	debuginfo_upload_tick(upload);
	assert_int_equal(wire.n, 0);
	assert_true(debuginfo_upload_next_ns(upload) < fake.now_monotonic_ns + 30 * NS_PER_S);
	wait(upload);
	answer_should(true, "");
	uint64_t size = answer_initiate(1);
	struct buf sent = take_upload();
	assert_int_equal(sent.size, size);
	assert_true(size > 2 << 20);
	/* Tried anew from the start, the stream is the same. */
	struct buf again = take_upload();
	assert_int_equal(again.size, size);
	assert_memory_equal(again.data, sent.data, size);
	struct debuginfo_image image;
	int fd = open_elf();
	assert_null(debuginfo_extract(fd, &id, 1 << 30, &image));
	uint8_t *want = mem_alloc(size);
	assert_null(debuginfo_image_read(&image, 0, want, size));
	assert_memory_equal(sent.data, want, size);
	mem_free(want);
	debuginfo_image_fini(&image);
	close(fd);
	buf_fini(&sent);
	buf_fini(&again);
	/* Done only when the server says so. */
	answer_upload(size);
	assert_int_equal(debuginfo_upload_state(upload, &id), DEBUGINFO_PENDING);
	answer_finish();
	assert_int_equal(debuginfo_upload_state(upload, &id), DEBUGINFO_DONE);
	assert_int_equal(debuginfo_upload_next_ns(upload), UINT64_MAX);
	struct debuginfo_upload_counts counts;
	debuginfo_upload_get_counts(upload, &counts);
	assert_int_equal(counts.n_uploaded, 1);
	assert_int_equal(counts.n_uploaded_bytes, size);
	/* A second offer is not taken. */
	debuginfo_upload_offer(upload, &id, open_elf());
	assert_int_equal(debuginfo_upload_next_ns(upload), UINT64_MAX);
	debuginfo_upload_free(upload);
}

static void debuginfo_upload_takes_a_failure_for_no_success(void **state)
{
	(void)state;
	struct debuginfo_upload *upload = make(NULL);
	struct build_id id = make_id(2);
	debuginfo_upload_offer(upload, &id, open_elf());
	/* Each step fails once in passing; after each, all begins again, later and later. */
	wait(upload);
	answer_code(GRPC_UNAVAILABLE, "down");
	assert_int_equal(debuginfo_upload_state(upload, &id), DEBUGINFO_PENDING);
	assert_true(debuginfo_upload_next_ns(upload) >= fake.now_monotonic_ns + 48 * NS_PER_S);
	wait(upload);
	answer_should(true, "");
	answer_code(GRPC_FAILED_PRECONDITION, "somebody uploads");
	assert_true(debuginfo_upload_next_ns(upload) >= fake.now_monotonic_ns + 300 * NS_PER_S);
	wait(upload);
	answer_should(false, "The upload is still in progress.");
	assert_true(debuginfo_upload_next_ns(upload) >= fake.now_monotonic_ns + 300 * NS_PER_S);
	wait(upload);
	answer_should(true, "");
	uint64_t size = answer_initiate(1);
	answer_upload(size - 1); /* not all of it arrived */
	wait(upload);
	answer_should(true, "");
	(void)answer_initiate(1);
	answer_upload(size);
	answer_code(GRPC_NOT_FOUND, "which upload?");
	assert_int_equal(debuginfo_upload_state(upload, &id), DEBUGINFO_PENDING);
	struct grpc_result later = {.code = GRPC_RESOURCE_EXHAUSTED,
				    .message = "later",
				    .has_retry_info = true,
				    .retry_delay_ns = 7200 * NS_PER_S};
	wait(upload);
	finish_call(&later);
	assert_true(debuginfo_upload_next_ns(upload) >= fake.now_monotonic_ns + 7200 * NS_PER_S);
	struct debuginfo_upload_counts counts;
	debuginfo_upload_get_counts(upload, &counts);
	assert_int_equal(counts.n_failures, 6);
	assert_non_null(strstr(counts.last_error, "later"));
	assert_int_equal(wire.n_cancelled, 0);
	/* Then it is left alone for an hour, and asked for anew. */
	wire.n = 0;
	wait(upload);
	answer_code(GRPC_UNAUTHENTICATED, "token");
	wait(upload);
	answer_code(GRPC_UNAUTHENTICATED, "token");
	assert_int_equal(debuginfo_upload_state(upload, &id), DEBUGINFO_REFUSED);
	assert_false(debuginfo_upload_wants(upload, &id));
	fake.now_wall_ns += 3601 * NS_PER_S;
	assert_true(debuginfo_upload_wants(upload, &id));
	debuginfo_upload_free(upload);
}

static void debuginfo_upload_accepts_what_is_final(void **state)
{
	(void)state;
	struct debuginfo_upload *upload = make(NULL);
	struct build_id ids[] = {make_id(1), make_id(2), make_id(3), make_id(4), make_id(5)};
	debuginfo_upload_offer(upload, &ids[0], open_elf());
	wait(upload);
	answer_should(false, "Debuginfo exists in debuginfod.");
	assert_int_equal(debuginfo_upload_state(upload, &ids[0]), DEBUGINFO_DONE);
	debuginfo_upload_offer(upload, &ids[1], open_elf());
	wait(upload);
	answer_should(true, "");
	answer_code(GRPC_ALREADY_EXISTS, "same hash");
	assert_int_equal(debuginfo_upload_state(upload, &ids[1]), DEBUGINFO_DONE);
	debuginfo_upload_offer(upload, &ids[2], open_elf());
	wait(upload);
	answer_code(GRPC_UNIMPLEMENTED, "unknown service");
	assert_int_equal(debuginfo_upload_state(upload, &ids[2]), DEBUGINFO_REFUSED);
	/* Not ELF, and a build-id that is not the file's: the server is asked first, then spared.
	 */
	debuginfo_upload_offer(upload, &ids[3], open("/etc/passwd", O_RDONLY | O_CLOEXEC));
	wait(upload);
	answer_should(true, "");
	assert_int_equal(debuginfo_upload_state(upload, &ids[3]), DEBUGINFO_REFUSED);
	ids[4].kind = BUILD_ID_GNU;
	debuginfo_upload_offer(upload, &ids[4], open_elf());
	wait(upload);
	answer_should(true, "");
	assert_int_equal(debuginfo_upload_state(upload, &ids[4]), DEBUGINFO_REFUSED);
	struct debuginfo_upload_counts counts;
	debuginfo_upload_get_counts(upload, &counts);
	assert_int_equal(counts.n_known, 2);
	assert_int_equal(counts.n_refused, 3);
	debuginfo_upload_free(upload);
}

static void debuginfo_upload_puts_to_a_signed_url(void **state)
{
	(void)state;
	struct debuginfo_upload *upload = make(NULL);
	struct build_id id = make_id(1);
	debuginfo_upload_offer(upload, &id, open_elf());
	wait(upload);
	answer_should(true, "");
	uint64_t size = answer_initiate(2);
	assert_true(wire.has_put);
	assert_string_equal(wire.put.url, "https://store.example/7?signature=x");
	assert_int_equal(wire.put.n_bytes, size);
	uint8_t magic[4];
	assert_true(wire.put.read(wire.put.context, 0, magic, 4));
	assert_memory_equal(magic, "\177ELF", 4);
	assert_false(wire.put.read(wire.put.context, size, magic, 4));
	/* Cancelled with the uploader. */
	debuginfo_upload_free(upload);
	assert_false(wire.has_put);

	upload = make(NULL);
	debuginfo_upload_offer(upload, &id, open_elf());
	wait(upload);
	answer_should(true, "");
	(void)answer_initiate(2);
	wire.put.done(wire.put.context, 503, "busy");
	assert_int_equal(debuginfo_upload_state(upload, &id), DEBUGINFO_PENDING);
	wait(upload);
	answer_should(true, "");
	(void)answer_initiate(2);
	wire.put.done(wire.put.context, 200, "OK");
	answer_finish();
	assert_int_equal(debuginfo_upload_state(upload, &id), DEBUGINFO_DONE);
	struct build_id other = make_id(2);
	debuginfo_upload_offer(upload, &other, open_elf());
	wait(upload);
	answer_should(true, "");
	signed_url = "ftp://store.example/";
	(void)answer_initiate(2);
	signed_url = "https://store.example/7?signature=x";
	assert_int_equal(debuginfo_upload_state(upload, &other), DEBUGINFO_REFUSED);
	debuginfo_upload_free(upload);
}

static void debuginfo_upload_never_finishes_a_file_that_changed(void **state)
{
	(void)state;
	struct debuginfo_upload *upload = make(NULL);
	struct build_id id = make_id(1);
	int fd = open_elf();
	debuginfo_upload_offer(upload, &id, fcntl(fd, F_DUPFD_CLOEXEC, 3));
	wait(upload);
	answer_should(true, "");
	uint64_t size = answer_initiate(1);
	assert_int_equal(ftruncate(fd, 4096), 0);
	struct buf sent = take_upload();
	assert_true(sent.size < size);
	answer_upload(sent.size);
	buf_fini(&sent);
	assert_int_equal(debuginfo_upload_state(upload, &id), DEBUGINFO_REFUSED);
	assert_int_equal(wire.n, 3); /* no MarkUploadFinished */
	close(fd);
	debuginfo_upload_free(upload);
}

/* FR-104: a failure is told as that, and who asks for no further try gets none. */
static void debuginfo_upload_tells_each_outcome_and_gives_up_on_demand(void **state)
{
	(void)state;
	struct debuginfo_upload *upload = make(NULL);
	const struct build_id id = make_id(1);
	debuginfo_upload_offer(upload, &id, open_elf());
	wait(upload);
	const struct grpc_result refused = {
		.code = GRPC_UNAUTHENTICATED, .message = "who?", .error_number = 302};
	finish_call(&refused);
	assert_int_equal(told.n, 1);
	assert_int_equal(told.kind, DEBUGINFO_EVENT_FAILED);
	assert_true(told.is_auth);
	assert_int_equal(told.error_number, 302);
	assert_string_equal(told.text, "who?");
	assert_true(build_id_equal(&told.id, &id));
	wait(upload);
	answer_code(GRPC_FAILED_PRECONDITION, "busy");
	assert_int_equal(told.kind, DEBUGINFO_EVENT_FAILED);
	assert_false(told.is_auth);
	wait(upload);
	assert_true(wire.is_running[wire.n - 1]);
	debuginfo_upload_withdraw(upload, &id);
	assert_int_equal(wire.n_cancelled, 1);
	assert_int_equal(debuginfo_upload_state(upload, &id), DEBUGINFO_UNKNOWN);
	assert_int_equal(debuginfo_upload_next_ns(upload), UINT64_MAX);
	debuginfo_upload_offer(upload, &id, open_elf());
	wait(upload);
	answer_code(GRPC_ALREADY_EXISTS, "this very file");
	assert_int_equal(told.kind, DEBUGINFO_EVENT_KNOWN);
	assert_string_equal(told.text, "this very file");
	const struct build_id other = make_id(2);
	debuginfo_upload_offer(upload, &other, open_elf());
	wait(upload);
	answer_code(GRPC_INVALID_ARGUMENT, "no");
	assert_int_equal(told.kind, DEBUGINFO_EVENT_REFUSED);
	assert_int_equal(told.n, 4);
	debuginfo_upload_free(upload);
}

static void debuginfo_upload_runs_few_at_a_time(void **state)
{
	(void)state;
	struct debuginfo_upload *upload = make(NULL);
	unsigned n_taken = 0;
	for (int i = 0; i < 100; i++) {
		struct build_id id = make_id((uint8_t)(i + 1));
		n_taken += debuginfo_upload_wants(upload, &id);
		debuginfo_upload_offer(upload, &id, open_elf());
	}
	assert_int_equal(n_taken, 64);
	fake.now_monotonic_ns += 60 * NS_PER_S;
	debuginfo_upload_tick(upload);
	assert_int_equal(wire.n, 2);
	assert_int_equal(debuginfo_upload_next_ns(upload), UINT64_MAX);
	answer_should(false, "exists");
	assert_true(debuginfo_upload_next_ns(upload) <= fake.now_monotonic_ns);
	debuginfo_upload_free(upload);
	assert_int_equal(wire.n_cancelled, 1);
}

static void debuginfo_upload_remembers_over_restarts(void **state)
{
	(void)state;
	struct temp_dir dir;
	temp_dir_init(&dir);
	const char *path = temp_dir_path(&dir, "debuginfo-uploads");
	struct build_id done = make_id(1), refused = make_id(2), strange = make_id(3);
	struct debuginfo_upload *upload = make(path);
	debuginfo_upload_offer(upload, &done, open_elf());
	wait(upload);
	answer_should(false, "exists");
	debuginfo_upload_offer(upload, &refused, open_elf());
	wait(upload);
	answer_code(GRPC_INVALID_ARGUMENT, "no");
	debuginfo_upload_free(upload);
	/* Lines that mean nothing are left out. */
	FILE *file = fopen(path, "a");
	assert_non_null(file);
	fputs("0302 go perhaps 5\nxyz go done 1\n\n0302 go done 1 more\n0302 gnu done x\nab", file);
	fclose(file);
	upload = make(path);
	assert_int_equal(debuginfo_upload_state(upload, &done), DEBUGINFO_DONE);
	assert_int_equal(debuginfo_upload_state(upload, &refused), DEBUGINFO_REFUSED);
	assert_int_equal(debuginfo_upload_state(upload, &strange), DEBUGINFO_UNKNOWN);
	fake.now_wall_ns += 86401 * NS_PER_S;
	assert_true(debuginfo_upload_wants(upload, &refused));
	assert_false(debuginfo_upload_wants(upload, &done));
	debuginfo_upload_free(upload);
	/* A folder in its place: begun anew. */
	upload = make(dir.path);
	assert_int_equal(debuginfo_upload_state(upload, &done), DEBUGINFO_UNKNOWN);
	debuginfo_upload_free(upload);
	temp_dir_fini(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(debuginfo_upload_sends_a_file_once),
		cmocka_unit_test(debuginfo_upload_takes_a_failure_for_no_success),
		cmocka_unit_test(debuginfo_upload_accepts_what_is_final),
		cmocka_unit_test(debuginfo_upload_puts_to_a_signed_url),
		cmocka_unit_test(debuginfo_upload_never_finishes_a_file_that_changed),
		cmocka_unit_test(debuginfo_upload_tells_each_outcome_and_gives_up_on_demand),
		cmocka_unit_test(debuginfo_upload_runs_few_at_a_time),
		cmocka_unit_test(debuginfo_upload_remembers_over_restarts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
