/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 over nghttp2, which is used here only. It checks the protocol; the budgets are ours. */
#include "forwarder/h2_session.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "forwarder/text_escape.h"

enum {
	OUTPUT_TARGET_BYTES = 64 << 10, /* gathered before it is handed out */
	MAX_DATA_FRAME_BYTES = 128 << 10,
	TLS_RECORD_BYTES = 16384, /* RFC 8446 §5.1 */
	OUTPUT_MAX_BYTES = 1 << 20,
	WINDOW_BYTES = 65535,
	ADVERTISED_HEADER_BYTES = 16 << 10,
	FRAME_HEADER_BYTES = 9,
	FIRST_BYTES = 64,
	NOT_GRPC_NUMBER = 304, /* in the table of explained errors */
	TEXT_BYTES = 256,
	/*
	 * Frames that carry nothing of an answer: so many at once, then so many a second, and some
	 * for each stream and each DATA frame that we send (WINDOW_UPDATEs are the answer to
	 * these).
	 */
	IDLE_FRAMES_BURST = 1000,
	IDLE_FRAMES_PER_SECOND = 100,
	IDLE_FRAMES_PER_STREAM = 10,
	IDLE_FRAMES_PER_DATA = 4,
	IDLE_FRAMES_MAX = 1 << 20,
	/* Bytes that are no DATA of an answer, likewise: frames of unknown types are seen in no
	 * other way. */
	IDLE_BYTES_BURST = 1 << 20,
	IDLE_BYTES_MAX = 1 << 26,
	IDLE_BYTES_PER_SECOND = 64 << 10,
	IDLE_BYTES_PER_STREAM = 16 << 10,
};
static const uint64_t keepalive_timeout_ns = 20 * 1000000000ULL;

struct h2_stream {
	struct h2_session *session;
	const struct h2_stream_ops *ops; /* NULL once it has ended for its owner */
	void *owner;
	int32_t id;
	bool is_request_sent; /* its HEADERS */
	size_t n_header_bytes;
	struct h2_stream *previous, *next;
};

struct h2_session {
	nghttp2_session *nghttp2;
	struct h2_session_config config;
	struct h2_stream *streams;
	size_t n_streams; /* as the peer counts: with those reset but not closed yet */
	size_t n_owned;
	struct buf output;
	bool is_handed_out; /* output was, and is cleared at the next call */
	uint8_t first[FIRST_BYTES];
	size_t n_first;
	bool is_begun; /* the first frame is SETTINGS */
	bool is_ready;
	bool is_draining;
	bool has_goaway;
	bool has_too_many_pings;
	bool is_broken;
	int32_t goaway_last_id;
	char goaway_text[TEXT_BYTES];
	char detail[TEXT_BYTES]; /* what nghttp2 says about the last fault of the peer */
	struct error *fault;	 /* found by a callback */
	int64_t n_idle_allowed, n_idle_bytes_allowed;
	uint64_t idle_time_ns;
	uint64_t now_ns;
	uint64_t last_read_ns;
	uint64_t active_since_ns;
	uint64_t ping_sent_ns; /* 0 = none under way */
};

const char *h2_session_error_name(uint32_t code)
{
	static const char *const names[] = {"NO_ERROR",
					    "PROTOCOL_ERROR",
					    "INTERNAL_ERROR",
					    "FLOW_CONTROL_ERROR",
					    "SETTINGS_TIMEOUT",
					    "STREAM_CLOSED",
					    "FRAME_SIZE_ERROR",
					    "REFUSED_STREAM",
					    "CANCEL",
					    "COMPRESSION_ERROR",
					    "CONNECT_ERROR",
					    "ENHANCE_YOUR_CALM",
					    "INADEQUATE_SECURITY",
					    "HTTP_1_1_REQUIRED"};
	return code < ARRAY_LEN(names) ? names[code] : "an unknown error code";
}

/* Streams */

static void finish(struct h2_stream *stream, enum h2_end end, uint32_t code, const char *text)
{
	const struct h2_stream_ops *ops = stream->ops;
	if (!ops)
		return;
	stream->ops = NULL;
	stream->session->n_owned--;
	ops->ended(stream->owner, end, code, text);
}

