/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"
#include "forwarder/h2_session.h"

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };
static const uint64_t second = 1000000000;
static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* One frame, as the other side sees it. */
struct frame {
	uint32_t n;
	uint8_t type, flags;
	uint32_t stream;
	const uint8_t *payload;
};

/* A session, a stream's owner, and what they did. */
struct fixture {
	struct h2_session *h2;
	struct buf sent;
	size_t n_read; /* of sent */
	const uint8_t *body;
	size_t n_body, body_offset;
	char headers[256];
	unsigned n_blocks;
	char data[64];
	bool refuses_data;
	unsigned n_ended;
	enum h2_end end;
	uint32_t code;
	char text[256];
};

static size_t available(void *stream)
{
	struct fixture *f = stream;
	return f->n_body - f->body_offset;
}

static void read_body(void *stream, uint8_t *out, size_t n)
{
	struct fixture *f = stream;
	memcpy(out, f->body + f->body_offset, n);
	f->body_offset += n;
}

static void on_header(void *stream, const char *name, size_t n_name, const char *value,
		      size_t n_value)
{
	struct fixture *f = stream;
	if (strlen(f->headers) + n_name + n_value + 3 > sizeof(f->headers))
		return;
	strncat(f->headers, name, n_name);
	strcat(f->headers, "=");
	strncat(f->headers, value, n_value);
	strcat(f->headers, ";");
}

static void on_headers_end(void *stream)
{
	((struct fixture *)stream)->n_blocks++;
}

static bool on_data(void *stream, const uint8_t *bytes, size_t n)
{
	struct fixture *f = stream;
	strncat(f->data, (const char *)bytes, n);
	return !f->refuses_data;
}

static void on_ended(void *stream, enum h2_end end, uint32_t code, const char *text)
{
	struct fixture *f = stream;
	f->n_ended++;
	f->end = end;
	f->code = code;
	strncpy(f->text, text, sizeof(f->text) - 1);
}

static const struct h2_stream_ops ops = {available,	 read_body, on_header,
					 on_headers_end, on_data,   on_ended};

static void pump(struct fixture *f)
{
	const uint8_t *bytes;
	size_t n;
	do {
		assert_null(h2_session_output(f->h2, &bytes, &n));
		assert_null(buf_append(&f->sent, bytes, n));
	} while (n > 0);
}

static bool next_frame(struct fixture *f, struct frame *out)
{
	const uint8_t *p = f->sent.data + f->n_read;
	if (f->sent.size - f->n_read < 9)
		return false;
	*out = (struct frame){.n = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2],
			      .type = p[3],
			      .flags = p[4],
			      .stream = (uint32_t)p[5] << 24 | (uint32_t)p[6] << 16 |
					(uint32_t)p[7] << 8 | p[8],
			      .payload = p + 9};
	assert_true(f->sent.size - f->n_read >= 9 + out->n);
	f->n_read += 9 + out->n;
	return true;
}

/* The next frame of that type; others are passed over. */
static struct frame find_frame(struct fixture *f, uint8_t type)
{
	struct frame frame;
	while (next_frame(f, &frame))
		if (frame.type == type)
			return frame;
	fail_msg("no frame of type %u", type);
	return frame;
}

static bool has_frame(struct fixture *f, uint8_t type)
{
	struct frame frame;
	while (next_frame(f, &frame))
		if (frame.type == type)
			return true;
	return false;
}

static struct error *receive(struct fixture *f, uint64_t now, uint8_t type, uint8_t flags,
			     uint32_t stream, const void *payload, size_t n)
{
	uint8_t bytes[9 + 20000];
	const uint8_t head[9] = {(uint8_t)(n >> 16),
				 (uint8_t)(n >> 8),
				 (uint8_t)n,
				 type,
				 flags,
				 (uint8_t)(stream >> 24),
				 (uint8_t)(stream >> 16),
				 (uint8_t)(stream >> 8),
				 (uint8_t)stream};
	assert_true(n <= sizeof(bytes) - 9);
	memcpy(bytes, head, 9);
	if (n)
		memcpy(bytes + 9, payload, n);
	return h2_session_receive(f->h2, bytes, n + 9, now);
}

static const struct request_header request[] = {
	{":method", "POST", 7, 4, false},
	{":scheme", "http", 7, 4, false},
	{":path", "/a", 5, 2, false},
	{":authority", "h", 10, 1, false},
	{"authorization", "Bearer secret", 13, 13, true},
};

