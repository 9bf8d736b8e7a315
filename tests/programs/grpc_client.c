/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes gRPC calls as told by its arguments and prints a line of JSON for each: the other end of
 * tests/e2e/grpc_*_test.py.
 *
 *   grpc_client endpoint=HOST:PORT path=/pkg.Service/Method [calls=N] [parallel=N] [messages=N]
 *       [size=N] [hex=BYTES] [timeout_ms=N] [cancel_ms=N] [wait_for_ready=1] [gzip=1]
 *       [max_response=N] [interactive=1: a call for each line of standard input]
 *       [insecure=1] [ca_file= ca_path= cert_file= key_file= server_name= min_version=
 * skip_verify=] [token= token_file= user= password= tenant= clear_token=1] [header=NAME:VALUE …]
 *       [proxy=] [keepalive_ms=] [quiet=1: only a summary]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "forwarder/grpc_channel.h"

/* Sanitizers take memory of their own, so tests do not judge ours. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

struct call {
	struct program *program;
	struct grpc_call *handle;
	uint64_t begun_ns;
	uv_timer_t cancel;
};

struct program {
	uv_loop_t loop;
	struct grpc_channel *channel;
	struct remote_config config;
	struct key_value headers[16];
	struct grpc_request request;
	uint8_t *message;
	size_t n_message;
	uint32_t n_messages;
	uint64_t cancel_ms;
	unsigned n_calls, n_parallel, n_started, n_ended;
	unsigned n_by_code[GRPC_CODE_N];
	bool is_interactive, is_quiet;
	uv_poll_t input;
	size_t base_bytes;
};

static uint64_t now_ns(void)
{
	return clock_system.monotonic_ns(NULL);
}

/* VmHWM; ru_maxrss would count whoever started us. */
static size_t peak_bytes(void)
{
	char line[128];
	size_t kib = 0;
	FILE *file = fopen("/proc/self/status", "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %zu", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib * 1024;
}

static void print_text(const char *name, const char *text)
{
	printf(", \"%s\": \"", name);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text < 0x20)
			printf("\\u%04x", *text);
		else
			putchar(*text);
	}
	putchar('"');
}

static bool next_message(void *context, uint32_t index, const uint8_t **bytes_out, size_t *n_out)
{
	const struct program *program = ((struct call *)context)->program;
	*bytes_out = program->message;
	*n_out = program->n_message;
	return index < program->n_messages;
}

static void start(struct program *program);

static void finish(struct program *program)
{
	grpc_channel_close(program->channel);
	program->channel = NULL;
	if (program->is_interactive)
		uv_close((uv_handle_t *)&program->input, NULL);
}

static void on_cancel_closed(uv_handle_t *handle)
{
	mem_free(handle->data);
}

static void end(struct call *call)
{
	struct program *program = call->program;
	if (program->cancel_ms)
		uv_close((uv_handle_t *)&call->cancel, on_cancel_closed);
	else
		mem_free(call);
	program->n_ended++;
	fflush(stdout);
	if (program->is_interactive)
		return;
	if (program->n_started < program->n_calls)
		start(program);
	else if (program->n_ended == program->n_calls)
		finish(program);
}

static void print_hex(const char *name, const uint8_t *bytes, size_t n)
{
	printf(", \"%s\": \"", name);
	for (size_t i = 0; i < n && i < 64; i++)
		printf("%02x", bytes[i]);
	putchar('"');
}

static void on_done(void *context, const struct grpc_result *result)
{
	struct call *call = context;
	struct program *program = call->program;
	program->n_by_code[result->code]++;
	if (!program->is_quiet) {
		printf("{\"code\": \"%s\", \"failure\": %d, \"number\": %d, \"http\": %d, "
		       "\"unprocessed\": %d, \"retry_ns\": %llu, \"has_retry\": %d, "
		       "\"must_not_retry\": %d, \"n_response\": %zu, \"n_details\": %zu, "
		       "\"ms\": %.1f, \"rss\": %zu, \"base_rss\": %zu",
		       grpc_code_name(result->code), result->failure, result->error_number,
		       result->http_status, result->is_unprocessed,
		       (unsigned long long)result->retry_delay_ns, result->has_retry_info,
		       result->must_not_retry, result->n_response, result->n_details,
		       (double)(now_ns() - call->begun_ns) / 1e6, mem_resident_bytes(),
		       program->base_bytes);
		print_text("message", result->message);
		print_hex("response", result->response, result->n_response);
		printf("}\n");
	}
	end(call);
}

static void on_cancel(uv_timer_t *timer)
{
	struct call *call = timer->data;
	grpc_call_cancel(call->handle);
	printf("{\"code\": \"cancelled by the program\"}\n");
	end(call);
}

static void start(struct program *program)
{
	struct call *call = mem_zalloc(1, sizeof(*call));
	program->n_started++;
	call->program = program;
	call->begun_ns = now_ns();
	struct grpc_request request = program->request;
	request.next_message = next_message;
	request.done = on_done;
	request.context = call;
	call->handle = grpc_channel_call(program->channel, &request);
	if (!program->cancel_ms)
		return;
	uv_timer_init(&program->loop, &call->cancel);
	call->cancel.data = call;
	uv_timer_start(&call->cancel, on_cancel, program->cancel_ms, 0);
}

static void on_input(uv_poll_t *input, int status, int events)
{
	(void)events;
	struct program *program = input->data;
	char c;
	ssize_t n = status < 0 ? 0 : read(STDIN_FILENO, &c, 1);
	if (n <= 0)
		finish(program);
	else if (c == '\n')
		start(program);
}