static void unlink_stream(struct h2_stream *stream)
{
	struct h2_session *session = stream->session;
	if (stream->previous)
		stream->previous->next = stream->next;
	else
		session->streams = stream->next;
	if (stream->next)
		stream->next->previous = stream->previous;
	session->n_streams--;
	mem_free(stream);
}

static struct h2_stream *find(nghttp2_session *nghttp2, int32_t id)
{
	return nghttp2_session_get_stream_user_data(nghttp2, id);
}

/* Nothing more is wanted from the peer: the stream ends for us, and for it soon. */
static void stop(struct h2_stream *stream, enum h2_end end, uint32_t code)
{
	finish(stream, end, 0, "");
	if (nghttp2_submit_rst_stream(stream->session->nghttp2, NGHTTP2_FLAG_NONE, stream->id,
				      code) != 0)
		stream->session->is_broken = true; /* no memory left */
}

/* The budget against floods */

static void allow_idle(struct h2_session *session, int64_t n_frames, int64_t n_bytes)
{
	if (session->n_idle_allowed < IDLE_FRAMES_MAX)
		session->n_idle_allowed += n_frames;
	if (session->n_idle_bytes_allowed < IDLE_BYTES_MAX)
		session->n_idle_bytes_allowed += n_bytes;
}

static void refill(int64_t *budget, uint64_t n, int64_t burst)
{
	if (*budget < burst)
		*budget = (uint64_t)(burst - *budget) > n ? *budget + (int64_t)n : burst;
}

static void refill_idle(struct h2_session *session)
{
	static const uint64_t step_ns = 1000000000 / IDLE_FRAMES_PER_SECOND;
	uint64_t n = (session->now_ns - session->idle_time_ns) / step_ns;
	session->idle_time_ns += n * step_ns;
	refill(&session->n_idle_allowed, n, IDLE_FRAMES_BURST);
	refill(&session->n_idle_bytes_allowed, n * (IDLE_BYTES_PER_SECOND / IDLE_FRAMES_PER_SECOND),
	       IDLE_BYTES_BURST);
}

static const char *frame_name(uint8_t type)
{
	static const char *const names[] = {
		"DATA",		"HEADERS", "PRIORITY", "RST_STREAM",	"SETTINGS",
		"PUSH_PROMISE", "PING",	   "GOAWAY",   "WINDOW_UPDATE", "CONTINUATION"};
	return type < ARRAY_LEN(names) ? names[type] : "unknown";
}

