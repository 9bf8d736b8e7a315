/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "forwarder/grpc_response.h"

static const uint64_t second = 1000000000;

static void header(struct grpc_response *response, const char *name, const char *value)
{
	grpc_response_header(response, name, strlen(name), value, strlen(value), &clock_system);
}

/* The headers of an answer that is gRPC. */
static void begin(struct grpc_response *response)
{
	header(response, ":status", "200");
	header(response, "content-type", "application/grpc+proto");
	grpc_response_headers_end(response);
}

static bool data(struct grpc_response *response, const char *bytes, size_t n)
{
	return grpc_response_data(response, (const uint8_t *)bytes, n);
}

static void trailers(struct grpc_response *response, const char *status, const char *message)
{
	header(response, "grpc-status", status);
	if (message)
		header(response, "grpc-message", message);
	grpc_response_headers_end(response);
}

static struct grpc_result finish(struct grpc_response *response)
{
	struct grpc_result result;
	grpc_response_end(response);
	grpc_response_result(response, &result);
	return result;
}

static void check(const struct grpc_result *result, enum grpc_code code, enum grpc_failure failure,
		  const char *message)
{
	assert_int_equal(result->code, code);
	assert_int_equal(result->failure, failure);
	assert_non_null(strstr(result->message, message));
	if (code != GRPC_OK)
		assert_null(result->response);
}

static void grpc_response_gives_the_one_message(void **state)
{
	(void)state;
	struct grpc_response response;
	grpc_response_init(&response, 100);
	for (int i = 0; i < 2; i++) {
		begin(&response);
		assert_true(data(&response, "\0\0\0", 3));
		assert_true(data(&response, "\0\3a", 3));
		assert_true(data(&response, "bc", 2));
		trailers(&response, "0", NULL);
		struct grpc_result result = finish(&response);
		check(&result, GRPC_OK, GRPC_FAILURE_NONE, "");
		assert_int_equal(result.http_status, 200);
		assert_int_equal(result.n_response, 3);
		assert_memory_equal(result.response, "abc", 3);
		grpc_response_reset(&response);
	}
	begin(&response);
	assert_true(data(&response, "\0\0\0\0\0", 5));
	trailers(&response, "0", NULL);
	struct grpc_result result = finish(&response);
	check(&result, GRPC_OK, GRPC_FAILURE_NONE, "");
	assert_non_null(result.response);
	assert_int_equal(result.n_response, 0);
	grpc_response_fini(&response);
}

static void grpc_response_wants_exactly_one_message(void **state)
{
	(void)state;
	struct grpc_response response;
	grpc_response_init(&response, 100);
	begin(&response);
	trailers(&response, "0", NULL);
	struct grpc_result result = finish(&response);
	check(&result, GRPC_INTERNAL, GRPC_FAILURE_PROTOCOL, "without the one message");
	grpc_response_reset(&response);
	begin(&response);
	assert_false(data(&response, "\0\0\0\0\1a\0\0\0\0\1b", 12));
	result = finish(&response);
	check(&result, GRPC_INTERNAL, GRPC_FAILURE_PROTOCOL, "more than one message");
	grpc_response_reset(&response);
	begin(&response);
	assert_true(data(&response, "\0\0\0\0\2a", 6));
	trailers(&response, "0", NULL);
	result = finish(&response);
	check(&result, GRPC_INTERNAL, GRPC_FAILURE_PROTOCOL, "in the middle of a message");
	grpc_response_reset(&response);
	begin(&response);
	assert_false(data(&response, "\0\0\0\0\x65", 5));
	result = finish(&response);
	check(&result, GRPC_RESOURCE_EXHAUSTED, GRPC_FAILURE_PROTOCOL,
	      "101 bytes is larger than 100");
	grpc_response_fini(&response);
}