static struct h2_stream *open_stream(struct fixture *f, uint64_t now)
{
	return h2_session_open(f->h2, request, 5, &ops, f, now);
}

static int set_up(void **state)
{
	static struct fixture f;
	f = (struct fixture){.body = (const uint8_t *)"hello", .n_body = 5};
	const struct h2_session_config config = {.keepalive_ns = 60 * second};
	f.h2 = h2_session_new(&config, second);
	buf_init(&f.sent, 1 << 24);
	pump(&f);
	assert_memory_equal(f.sent.data, preface, 24);
	f.n_read = 24;
	assert_int_equal(find_frame(&f, SETTINGS).flags, 0);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	h2_session_free(f->h2);
	buf_fini(&f->sent);
	return 0;
}

static void get_ready(struct fixture *f)
{
	assert_null(receive(f, second, SETTINGS, 0, 0, NULL, 0));
	pump(f);
	assert_int_equal(find_frame(f, SETTINGS).flags, ACK);
	assert_true(h2_session_can_open(f->h2));
}

static void h2_session_opens_no_stream_before_settings(void **state)
{
	struct fixture *f = *state;
	assert_false(h2_session_is_ready(f->h2));
	assert_false(h2_session_can_open(f->h2));
	assert_null(open_stream(f, second));
	assert_string_equal(h2_session_waits_for(f->h2, NULL), "the server's SETTINGS");
	get_ready(f);
	assert_true(h2_session_is_ready(f->h2));
}

/* HPACK: 0x88 is ":status: 200" of the static table; literals otherwise. */
static void h2_session_carries_a_call(void **state)
{
	struct fixture *f = *state;
	get_ready(f);
	struct h2_stream *stream = open_stream(f, second);
	assert_non_null(stream);
	assert_int_equal(h2_session_n_streams(f->h2), 1);
	pump(f);
	struct frame frame = find_frame(f, HEADERS);
	assert_int_equal(frame.stream, 1);
	assert_int_equal(frame.flags, END_HEADERS);
	/* The secret is a literal that is never indexed: 0001xxxx (RFC 7541 §6.2.3). */
	assert_non_null(memmem(frame.payload, frame.n, "\x1f\x08", 2));
	frame = find_frame(f, DATA);
	assert_int_equal(frame.n, 5);
	assert_memory_equal(frame.payload, "hello", 5);
	assert_int_equal(find_frame(f, DATA).flags, END_STREAM);
	assert_string_equal(h2_session_waits_for(f->h2, stream), "the answer");

	assert_null(receive(f, second, HEADERS, END_HEADERS, 1, "\x88\x00\x01x\x01y", 6));
	assert_null(receive(f, second, DATA, 0, 1, "ans", 3));
	assert_null(receive(f, second, DATA, 0, 1, "wer", 3));
	assert_int_equal(f->n_ended, 0);
	assert_null(receive(f, second, HEADERS, END_HEADERS | END_STREAM, 1,
			    "\x00\x0bgrpc-status\x01\x30", 15));
	assert_string_equal(f->headers, ":status=200;x=y;grpc-status=0;");
	assert_string_equal(f->data, "answer");
	assert_int_equal(f->n_blocks, 2);
	assert_int_equal(f->n_ended, 1);
	assert_int_equal(f->end, H2_END_COMPLETE);
	assert_int_equal(h2_session_n_streams(f->h2), 0);
}

static void h2_session_stops_sending_when_the_answer_is_there(void **state)
{
	struct fixture *f = *state;
	static uint8_t large[200000];
	f->body = large;
	f->n_body = sizeof(large);
	get_ready(f);
	assert_non_null(open_stream(f, second));
	pump(f); /* the window of 65535 is full */
	assert_int_equal(f->body_offset, 65535);
	assert_null(receive(f, second, HEADERS, END_HEADERS | END_STREAM, 1, "\x88", 1));
	assert_int_equal(f->end, H2_END_COMPLETE);
	pump(f);
	struct frame frame = find_frame(f, RST_STREAM);
	assert_memory_equal(frame.payload, "\0\0\0\0", 4); /* NO_ERROR */
	assert_int_equal(f->n_ended, 1);
}