static int fault(struct h2_session *session, struct error *err)
{
	if (session->fault)
		error_free(err);
	else
		session->fault = err;
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* Callbacks of nghttp2 */

static int on_begin_frame(nghttp2_session *nghttp2, const nghttp2_frame_hd *frame, void *context)
{
	struct h2_session *session = context;
	/* Until it has acknowledged our SETTINGS a server may, but no gRPC server does. */
	if (frame->type == NGHTTP2_PUSH_PROMISE)
		return fault(session,
			     error_new(ERROR_BAD_DATA, "the server broke HTTP/2: it pushes "
						       "what nobody asked for"));
	bool carries = frame->type == NGHTTP2_DATA &&
		       (frame->length > 0 || (frame->flags & NGHTTP2_FLAG_END_STREAM));
	struct h2_stream *stream = carries ? find(nghttp2, frame->stream_id) : NULL;
	if (stream && stream->ops)
		return 0;
	if (session->n_idle_allowed-- > 0)
		return 0;
	return fault(session, error_new(ERROR_LIMIT,
					"the server floods the connection with frames that carry "
					"nothing (last: %s)",
					frame_name(frame->type)));
}

static int on_begin_headers(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *context)
{
	(void)context;
	struct h2_stream *stream = find(nghttp2, frame->hd.stream_id);
	if (stream)
		stream->n_header_bytes = 0;
	return 0;
}

static int on_header(nghttp2_session *nghttp2, const nghttp2_frame *frame, const uint8_t *name,
		     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags,
		     void *context)
{
	(void)flags;
	struct h2_stream *stream = find(nghttp2, frame->hd.stream_id);
	if (!stream)
		return 0;
	stream->n_header_bytes += n_name + n_value + 32;
	if (stream->n_header_bytes > H2_SESSION_MAX_HEADER_BYTES)
		return fault(context,
			     error_new(ERROR_LIMIT, "the server sent more than %d bytes of headers",
				       H2_SESSION_MAX_HEADER_BYTES));
	if (stream->ops)
		stream->ops->header(stream->owner, (const char *)name, n_name, (const char *)value,
				    n_value);
	return 0;
}

static void on_goaway(struct h2_session *session, const nghttp2_goaway *goaway)
{
	char debug[128];
	text_escape(goaway->opaque_data, goaway->opaque_data_len, debug, sizeof(debug));
	session->is_draining = true;
	session->has_goaway = true;
	session->goaway_last_id = goaway->last_stream_id;
	static const char pings[] = "too_many_pings";
	if (goaway->error_code == NGHTTP2_ENHANCE_YOUR_CALM &&
	    goaway->opaque_data_len == sizeof(pings) - 1 &&
	    memcmp(goaway->opaque_data, pings, sizeof(pings) - 1) == 0)
		session->has_too_many_pings = true;
	snprintf(session->goaway_text, sizeof(session->goaway_text), "GOAWAY %s%s%s%s",
		 h2_session_error_name(goaway->error_code), debug[0] ? " \"" : "", debug,
		 debug[0] ? "\"" : "");
}

static int on_frame_recv(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *context)
{
	struct h2_session *session = context;
	switch (frame->hd.type) {
	case NGHTTP2_SETTINGS:
		if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
			session->is_ready = true;
		return 0;
	case NGHTTP2_PING:
		if (frame->hd.flags & NGHTTP2_FLAG_ACK)
			session->ping_sent_ns = 0;
		return 0;
	case NGHTTP2_GOAWAY:
		on_goaway(session, &frame->goaway);
		return 0;
	default:
		break;
	}
	struct h2_stream *stream = find(nghttp2, frame->hd.stream_id);
	if (!stream)
		return 0;
	if (frame->hd.type == NGHTTP2_RST_STREAM) {
		uint32_t code = frame->rst_stream.error_code;
		finish(stream, H2_END_RESET, code, h2_session_error_name(code));
		return 0;
	}
	if (frame->hd.type == NGHTTP2_HEADERS && stream->ops)
		stream->ops->headers_end(stream->owner);
	bool is_end = (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
		      (frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
	if (!is_end)
		return 0;
	/* An answer before our request is whole: the rest of it is not wanted. */
	if (nghttp2_session_get_stream_local_close(nghttp2, stream->id) == 0)
		stop(stream, H2_END_COMPLETE, NGHTTP2_NO_ERROR);
	else
		finish(stream, H2_END_COMPLETE, 0, "");
	return 0;
}

static int on_data_chunk(nghttp2_session *nghttp2, uint8_t flags, int32_t id, const uint8_t *bytes,
			 size_t n, void *context)
{
	(void)flags;
	struct h2_session *session = context;
	struct h2_stream *stream = find(nghttp2, id);
	if (stream && stream->ops)
		allow_idle(session, 0, (int64_t)n + FRAME_HEADER_BYTES);
	if (stream && stream->ops && !stream->ops->data(stream->owner, bytes, n))
		stop(stream, H2_END_STOPPED, NGHTTP2_CANCEL);
	return 0;
}

static int on_stream_close(nghttp2_session *nghttp2, int32_t id, uint32_t code, void *context)
{
	struct h2_session *session = context;
	struct h2_stream *stream = find(nghttp2, id);
	if (!stream)
		return 0;
	/* What ended in another way is no longer owned: this is GOAWAY's doing, or a fault. */
	if (session->has_goaway && id > session->goaway_last_id)
		finish(stream, H2_END_REFUSED, code, session->goaway_text);
	else
		finish(stream, H2_END_BROKEN, code,
		       session->detail[0] ? session->detail : h2_session_error_name(code));
	unlink_stream(stream);
	return 0;
}

static int on_invalid_frame(nghttp2_session *nghttp2, const nghttp2_frame *frame, int code,
			    void *context)
{
	(void)nghttp2;
	struct h2_session *session = context;
	if (!session->detail[0])
		snprintf(session->detail, sizeof(session->detail), "%s in a %s frame",
			 nghttp2_strerror(code), frame_name(frame->hd.type));
	return 0;
}

static int on_error(nghttp2_session *nghttp2, int code, const char *text, size_t n, void *context)
{
	(void)nghttp2;
	(void)code;
	struct h2_session *session = context;
	text_escape(text, n, session->detail, sizeof(session->detail));
	return 0;
}

static int on_frame_send(nghttp2_session *nghttp2, const nghttp2_frame *frame, void *context)
{
	struct h2_session *session = context;
	if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) {
		/* nghttp2 ends a session in this way, and gives the reason to the peer. */
		session->is_broken = true;
		if (!session->detail[0])
			text_escape(frame->goaway.opaque_data, frame->goaway.opaque_data_len,
				    session->detail, sizeof(session->detail));
		if (!session->detail[0])
			snprintf(session->detail, sizeof(session->detail), "%s",
				 h2_session_error_name(frame->goaway.error_code));
	}
	if (frame->hd.type == NGHTTP2_HEADERS) {
		struct h2_stream *stream = find(nghttp2, frame->hd.stream_id);
		if (stream)
			stream->is_request_sent = true;
	}
	return 0;
}

static ssize_t data_length(nghttp2_session *nghttp2, uint8_t type, int32_t id,
			   int32_t session_window, int32_t stream_window, uint32_t max_frame,
			   void *context)
{
	(void)nghttp2;
	(void)type;
	(void)id;
	(void)context;
	uint32_t n = max_frame < MAX_DATA_FRAME_BYTES ? max_frame : MAX_DATA_FRAME_BYTES;
	/* Frames that fill TLS records leave no small ones behind them. */
	if (n + FRAME_HEADER_BYTES >= TLS_RECORD_BYTES)
		n = (n + FRAME_HEADER_BYTES) / TLS_RECORD_BYTES * TLS_RECORD_BYTES -
		    FRAME_HEADER_BYTES;
	if (n > (uint32_t)session_window)
		n = (uint32_t)session_window;
	return n < (uint32_t)stream_window ? (ssize_t)n : stream_window;
}

static ssize_t read_data(nghttp2_session *nghttp2, int32_t id, uint8_t *out, size_t length,
			 uint32_t *flags, nghttp2_data_source *source, void *context)
{
	(void)nghttp2;
	(void)id;
	(void)out;
	(void)context;
	struct h2_stream *stream = source->ptr;
	size_t available = stream->ops ? stream->ops->available(stream->owner) : 0;
	if (available == 0) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		return 0;
	}
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	return (ssize_t)(available < length ? available : length);
}

static int send_data(nghttp2_session *nghttp2, nghttp2_frame *frame, const uint8_t *header,
		     size_t length, nghttp2_data_source *source, void *context)
{
	(void)nghttp2;
	(void)frame; /* never padded: there is no select_padding callback */
	struct h2_session *session = context;
	struct h2_stream *stream = source->ptr;
	if (session->output.size >= OUTPUT_TARGET_BYTES)
		return NGHTTP2_ERR_WOULDBLOCK;
	if (!stream->ops)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	struct error *err = buf_reserve(&session->output, FRAME_HEADER_BYTES + length);
	if (err)
		return fault(session, err);
	uint8_t *p = session->output.data + session->output.size;
	memcpy(p, header, FRAME_HEADER_BYTES);
	stream->ops->read(stream->owner, p + FRAME_HEADER_BYTES, length);
	session->output.size += FRAME_HEADER_BYTES + length;
	allow_idle(session, IDLE_FRAMES_PER_DATA, IDLE_FRAMES_PER_DATA * (FRAME_HEADER_BYTES + 4));
	return 0;
}

/* The session */

static nghttp2_session *make(struct h2_session *session)
{
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *option = NULL;
	nghttp2_session *nghttp2 = NULL;
	if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0) {
		nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
		nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks,
									on_begin_headers);
		nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
		nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
		nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
		nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks,
									     on_invalid_frame);
		nghttp2_session_callbacks_set_error_callback2(callbacks, on_error);
		nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
		nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks,
									       data_length);
		nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
		nghttp2_option_set_peer_max_concurrent_streams(option, 100);
		/* An error leaves NULL: only no memory left makes one. */
		if (nghttp2_session_client_new2(&nghttp2, callbacks, session, option) != 0)
			nghttp2 = NULL;
	}
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	return nghttp2;
}