static uint8_t *parse_hex(const char *text, size_t *n_out)
{
	size_t n = strlen(text) / 2;
	uint8_t *bytes = mem_alloc(n + 1);
	for (size_t i = 0; i < n; i++) {
		char pair[3] = {text[2 * i], text[2 * i + 1], 0};
		bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
	*n_out = n;
	return bytes;
}

/* false: no such setting. */
static bool set_text(struct program *program, const char *key, const char *value)
{
	struct remote_config *config = &program->config;
	const struct {
		const char *key;
		const char **to;
	} texts[] = {
		{"endpoint", &config->endpoint},
		{"ca_file", &config->tls.ca_file},
		{"ca_path", &config->tls.ca_path},
		{"cert_file", &config->tls.cert_file},
		{"key_file", &config->tls.key_file},
		{"server_name", &config->tls.server_name},
		{"min_version", &config->tls.min_version},
		{"token", &config->bearer_token},
		{"token_file", &config->bearer_token_file},
		{"user", &config->username},
		{"password", &config->password},
		{"tenant", &config->tenant_id},
		{"proxy", &config->proxy},
		{"path", &program->request.path},
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (strcmp(key, texts[i].key) == 0) {
			*texts[i].to = value;
			return true;
		}
	return false;
}

static bool set_number(struct program *program, const char *key, uint64_t value)
{
	struct remote_config *config = &program->config;
	if (strcmp(key, "calls") == 0)
		program->n_calls = (unsigned)value;
	else if (strcmp(key, "parallel") == 0)
		program->n_parallel = (unsigned)value;
	else if (strcmp(key, "messages") == 0)
		program->n_messages = (uint32_t)value;
	else if (strcmp(key, "size") == 0)
		program->n_message = value;
	else if (strcmp(key, "timeout_ms") == 0)
		program->request.timeout_ns = value * 1000000;
	else if (strcmp(key, "cancel_ms") == 0)
		program->cancel_ms = value;
	else if (strcmp(key, "max_response") == 0)
		program->request.max_response_bytes = value;
	else if (strcmp(key, "keepalive_ms") == 0)
		config->keepalive_ns = value * 1000000;
	else if (strcmp(key, "wait_for_ready") == 0)
		program->request.wait_for_ready = value;
	else if (strcmp(key, "gzip") == 0)
		config->gzip = value;
	else if (strcmp(key, "insecure") == 0)
		config->insecure = value;
	else if (strcmp(key, "skip_verify") == 0)
		config->tls.skip_verify = value;
	else if (strcmp(key, "clear_token") == 0)
		config->allow_token_in_clear = value;
	else if (strcmp(key, "interactive") == 0)
		program->is_interactive = value;
	else if (strcmp(key, "quiet") == 0)
		program->is_quiet = value;
	else
		return false;
	return true;
}

static int parse(struct program *program, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *value = strchr(argv[i], '=');
		if (!value)
			return fprintf(stderr, "grpc_client: %s: KEY=VALUE\n", argv[i]);
		*value++ = 0;
		if (strcmp(argv[i], "header") == 0) {
			char *colon = strchr(value, ':');
			*colon = 0;
			program->headers[program->config.n_headers++] =
				(struct key_value){value, colon + 1};
		} else if (strcmp(argv[i], "hex") == 0) {
			program->message = parse_hex(value, &program->n_message);
		} else if (!set_text(program, argv[i], value) &&
			   !set_number(program, argv[i], strtoull(value, NULL, 10))) {
			return fprintf(stderr, "grpc_client: unknown setting %s\n", argv[i]);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct program program = {.n_calls = 1, .n_parallel = 1, .n_messages = 1};
	program.config.headers = program.headers;
	program.config.default_port = 443;
	program.request.path = "/test.Echo/Unary";
	if (parse(&program, argc, argv))
		return 2;
	if (!program.message) {
		program.message = mem_alloc(program.n_message + 1);
		for (size_t i = 0; i < program.n_message; i++)
			program.message[i] = (uint8_t)(i * 7 + i / 251);
	}
	uv_loop_init(&program.loop);
	struct error *err =
		grpc_channel_new(&program.loop, NULL, &program.config, &program.channel);
	if (err) {
		fprintf(stderr, "%s\n", error_text(err));
		error_free(err);
		mem_free(program.message);
		uv_loop_close(&program.loop);
		return 64;
	}
	program.base_bytes = mem_resident_bytes();
	if (program.is_interactive) {
		uv_poll_init(&program.loop, &program.input, STDIN_FILENO);
		program.input.data = &program;
		uv_poll_start(&program.input, UV_READABLE, on_input);
	} else {
		for (unsigned i = 0; i < program.n_parallel && i < program.n_calls; i++)
			start(&program);
	}
	uv_run(&program.loop, UV_RUN_DEFAULT);
	if (uv_loop_close(&program.loop) != 0) {
		fprintf(stderr, "grpc_client: handles were left open\n");
		return 1;
	}
	mem_free(program.message);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	printf("{\"ended\": %u, \"ok\": %u, \"cpu_s\": %.6f, \"max_rss\": %zu, \"is_sanitized\": "
	       "%d}\n",
	       program.n_ended, program.n_by_code[GRPC_OK],
	       (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
	       peak_bytes(), IS_SANITIZED);
	return 0;
}