static void h2_session_obeys_windows_and_frame_sizes(void **state)
{
	struct fixture *f = *state;
	static uint8_t large[100000];
	f->body = large;
	f->n_body = sizeof(large);
	/* INITIAL_WINDOW_SIZE 1000, MAX_FRAME_SIZE 20000 */
	assert_null(receive(f, second, SETTINGS, 0, 0, "\0\4\0\0\3\xe8\0\5\0\0\x4e\x20", 12));
	struct h2_stream *stream = open_stream(f, second);
	pump(f);
	assert_int_equal(f->body_offset, 1000);
	assert_string_equal(h2_session_waits_for(f->h2, stream),
			    "the server to take more of the request (flow control)");
	/* 50000 more for the stream; the connection has 64535. */
	assert_null(receive(f, second, WINDOW_UPDATE, 0, 1, "\0\0\xc3\x50", 4));
	f->n_read = f->sent.size;
	pump(f);
	assert_int_equal(f->body_offset, 51000);
	/* Frames and their heads of 9 bytes fill TLS records of 16384. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(find_frame(f, DATA).n, 16375);
	assert_int_equal(find_frame(f, DATA).n, 50000 - 3 * 16375);
	/* The window shrinks to 0: 1000 less than nothing. */
	assert_null(receive(f, second, SETTINGS, 0, 0, "\0\4\0\0\0\0", 6));
	assert_null(receive(f, second, WINDOW_UPDATE, 0, 1, "\0\0\3\xe8", 4));
	pump(f);
	assert_int_equal(f->body_offset, 51000);
	assert_null(receive(f, second, WINDOW_UPDATE, 0, 1, "\0\0\0\7", 4));
	pump(f);
	assert_int_equal(f->body_offset, 51007);
}

static void h2_session_counts_streams_as_the_peer_does(void **state)
{
	struct fixture *f = *state;
	assert_null(receive(f, second, SETTINGS, 0, 0, "\0\3\0\0\0\2", 6));
	struct h2_stream *first = open_stream(f, second);
	assert_non_null(first);
	assert_non_null(open_stream(f, second));
	assert_false(h2_session_can_open(f->h2));
	assert_null(open_stream(f, second));
	h2_session_cancel(f->h2, first);
	assert_int_equal(f->n_ended, 0);
	/* Cancelled, but the peer does not know before the frame is out. */
	assert_false(h2_session_can_open(f->h2));
	pump(f);
	struct frame frame = find_frame(f, RST_STREAM);
	assert_memory_equal(frame.payload, "\0\0\0\x8", 4); /* CANCEL */
	assert_true(h2_session_can_open(f->h2));
	assert_null(receive(f, second, SETTINGS, 0, 0, "\0\3\0\0\0\0", 6));
	assert_false(h2_session_can_open(f->h2));
	assert_string_equal(h2_session_waits_for(f->h2, NULL),
			    "the server to allow another stream");
}

static void h2_session_tells_both_kinds_of_goaway(void **state)
{
	struct fixture *f = *state;
	get_ready(f);
	assert_non_null(open_stream(f, second));
	pump(f);
	assert_null(receive(f, second, GOAWAY, 0, 0, "\x7f\xff\xff\xff\0\0\0\0", 8));
	assert_true(h2_session_is_draining(f->h2));
	assert_false(h2_session_can_open(f->h2));
	assert_int_equal(f->n_ended, 0);
	assert_null(receive(f, second, GOAWAY, 0, 0, "\0\0\0\0\0\0\0\xbtoo_many_pings", 22));
	assert_int_equal(f->n_ended, 1);
	assert_int_equal(f->end, H2_END_REFUSED);
	assert_true(h2_session_has_too_many_pings(f->h2));
	assert_string_equal(h2_session_goaway_text(f->h2),
			    "GOAWAY ENHANCE_YOUR_CALM \"too_many_pings\"");
}

static void h2_session_tells_resets_and_losses(void **state)
{
	struct fixture *f = *state;
	get_ready(f);
	assert_non_null(open_stream(f, second));
	pump(f);
	assert_null(receive(f, second, RST_STREAM, 0, 1, "\0\0\0\7", 4));
	assert_int_equal(f->end, H2_END_RESET);
	assert_int_equal(f->code, 7);
	assert_string_equal(f->text, "REFUSED_STREAM");
	assert_non_null(open_stream(f, second));
	h2_session_end(f->h2, "gone");
	assert_int_equal(f->n_ended, 2);
	assert_int_equal(f->end, H2_END_LOST);
	assert_string_equal(f->text, "gone");
}