struct h2_session *h2_session_new(const struct h2_session_config *config, uint64_t now_ns)
{
	struct h2_session *session = mem_zalloc(1, sizeof(*session));
	session->config = *config;
	session->now_ns = session->last_read_ns = session->idle_time_ns = now_ns;
	session->n_idle_allowed = IDLE_FRAMES_BURST;
	session->n_idle_bytes_allowed = IDLE_BYTES_BURST;
	buf_init(&session->output, OUTPUT_MAX_BYTES);
	session->nghttp2 = make(session);
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, ADVERTISED_HEADER_BYTES},
	};
	session->is_broken =
		!session->nghttp2 || nghttp2_submit_settings(session->nghttp2, NGHTTP2_FLAG_NONE,
							     settings, ARRAY_LEN(settings)) != 0;
	return session;
}

void h2_session_free(struct h2_session *session)
{
	if (!session)
		return;
	h2_session_end(session, "");
	while (session->streams)
		unlink_stream(session->streams);
	nghttp2_session_del(session->nghttp2);
	/* Holds headers with secrets. */
	if (session->output.data)
		explicit_bzero(session->output.data, session->output.capacity);
	buf_fini(&session->output);
	error_free(session->fault);
	mem_free(session);
}

void h2_session_end(struct h2_session *session, const char *text)
{
	/* ended may not call back, so the list stays as it is. */
	for (struct h2_stream *stream = session->streams; stream; stream = stream->next)
		finish(stream, H2_END_LOST, 0, text);
}

