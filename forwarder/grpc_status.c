/* SPDX-License-Identifier: Apache-2.0 */
/* What peers say about a failed call, read leniently: a bad hint must not hide the failure. */
#include "forwarder/grpc_status.h"

#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "base/cursor.h"
#include "proto/protobuf_wire.h"

static const uint64_t second_ns = 1000000000;
static const uint64_t max_delay_s = 366 * 86400ULL;

static const char *const names[GRPC_CODE_N] = {
	[GRPC_OK] = "OK",
	[GRPC_CANCELLED] = "CANCELLED",
	[GRPC_UNKNOWN] = "UNKNOWN",
	[GRPC_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
	[GRPC_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
	[GRPC_NOT_FOUND] = "NOT_FOUND",
	[GRPC_ALREADY_EXISTS] = "ALREADY_EXISTS",
	[GRPC_PERMISSION_DENIED] = "PERMISSION_DENIED",
	[GRPC_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
	[GRPC_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
	[GRPC_ABORTED] = "ABORTED",
	[GRPC_OUT_OF_RANGE] = "OUT_OF_RANGE",
	[GRPC_UNIMPLEMENTED] = "UNIMPLEMENTED",
	[GRPC_INTERNAL] = "INTERNAL",
	[GRPC_UNAVAILABLE] = "UNAVAILABLE",
	[GRPC_DATA_LOSS] = "DATA_LOSS",
	[GRPC_UNAUTHENTICATED] = "UNAUTHENTICATED",
};

const char *grpc_code_name(enum grpc_code code)
{
	return code >= 0 && code < GRPC_CODE_N ? names[code] : names[GRPC_UNKNOWN];
}

bool grpc_status_parse(const char *text, size_t n, enum grpc_code *out)
{
	*out = GRPC_UNKNOWN;
	if (n < 1 || n > 2 || (n == 2 && text[0] == '0'))
		return false;
	int value = 0;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (text[i] - '0');
	}
	if (value >= GRPC_CODE_N)
		return false;
	*out = (enum grpc_code)value;
	return true;
}

enum grpc_code grpc_status_of_http(int http_status)
{
	switch (http_status) {
	case 400:
	case 431:
		return GRPC_INTERNAL;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 403:
		return GRPC_PERMISSION_DENIED;
	case 404:
		return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return GRPC_UNAVAILABLE;
	default:
		return GRPC_UNKNOWN;
	}
}

enum grpc_code grpc_status_of_h2(uint32_t h2_error)
{
	/* Numbers of RFC 9113 §7. */
	switch (h2_error) {
	case 0x7: /* REFUSED_STREAM */
		return GRPC_UNAVAILABLE;
	case 0x8: /* CANCEL */
		return GRPC_CANCELLED;
	case 0xb: /* ENHANCE_YOUR_CALM */
		return GRPC_RESOURCE_EXHAUSTED;
	case 0xc: /* INADEQUATE_SECURITY */
		return GRPC_PERMISSION_DENIED;
	default:
		return GRPC_INTERNAL;
	}
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t grpc_status_percent_decode(const char *text, size_t n, char *out)
{
	size_t written = 0;
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '%' && n - i > 2) {
			int high = hex_digit(text[i + 1]);
			int low = hex_digit(text[i + 2]);
			if (high >= 0 && low >= 0) {
				out[written++] = (char)(high << 4 | low);
				i += 2;
				continue;
			}
		}
		out[written++] = text[i];
	}
	return written;
}

/* One field of a message: its number, and its value as an integer or as bytes. */
struct field {
	uint64_t number;
	enum protobuf_wire_type type;
	uint64_t value;
	struct cursor bytes;
};

/* false at the end, and for what is no protobuf (c is bad then). */
static bool next_field(struct cursor *c, struct field *out)
{
	if (cursor_left(c) == 0)
		return false;
	uint64_t key = protobuf_wire_get(c);
	*out = (struct field){.number = key >> 3, .type = (enum protobuf_wire_type)(key & 7)};
	switch (key & 7) {
	case PROTOBUF_WIRE_VARINT:
		out->value = protobuf_wire_get(c);
		break;
	case PROTOBUF_WIRE_FIXED64:
		cursor_skip(c, 8);
		break;
	case PROTOBUF_WIRE_BYTES: {
		uint64_t size = protobuf_wire_get(c);
		if (size > cursor_left(c))
			c->is_bad = true;
		else
			out->bytes = cursor_sub(c, (size_t)size);
		break;
	}
	case PROTOBUF_WIRE_FIXED32:
		cursor_skip(c, 4);
		break;
	default:
		c->is_bad = true;
	}
	return cursor_is_ok(c);
}

/* google.protobuf.Duration: 1 seconds int64, 2 nanos int32. */
static bool read_duration(struct cursor c, uint64_t *ns_out)
{
	int64_t seconds = 0;
	int64_t nanos = 0;
	struct field field;
	while (next_field(&c, &field)) {
		if (field.type != PROTOBUF_WIRE_VARINT)
			continue;
		if (field.number == 1)
			seconds = (int64_t)field.value;
		else if (field.number == 2)
			nanos = (int32_t)field.value;
	}
	if (!cursor_is_ok(&c))
		return false;
	*ns_out = 0;
	if (seconds < 0 || nanos < 0 || nanos >= (int64_t)second_ns)
		return true;
	if ((uint64_t)seconds > max_delay_s)
		seconds = (int64_t)max_delay_s;
	*ns_out = (uint64_t)seconds * second_ns + (uint64_t)nanos;
	return true;
}

/* google.rpc.RetryInfo: 1 retry_delay Duration. Without one the delay is 0. */
static bool read_retry_info(struct cursor c, uint64_t *ns_out)
{
	*ns_out = 0;
	struct field field;
	while (next_field(&c, &field))
		if (field.number == 1 && field.type == PROTOBUF_WIRE_BYTES &&
		    !read_duration(field.bytes, ns_out))
			return false;
	return cursor_is_ok(&c);
}

/* google.protobuf.Any: 1 type_url, 2 value. */
static bool read_any(struct cursor c, uint64_t *ns_out)
{
	static const char type[] = "/google.rpc.RetryInfo";
	bool is_retry_info = false;
	struct cursor value = cursor_make(NULL, 0, false);
	struct field field;
	while (next_field(&c, &field)) {
		if (field.type != PROTOBUF_WIRE_BYTES)
			continue;
		size_t n = cursor_left(&field.bytes);
		if (field.number == 1)
			is_retry_info = n >= sizeof(type) - 1 &&
					memcmp(field.bytes.end - (sizeof(type) - 1), type,
					       sizeof(type) - 1) == 0;
		else if (field.number == 2)
			value = field.bytes;
	}
	return cursor_is_ok(&c) && is_retry_info && read_retry_info(value, ns_out);
}

bool grpc_status_retry_info(const uint8_t *details, size_t n, uint64_t *delay_ns_out)
{
	/* google.rpc.Status: 1 code, 2 message, 3 repeated Any details. */
	struct cursor c = cursor_make(details, n, false);
	struct field field;
	while (next_field(&c, &field)) {
		uint64_t ns;
		if (field.number == 3 && field.type == PROTOBUF_WIRE_BYTES &&
		    read_any(field.bytes, &ns)) {
			*delay_ns_out = ns;
			return true;
		}
	}
	return false;
}

bool grpc_status_retry_after(const char *text, size_t n, uint64_t wall_ns, uint64_t *delay_ns_out)
{
	char copy[64];
	if (n == 0 || n >= sizeof(copy))
		return false;
	memcpy(copy, text, n);
	copy[n] = 0;
	size_t n_digits = strspn(copy, "0123456789");
	if (n_digits == n) {
		uint64_t seconds = 0;
		for (size_t i = 0; i < n && seconds <= max_delay_s; i++)
			seconds = seconds * 10 + (uint64_t)(copy[i] - '0');
		if (seconds > max_delay_s)
			seconds = max_delay_s;
		*delay_ns_out = seconds * second_ns;
		return true;
	}
	static const char *const formats[] = {"%a, %d %b %Y %H:%M:%S GMT",
					      "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"};
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		struct tm tm = {0};
		const char *end = strptime(copy, formats[i], &tm);
		if (!end || *end)
			continue;
		time_t when = timegm(&tm);
		int64_t delay = (int64_t)when - (int64_t)(wall_ns / second_ns);
		if (delay < 0)
			delay = 0;
		if ((uint64_t)delay > max_delay_s)
			delay = (int64_t)max_delay_s;
		*delay_ns_out = (uint64_t)delay * second_ns;
		return true;
	}
	return false;
}