static void grpc_response_takes_status_and_hints_from_trailers(void **state)
{
	(void)state;
	struct grpc_response response;
	grpc_response_init(&response, 100);
	begin(&response);
	header(&response, "grpc-status-details-bin", "GikKJ3R5cGU, AAAA");
	header(&response, "retry-after", "7");
	trailers(&response, "16", "who%20are you?");
	struct grpc_result result = finish(&response);
	check(&result, GRPC_UNAUTHENTICATED, GRPC_FAILURE_NONE, "who are you?");
	assert_int_equal(result.error_number, 302);
	assert_int_equal(result.n_details, 8);
	assert_true(result.has_retry_info);
	assert_int_equal(result.retry_delay_ns, 7 * second);
	grpc_response_fini(&response);
}

static void grpc_response_obeys_push_back_before_other_hints(void **state)
{
	(void)state;
	/* google.rpc.Status with a RetryInfo of 3 s, in base64. */
	static const char details[] =
		"Gi4KKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SAgoA";
	struct grpc_response response;
	grpc_response_init(&response, 100);
	static const struct {
		const char *push_back;
		bool has_retry_info, must_not_retry;
		uint64_t delay;
	} cases[] = {{"1500", true, false, 1500000000},
		     {"0", true, false, 0},
		     {"-1", false, true, 0},
		     {"x", false, true, 0},
		     {"", false, true, 0},
		     {"99999999999", false, true, 0}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int order = 0; order < 2; order++) {
			begin(&response);
			if (order)
				header(&response, "grpc-retry-pushback-ms", cases[i].push_back);
			header(&response, "retry-after", "9");
			header(&response, "grpc-status-details-bin", details);
			if (!order)
				header(&response, "grpc-retry-pushback-ms", cases[i].push_back);
			trailers(&response, "14", NULL);
			struct grpc_result result = finish(&response);
			assert_int_equal(result.has_retry_info, cases[i].has_retry_info);
			assert_int_equal(result.must_not_retry, cases[i].must_not_retry);
			assert_int_equal(result.retry_delay_ns, cases[i].delay);
			grpc_response_reset(&response);
		}
	}
	begin(&response);
	header(&response, "grpc-status-details-bin", details);
	trailers(&response, "14", NULL);
	struct grpc_result result = finish(&response);
	assert_true(result.has_retry_info);
	assert_int_equal(result.retry_delay_ns, 0);
	grpc_response_fini(&response);
}

static void grpc_response_describes_what_is_not_grpc(void **state)
{
	(void)state;
	struct grpc_response response;
	grpc_response_init(&response, 100);
	header(&response, ":status", "502");
	header(&response, "content-type", "text/html");
	header(&response, "retry-after", "30");
	grpc_response_headers_end(&response);
	assert_true(data(&response, "<html>\n", 7));
	assert_true(data(&response, "<b>Bad</b>\x1b", 11));
	struct grpc_result result = finish(&response);
	check(&result, GRPC_UNAVAILABLE, GRPC_FAILURE_NOT_GRPC,
	      "the answer is not gRPC: HTTP status 502, content-type text/html, it begins "
	      "\"<html> <b>Bad</b>?\"");
	assert_int_equal(result.http_status, 502);
	assert_int_equal(result.error_number, 304);
	assert_int_equal(result.retry_delay_ns, 30 * second);
	grpc_response_reset(&response);

	header(&response, ":status", "403");
	grpc_response_headers_end(&response);
	result = finish(&response);
	check(&result, GRPC_PERMISSION_DENIED, GRPC_FAILURE_NOT_GRPC,
	      "HTTP status 403, content-type none");
	assert_int_equal(result.error_number, 302);
	grpc_response_reset(&response);

	/* A body without an end is left soon. */
	header(&response, ":status", "200");
	header(&response, "content-type", "application/grpcx");
	grpc_response_headers_end(&response);
	char page[GRPC_RESPONSE_FIRST_BYTES];
	memset(page, 'p', sizeof(page));
	assert_true(data(&response, page, sizeof(page) - 1));
	assert_false(data(&response, page, 1));
	result = finish(&response);
	check(&result, GRPC_UNKNOWN, GRPC_FAILURE_NOT_GRPC, "application/grpcx");
	grpc_response_fini(&response);
}