static struct error *take_fault(struct h2_session *session)
{
	struct error *err = session->fault;
	session->fault = NULL;
	session->is_broken = true;
	session->is_draining = true;
	if (err)
		return err;
	if (!session->nghttp2)
		return error_new(ERROR_LIMIT, "no memory for an HTTP/2 session");
	return error_new(ERROR_BAD_DATA, "the server broke HTTP/2: %s",
			 session->detail[0] ? session->detail : "no details");
}

/* Appends to output until the target is reached. */
static struct error *fill_output(struct h2_session *session)
{
	while (session->output.size < OUTPUT_TARGET_BYTES) {
		const uint8_t *bytes;
		ssize_t n = nghttp2_session_mem_send(session->nghttp2, &bytes);
		if (n < 0) {
			if (!session->fault)
				session->fault = error_new(ERROR_LIMIT, "HTTP/2: %s",
							   nghttp2_strerror((int)n));
			return take_fault(session);
		}
		if (n == 0)
			return NULL;
		struct error *err = buf_append(&session->output, bytes, (size_t)n);
		if (err)
			return err;
	}
	return NULL;
}

static void begin_call(struct h2_session *session)
{
	if (!session->is_handed_out)
		return;
	buf_clear(&session->output);
	session->is_handed_out = false;
}

struct error *h2_session_output(struct h2_session *session, const uint8_t **bytes_out,
				size_t *n_out)
{
	begin_call(session);
	*bytes_out = NULL;
	*n_out = 0;
	if (!session->nghttp2 || session->fault || session->is_broken)
		return take_fault(session);
	struct error *err = fill_output(session);
	if (err)
		return err;
	*bytes_out = session->output.data;
	*n_out = session->output.size;
	session->is_handed_out = true;
	return NULL;
}

/* The first frame of a server is SETTINGS; what else can be there has likely reasons. */
static struct error *check_first(const struct h2_session *session)
{
	const uint8_t *first = session->first;
	bool is_settings = first[3] == NGHTTP2_SETTINGS && first[4] == 0 && first[0] == 0 &&
			   (((uint32_t)first[1] << 8 | first[2]) % 6) == 0 &&
			   memcmp(first + 5, "\0\0\0\0", 4) == 0;
	if (is_settings)
		return NULL;
	char shown[FIRST_BYTES + 8];
	size_t n_line = 0;
	while (n_line < session->n_first && first[n_line] != '\r' && first[n_line] != '\n')
		n_line++;
	text_escape(first, n_line, shown, sizeof(shown));
	struct error *err;
	if (memcmp(first, "HTTP/1", 6) == 0)
		err = error_new(ERROR_BAD_DATA,
				"the server speaks HTTP/1, not HTTP/2 as gRPC needs; it answered "
				"\"%s\"",
				shown);
	else if (session->config.is_plaintext && first[0] == 0x15 && first[1] == 0x03)
		err = error_new(ERROR_BAD_DATA,
				"the server speaks TLS, and plaintext was asked for (insecure)");
	else
		err = error_new(ERROR_BAD_DATA, "the server does not speak HTTP/2; it sent \"%s\"",
				shown);
	return error_number(err, NOT_GRPC_NUMBER);
}