static void h2_session_resets_an_answer_that_is_not_wanted(void **state)
{
	struct fixture *f = *state;
	get_ready(f);
	assert_non_null(open_stream(f, second));
	pump(f);
	f->refuses_data = true;
	assert_null(receive(f, second, HEADERS, END_HEADERS, 1, "\x88", 1));
	assert_null(receive(f, second, DATA, 0, 1, "x", 1));
	assert_int_equal(f->end, H2_END_STOPPED);
	assert_null(receive(f, second, DATA, 0, 1, "y", 1));
	assert_string_equal(f->data, "x");
	assert_int_equal(f->n_ended, 1);
	pump(f);
	assert_true(has_frame(f, RST_STREAM));
}

static void h2_session_pings_while_streams_are_open(void **state)
{
	struct fixture *f = *state;
	get_ready(f);
	assert_int_equal(h2_session_next_time(f->h2), UINT64_MAX);
	assert_non_null(open_stream(f, 100 * second));
	pump(f);
	/* From when there was a stream, not from the last byte long before. */
	assert_int_equal(h2_session_next_time(f->h2), 160 * second);
	assert_null(h2_session_tick(f->h2, 159 * second));
	pump(f);
	assert_false(has_frame(f, PING));
	/* A byte from the peer puts it off. */
	assert_null(receive(f, 120 * second, WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4));
	assert_int_equal(h2_session_next_time(f->h2), 180 * second);
	assert_null(h2_session_tick(f->h2, 180 * second));
	pump(f);
	assert_int_equal(find_frame(f, PING).flags, 0);
	assert_int_equal(h2_session_next_time(f->h2), 200 * second);
	assert_null(receive(f, 190 * second, PING, ACK, 0, "\0\0\0\0\0\0\0\0", 8));
	assert_int_equal(h2_session_next_time(f->h2), 250 * second);
	assert_null(h2_session_tick(f->h2, 250 * second));
	pump(f);
	struct error *err = h2_session_tick(f->h2, 270 * second);
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_UNAVAILABLE);
	assert_non_null(strstr(error_text(err), "keepalive PING within 20 s"));
	error_free(err);
}

static void h2_session_does_not_ping_after_goaway(void **state)
{
	struct fixture *f = *state;
	get_ready(f);
	assert_non_null(open_stream(f, 100 * second));
	pump(f);
	assert_null(receive(f, 101 * second, GOAWAY, 0, 0, "\x7f\xff\xff\xff\0\0\0\0", 8));
	assert_int_equal(h2_session_next_time(f->h2), UINT64_MAX);
}

static struct error *receive_many(struct fixture *f, unsigned n, uint64_t step_ns, uint8_t type,
				  const void *payload, size_t n_payload)
{
	struct error *err = NULL;
	for (unsigned i = 0; i < n && !err; i++) {
		err = receive(f, 2 * second + i * step_ns, type, 0, 0, payload, n_payload);
		if (!err)
			pump(f);
	}
	return err;
}

static void h2_session_ends_floods_but_not_what_is_slow(void **state)
{
	struct fixture *f = *state;
	get_ready(f);
	/* 50 a second for two minutes are odd, but do no harm. */
	assert_null(receive_many(f, 6000, second / 50, PING, "12345678", 8));
	struct error *err = receive_many(f, 6000, second / 10000, PING, "12345678", 8);
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_LIMIT);
	assert_non_null(strstr(error_text(err), "floods the connection"));
	error_free(err);
	assert_false(h2_session_can_open(f->h2));
}

static void h2_session_ends_floods_of_unknown_frames(void **state)
{
	struct fixture *f = *state;
	static const uint8_t payload[16000];
	get_ready(f);
	struct error *err = receive_many(f, 100, 0, 0xee, payload, sizeof(payload));
	assert_non_null(err);
	assert_non_null(strstr(error_text(err), "bytes that are no answer"));
	error_free(err);
}