static void grpc_response_skips_interim_answers(void **state)
{
	(void)state;
	struct grpc_response response;
	grpc_response_init(&response, 100);
	header(&response, ":status", "103");
	header(&response, "grpc-status", "9");
	header(&response, "content-type", "text/html");
	grpc_response_headers_end(&response);
	begin(&response);
	assert_true(data(&response, "\0\0\0\0\1x", 6));
	trailers(&response, "0", NULL);
	struct grpc_result result = finish(&response);
	check(&result, GRPC_OK, GRPC_FAILURE_NONE, "");
	grpc_response_fini(&response);
}

static void grpc_response_maps_resets(void **state)
{
	(void)state;
	struct grpc_response response;
	struct grpc_result result;
	grpc_response_init(&response, 100);
	grpc_response_end_reset(&response, 7, "REFUSED_STREAM");
	grpc_response_result(&response, &result);
	check(&result, GRPC_UNAVAILABLE, GRPC_FAILURE_LOST, "REFUSED_STREAM");
	assert_true(result.is_unprocessed);
	grpc_response_reset(&response);
	begin(&response);
	grpc_response_end_reset(&response, 2, "INTERNAL_ERROR");
	grpc_response_result(&response, &result);
	check(&result, GRPC_INTERNAL, GRPC_FAILURE_PROTOCOL, "INTERNAL_ERROR");
	assert_false(result.is_unprocessed);
	grpc_response_reset(&response);
	/* After the trailers a reset only says that the rest of the request is not needed. */
	begin(&response);
	trailers(&response, "8", "enough");
	grpc_response_end_reset(&response, 0, "NO_ERROR");
	grpc_response_result(&response, &result);
	check(&result, GRPC_RESOURCE_EXHAUSTED, GRPC_FAILURE_NONE, "enough");
	grpc_response_fini(&response);
}

static void grpc_response_keeps_its_first_end(void **state)
{
	(void)state;
	struct grpc_response response;
	struct grpc_result result;
	grpc_response_init(&response, 100);
	grpc_response_end_failure(&response, GRPC_DEADLINE_EXCEEDED, GRPC_FAILURE_DEADLINE, true,
				  "late\n\x1b");
	grpc_response_end_reset(&response, 2, "INTERNAL_ERROR");
	begin(&response);
	assert_false(data(&response, "\0\0\0\0\0", 5));
	result = finish(&response);
	check(&result, GRPC_DEADLINE_EXCEEDED, GRPC_FAILURE_DEADLINE, "late ?");
	assert_true(result.is_unprocessed);
	grpc_response_fini(&response);
}

static void grpc_response_caps_what_it_shows(void **state)
{
	(void)state;
	static char value[3 * GRPC_RESPONSE_DETAILS_BYTES];
	memset(value, 'A', sizeof(value) - 1);
	struct grpc_response response;
	grpc_response_init(&response, 100);
	begin(&response);
	header(&response, "grpc-status-details-bin", value);
	trailers(&response, "5", value);
	struct grpc_result result = finish(&response);
	assert_null(result.details);
	assert_true(strlen(result.message) < GRPC_RESPONSE_MESSAGE_BYTES);
	assert_string_equal(result.message + strlen(result.message) - 4, "A…");
	grpc_response_fini(&response);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grpc_response_gives_the_one_message),
		cmocka_unit_test(grpc_response_wants_exactly_one_message),
		cmocka_unit_test(grpc_response_takes_status_and_hints_from_trailers),
		cmocka_unit_test(grpc_response_obeys_push_back_before_other_hints),
		cmocka_unit_test(grpc_response_describes_what_is_not_grpc),
		cmocka_unit_test(grpc_response_skips_interim_answers),
		cmocka_unit_test(grpc_response_maps_resets),
		cmocka_unit_test(grpc_response_keeps_its_first_end),
		cmocka_unit_test(grpc_response_caps_what_it_shows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