/* false: the session is at its end. */
static bool feed(struct h2_session *session, const uint8_t *bytes, size_t n)
{
	session->n_idle_bytes_allowed -= (int64_t)n;
	ssize_t used = n ? nghttp2_session_mem_recv(session->nghttp2, bytes, n) : 0;
	if (used == NGHTTP2_ERR_FLOODED)
		(void)fault(session, error_new(ERROR_LIMIT, "the server floods the connection with "
							    "PING or SETTINGS frames"));
	else if (used >= 0 && session->n_idle_bytes_allowed < 0)
		(void)fault(session, error_new(ERROR_LIMIT, "the server floods the connection with "
							    "bytes that are no answer"));
	else if (used < 0 && !session->detail[0])
		snprintf(session->detail, sizeof(session->detail), "%s",
			 nghttp2_strerror((int)used));
	return used >= 0 && !session->fault;
}

struct error *h2_session_receive(struct h2_session *session, const uint8_t *bytes, size_t n,
				 uint64_t now_ns)
{
	begin_call(session);
	session->now_ns = now_ns;
	session->last_read_ns = now_ns;
	session->ping_sent_ns = 0;
	session->detail[0] = 0;
	refill_idle(session);
	if (session->is_broken || !session->nghttp2)
		return take_fault(session);
	size_t used = 0;
	if (!session->is_begun) {
		size_t room = sizeof(session->first) - session->n_first;
		used = n < room ? n : room;
		memcpy(session->first + session->n_first, bytes, used);
		session->n_first += used;
		if (session->n_first < FRAME_HEADER_BYTES)
			return NULL;
		struct error *err = check_first(session);
		if (err) {
			session->is_broken = session->is_draining = true;
			return err;
		}
		session->is_begun = true;
		bytes += used;
		n -= used;
		if (!feed(session, session->first, session->n_first))
			return take_fault(session);
	}
	if (!feed(session, bytes, n))
		return take_fault(session);
	/* A fault of the connection shows as the GOAWAY that nghttp2 wants to send. */
	if (session->detail[0]) {
		struct error *err = fill_output(session);
		if (err)
			return err;
	}
	return session->is_broken ? take_fault(session) : NULL;
}

/* Keepalive */

uint64_t h2_session_next_time(const struct h2_session *session)
{
	if (session->ping_sent_ns)
		return session->ping_sent_ns + keepalive_timeout_ns;
	if (!session->config.keepalive_ns || session->n_owned == 0 || session->is_draining)
		return UINT64_MAX;
	uint64_t since = session->last_read_ns > session->active_since_ns
				 ? session->last_read_ns
				 : session->active_since_ns;
	return since + session->config.keepalive_ns;
}

struct error *h2_session_tick(struct h2_session *session, uint64_t now_ns)
{
	begin_call(session);
	session->now_ns = now_ns;
	if (now_ns < h2_session_next_time(session))
		return NULL;
	if (session->ping_sent_ns) {
		session->is_draining = true;
		return error_new(ERROR_UNAVAILABLE,
				 "the server did not answer a keepalive PING within 20 s");
	}
	if (nghttp2_submit_ping(session->nghttp2, NGHTTP2_FLAG_NONE, NULL) != 0)
		return take_fault(session);
	session->ping_sent_ns = now_ns;
	return NULL;
}

/* Opening and ending */

bool h2_session_is_ready(const struct h2_session *session)
{
	return session->is_ready;
}