static void h2_session_says_what_is_no_http2(void **state)
{
	static const struct {
		const char *bytes, *reason;
		bool is_plaintext;
	} cases[] = {{"HTTP/1.1 404 Not Found\r\n", "it answered \"HTTP/1.1 404 Not Found\"", true},
		     {"\x15\x03\x03\x01\x02\x02\x28zzz", "speaks TLS", true},
		     {"\x15\x03\x03\x01\x02\x02\x28zzz", "does not speak HTTP/2", false},
		     {"220 mail ESMTP\r\n", "it sent \"220 mail ESMTP\"", true}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int by_byte = 0; by_byte < 2; by_byte++) {
			const struct h2_session_config config = {.is_plaintext =
									 cases[i].is_plaintext};
			struct h2_session *h2 = h2_session_new(&config, 0);
			struct error *err = NULL;
			const uint8_t *bytes = (const uint8_t *)cases[i].bytes;
			size_t n = strlen(cases[i].bytes);
			if (!by_byte)
				err = h2_session_receive(h2, bytes, n, 0);
			for (size_t at = 0; at < n && by_byte && !err; at++)
				err = h2_session_receive(h2, bytes + at, 1, 0);
			assert_non_null(err);
			assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
			if (!by_byte)
				assert_non_null(strstr(error_text(err), cases[i].reason));
			error_free(err);
			h2_session_free(h2);
		}
}

static void h2_session_takes_settings_byte_by_byte(void **state)
{
	struct fixture *f = *state;
	static const uint8_t bytes[] = {0, 0, 6, SETTINGS, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1};
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_null(h2_session_receive(f->h2, bytes + i, 1, second));
	assert_true(h2_session_is_ready(f->h2));
}

static void h2_session_ends_with_the_reason(void **state)
{
	struct fixture *f = *state;
	get_ready(f);
	assert_non_null(open_stream(f, second));
	pump(f);
	struct error *err = receive(f, second, WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4);
	const uint8_t *bytes;
	size_t n;
	if (!err) /* nghttp2 may say so with its last frame only */
		err = h2_session_output(f->h2, &bytes, &n);
	if (!err)
		err = h2_session_output(f->h2, &bytes, &n);
	assert_non_null(err);
	assert_non_null(strstr(error_text(err), "broke HTTP/2: "));
	error_free(err);
	h2_session_end(f->h2, "over");
	assert_int_equal(f->n_ended, 1);
}

static void h2_session_bounds_headers(void **state)
{
	struct fixture *f = *state;
	get_ready(f);
	assert_non_null(open_stream(f, second));
	pump(f);
	/* x: 3900 bytes into the table, then one byte for each repetition. */
	static uint8_t block[16000] = {0x88, 0x40, 1, 'x', 0x7f, 0xbd, 0x1d};
	memset(block + 7, 'v', 3900);
	memset(block + 7 + 3900, 0xbe, 20);
	struct error *err = receive(f, second, HEADERS, END_HEADERS, 1, block, 7 + 3900 + 20);
	assert_non_null(err);
	assert_non_null(strstr(error_text(err), "more than 65536 bytes of headers"));
	error_free(err);
}

static void h2_session_says_goodbye(void **state)
{
	struct fixture *f = *state;
	get_ready(f);
	h2_session_say_goodbye(f->h2);
	pump(f);
	assert_int_equal(find_frame(f, GOAWAY).payload[7], 0);
	assert_false(h2_session_can_open(f->h2));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(h2_session_opens_no_stream_before_settings),
		TEST(h2_session_carries_a_call),
		TEST(h2_session_stops_sending_when_the_answer_is_there),
		TEST(h2_session_obeys_windows_and_frame_sizes),
		TEST(h2_session_counts_streams_as_the_peer_does),
		TEST(h2_session_tells_both_kinds_of_goaway),
		TEST(h2_session_tells_resets_and_losses),
		TEST(h2_session_resets_an_answer_that_is_not_wanted),
		TEST(h2_session_pings_while_streams_are_open),
		TEST(h2_session_does_not_ping_after_goaway),
		TEST(h2_session_ends_floods_but_not_what_is_slow),
		TEST(h2_session_ends_floods_of_unknown_frames),
		cmocka_unit_test(h2_session_says_what_is_no_http2),
		TEST(h2_session_takes_settings_byte_by_byte),
		TEST(h2_session_ends_with_the_reason),
		TEST(h2_session_bounds_headers),
		TEST(h2_session_says_goodbye),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