bool h2_session_can_open(const struct h2_session *session)
{
	if (!session->is_ready || session->is_draining || session->is_broken ||
	    session->n_streams >= H2_SESSION_MAX_STREAMS ||
	    !nghttp2_session_check_request_allowed(session->nghttp2))
		return false;
	return session->n_streams <
	       nghttp2_session_get_remote_settings(session->nghttp2,
						   NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

struct h2_stream *h2_session_open(struct h2_session *session, const struct request_header *headers,
				  size_t n, const struct h2_stream_ops *ops, void *owner,
				  uint64_t now_ns)
{
	begin_call(session);
	if (!h2_session_can_open(session))
		return NULL;
	nghttp2_nv *list = mem_alloc(n * sizeof(*list));
	for (size_t i = 0; i < n; i++)
		list[i] = (nghttp2_nv){
			.name = (uint8_t *)(uintptr_t)headers[i].name,
			.namelen = headers[i].n_name,
			.value = (uint8_t *)(uintptr_t)headers[i].value,
			.valuelen = headers[i].n_value,
			/* Not copied: they are sent before this function returns. */
			.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE |
				 (headers[i].is_unindexed ? NGHTTP2_NV_FLAG_NO_INDEX : 0),
		};
	struct h2_stream *stream = mem_zalloc(1, sizeof(*stream));
	*stream = (struct h2_stream){.session = session, .ops = ops, .owner = owner};
	nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = read_data};
	stream->id = nghttp2_submit_request(session->nghttp2, NULL, list, n, &provider, stream);
	if (stream->id < 0) {
		/* Stream ids are used up, or no memory is left. */
		session->is_draining = true;
		mem_free(list);
		mem_free(stream);
		return NULL;
	}
	stream->next = session->streams;
	if (stream->next)
		stream->next->previous = stream;
	session->streams = stream;
	session->n_streams++;
	if (session->n_owned++ == 0)
		session->active_since_ns = now_ns;
	allow_idle(session, IDLE_FRAMES_PER_STREAM, IDLE_BYTES_PER_STREAM);
	struct error *err = NULL;
	while (!err && !stream->is_request_sent) {
		const uint8_t *bytes;
		ssize_t n_bytes = nghttp2_session_mem_send(session->nghttp2, &bytes);
		if (n_bytes <= 0)
			break;
		err = buf_append(&session->output, bytes, (size_t)n_bytes);
	}
	mem_free(list);
	if (!stream->is_request_sent) {
		session->is_broken = session->is_draining = true;
		session->fault =
			err ? err : error_new(ERROR_LIMIT, "cannot send a request's headers");
	} else {
		error_free(err);
	}
	return stream;
}

void h2_session_cancel(struct h2_session *session, struct h2_stream *stream)
{
	begin_call(session);
	if (!stream->ops)
		return;
	stream->ops = NULL;
	session->n_owned--;
	if (nghttp2_submit_rst_stream(session->nghttp2, NGHTTP2_FLAG_NONE, stream->id,
				      NGHTTP2_CANCEL) != 0)
		session->is_broken = true;
}

bool h2_session_is_draining(const struct h2_session *session)
{
	return session->is_draining;
}

void h2_session_drain(struct h2_session *session)
{
	session->is_draining = true;
}

size_t h2_session_n_streams(const struct h2_session *session)
{
	return session->n_owned;
}

bool h2_session_has_too_many_pings(const struct h2_session *session)
{
	return session->has_too_many_pings;
}

const char *h2_session_goaway_text(const struct h2_session *session)
{
	return session->goaway_text;
}

const char *h2_session_waits_for(const struct h2_session *session, const struct h2_stream *stream)
{
	if (!session->is_ready)
		return "the server's SETTINGS";
	if (!stream)
		return "the server to allow another stream";
	if (nghttp2_session_get_stream_local_close(session->nghttp2, stream->id) == 0)
		return nghttp2_session_get_remote_window_size(session->nghttp2) <= 0 ||
				       nghttp2_session_get_stream_remote_window_size(
					       session->nghttp2, stream->id) <= 0
			       ? "the server to take more of the request (flow control)"
			       : "the connection to take more of the request";
	return "the answer";
}

uint64_t h2_session_last_read_ns(const struct h2_session *session)
{
	return session->last_read_ns;
}

void h2_session_say_goodbye(struct h2_session *session)
{
	begin_call(session);
	session->is_draining = true;
	if (session->nghttp2 && nghttp2_submit_goaway(session->nghttp2, NGHTTP2_FLAG_NONE, 0,
						      NGHTTP2_NO_ERROR, NULL, 0) != 0)
		session->is_broken = true;
}
