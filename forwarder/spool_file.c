/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a spool file: laid out in spool_file.h. */
#include "forwarder/spool_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <xxhash.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/mem.h"

enum {
	HEADER_BYTES = 64,
	ENTRY_BYTES = 72,
	TRAILER_BYTES = 40,
	ALIGNMENT = 8,
	SCAN_BLOCK = 1 << 16,
	SUM_BYTES = 8,
};
static const char header_magic[8] = "PPSPL\r\n";
static const char trailer_magic[8] = "PPSPE\r\n";
static const uint32_t entry_magic = 0x51525050; /* "PPRQ" */

static uint64_t sum(uint64_t salt, const void *p, size_t n)
{
	return XXH3_64bits_withSeed(p, n, salt);
}

static uint64_t payload_sum(uint64_t salt, const void *note, size_t n_note, const void *message,
			    size_t n)
{
	if (!n_note)
		return sum(salt, message, n);
	return sum(sum(salt, note, n_note), message, n);
}

static uint8_t *put_u32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static uint8_t *put_u64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

/* Bytes that a request takes in the file, its header included. */
static uint64_t span(uint64_t n_note, uint64_t n_message)
{
	return (ENTRY_BYTES + n_note + n_message + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void seal(uint8_t *block, size_t n, uint64_t salt)
{
	put_u64(block + n - SUM_BYTES, sum(salt, block, n - SUM_BYTES));
}

static bool is_sealed(const uint8_t *block, size_t n, uint64_t salt)
{
	uint64_t stored;
	memcpy(&stored, block + n - SUM_BYTES, SUM_BYTES);
	return stored == sum(salt, block, n - SUM_BYTES);
}

/*
 * Header: magic, version, content, salt, time, zeros, sum. It is sealed without the salt, which it
 * tells.
 */
struct error *spool_file_begin(struct spool_file_writer *writer, int fd, uint32_t content,
			       uint64_t salt, uint64_t enqueued_ns)
{
	*writer = (struct spool_file_writer){
		.fd = fd, .content = content, .salt = salt, .offset = HEADER_BYTES};
	buf_init(&writer->index, (size_t)SPOOL_FILE_MAX_REQUESTS * ENTRY_BYTES);
	uint8_t header[HEADER_BYTES] = {0};
	memcpy(header, header_magic, sizeof(header_magic));
	put_u32(header + 8, SPOOL_FILE_VERSION);
	put_u32(header + 12, content);
	put_u64(header + 16, salt);
	put_u64(header + 24, enqueued_ns);
	seal(header, sizeof(header), 0);
	return file_write(fd, header, sizeof(header));
}

/* All of it in one system call, unless it is cut short. */
static struct error *write_parts(int fd, struct iovec *parts, int n)
{
	while (n) {
		ssize_t put = writev(fd, parts, n);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return error_errno(errno, "write");
		while (n && (size_t)put >= parts->iov_len) {
			put -= (ssize_t)parts->iov_len;
			parts++;
			n--;
		}
		if (n) {
			parts->iov_base = (uint8_t *)parts->iov_base + put;
			parts->iov_len -= (size_t)put;
		}
	}
	return NULL;
}

static void add_summary(struct request_summary *to, const struct request_summary *from)
{
	to->n_samples += from->n_samples;
	to->n_profiles += from->n_profiles;
	if (!to->first_time_ns || from->first_time_ns < to->first_time_ns)
		to->first_time_ns = from->first_time_ns;
	if (from->last_time_ns > to->last_time_ns)
		to->last_time_ns = from->last_time_ns;
}

struct error *spool_file_append(struct spool_file_writer *writer, const uint8_t *message, size_t n,
				const struct request_summary *summary, const char *note)
{
	if (writer->n_requests == SPOOL_FILE_MAX_REQUESTS)
		return error_new(ERROR_LIMIT, "more than %d requests in one window",
				 SPOOL_FILE_MAX_REQUESTS);
	if (n > SPOOL_FILE_MAX_MESSAGE)
		return error_new(ERROR_LIMIT, "a request of %zu bytes is above the maximum", n);
	size_t n_note = note ? strnlen(note, SPOOL_FILE_MAX_NOTE) : 0;
	uint8_t entry[ENTRY_BYTES] = {0};
	uint8_t *p = put_u32(entry, entry_magic);
	p = put_u32(p, writer->n_requests);
	p = put_u64(p, writer->offset);
	p = put_u64(p, n);
	p = put_u32(p, (uint32_t)n_note);
	p = put_u32(p, summary->n_profiles);
	p = put_u64(p, summary->n_samples);
	p = put_u64(p, summary->first_time_ns);
	p = put_u64(p, summary->last_time_ns);
	put_u64(p, payload_sum(writer->salt, note, n_note, message, n));
	seal(entry, sizeof(entry), writer->salt);
	struct error *err = buf_append(&writer->index, entry, sizeof(entry));
	uint8_t zeros[ALIGNMENT] = {0};
	struct iovec parts[] = {
		{entry, sizeof(entry)},
		{(void *)note, n_note},
		{(void *)message, n},
		{zeros, (size_t)(span(n_note, n) - ENTRY_BYTES - n_note - n)},
	};
	if (!err)
		err = write_parts(writer->fd, parts, ARRAY_LEN(parts));
	if (err)
		return err;
	writer->offset += span(n_note, n);
	writer->n_requests++;
	add_summary(&writer->total, summary);
	return NULL;
}

/* Trailer: magic, requests, content, offset of the index, salt, sum; sealed as the header is. */
struct error *spool_file_end(struct spool_file_writer *writer)
{
	uint8_t trailer[TRAILER_BYTES] = {0};
	memcpy(trailer, trailer_magic, sizeof(trailer_magic));
	put_u32(trailer + 8, writer->n_requests);
	put_u32(trailer + 12, writer->content);
	put_u64(trailer + 16, writer->offset);
	put_u64(trailer + 24, writer->salt);
	seal(trailer, sizeof(trailer), 0);
	struct error *err = buf_append(&writer->index, trailer, sizeof(trailer));
	if (!err)
		err = file_write(writer->fd, writer->index.data, writer->index.size);
	writer->offset += writer->index.size;
	return err;
}

void spool_file_writer_fini(struct spool_file_writer *writer)
{
	buf_fini(&writer->index);
	*writer = (struct spool_file_writer){.fd = -1};
}

/* One request header; false when its bytes are not one that belongs at offset_wanted. */
static bool decode_entry(const uint8_t bytes[ENTRY_BYTES], uint64_t salt, uint64_t file_bytes,
			 struct spool_entry *out, uint32_t *number_out)
{
	struct cursor c = cursor_make(bytes, ENTRY_BYTES, false);
	if (cursor_u32(&c) != entry_magic || !is_sealed(bytes, ENTRY_BYTES, salt))
		return false;
	*number_out = cursor_u32(&c);
	struct spool_entry entry = {.is_known = true};
	entry.offset = cursor_u64(&c);
	entry.n_message = cursor_u64(&c);
	entry.n_note = cursor_u32(&c);
	entry.summary.n_profiles = cursor_u32(&c);
	entry.summary.n_samples = cursor_u64(&c);
	entry.summary.first_time_ns = cursor_u64(&c);
	entry.summary.last_time_ns = cursor_u64(&c);
	entry.payload_sum = cursor_u64(&c);
	if (*number_out >= SPOOL_FILE_MAX_REQUESTS || entry.n_note > SPOOL_FILE_MAX_NOTE ||
	    entry.n_message > SPOOL_FILE_MAX_MESSAGE || entry.offset > file_bytes)
		return false;
	*out = entry;
	return true;
}

struct reading {
	int fd;
	uint64_t size;
	struct spool_index *index;
	uint32_t capacity;
	bool has_salt;
};

/* Requests are numbered without holes: those between that were not found stay unknown. */
static void keep_entry(struct reading *reading, const struct spool_entry *entry, uint32_t number)
{
	struct spool_index *index = reading->index;
	if (number >= reading->capacity) {
		uint32_t capacity = number < 8 ? 16 : (number + 1) * 2;
		index->entries = mem_realloc(index->entries, capacity, sizeof(*index->entries));
		memset(index->entries + reading->capacity, 0,
		       (capacity - reading->capacity) * sizeof(*index->entries));
		reading->capacity = capacity;
	}
	index->entries[number] = *entry;
	if (number >= index->n)
		index->n = number + 1;
}

static struct error *read_block(struct reading *reading, uint64_t offset, void *p, size_t n)
{
	size_t got;
	struct error *err = file_read_at(reading->fd, offset, p, n, &got);
	if (!err && got < n)
		err = error_new(ERROR_BAD_DATA, "file became shorter");
	return err;
}

static struct error *read_header(struct reading *reading)
{
	uint8_t header[HEADER_BYTES];
	if (reading->size < HEADER_BYTES) {
		reading->index->is_damaged = true;
		return NULL;
	}
	struct error *err = read_block(reading, 0, header, sizeof(header));
	if (err)
		return err;
	struct cursor c = cursor_make(header, sizeof(header), false);
	const uint8_t *magic = cursor_bytes(&c, sizeof(header_magic));
	uint32_t version = cursor_u32(&c);
	if (memcmp(magic, header_magic, sizeof(header_magic)) != 0 ||
	    !is_sealed(header, sizeof(header), 0)) {
		reading->index->is_damaged = true;
		return NULL;
	}
	if (version != SPOOL_FILE_VERSION)
		return error_new(ERROR_UNSUPPORTED, "spool file of version %" PRIu32, version);
	reading->index->content = cursor_u32(&c);
	reading->index->salt = cursor_u64(&c);
	reading->index->enqueued_ns = cursor_u64(&c);
	reading->has_salt = true;
	return NULL;
}

/* Sets *n_out to the number of requests that the trailer promises; 0 when it is damaged. */
static struct error *read_index(struct reading *reading, uint32_t *n_out)
{
	*n_out = 0;
	struct spool_index *index = reading->index;
	uint8_t trailer[TRAILER_BYTES];
	if (reading->size < HEADER_BYTES + TRAILER_BYTES) {
		index->is_damaged = true;
		return NULL;
	}
	uint64_t at = reading->size - TRAILER_BYTES;
	struct error *err = read_block(reading, at, trailer, sizeof(trailer));
	if (err)
		return err;
	struct cursor c = cursor_make(trailer, sizeof(trailer), false);
	const uint8_t *magic = cursor_bytes(&c, sizeof(trailer_magic));
	uint32_t n = cursor_u32(&c);
	uint32_t content = cursor_u32(&c);
	uint64_t offset = cursor_u64(&c);
	uint64_t salt = cursor_u64(&c);
	if (memcmp(magic, trailer_magic, sizeof(trailer_magic)) != 0 ||
	    !is_sealed(trailer, sizeof(trailer), 0) || n > SPOOL_FILE_MAX_REQUESTS || offset > at ||
	    at - offset != (uint64_t)n * ENTRY_BYTES) {
		index->is_damaged = true;
		return NULL;
	}
	if (!reading->has_salt) {
		index->salt = salt;
		index->content = content;
	}
	reading->has_salt = true;
	uint8_t *bytes = mem_alloc((size_t)n * ENTRY_BYTES);
	err = read_block(reading, offset, bytes, (size_t)n * ENTRY_BYTES);
	for (uint32_t i = 0; !err && i < n; i++) {
		struct spool_entry entry;
		uint32_t number;
		if (decode_entry(bytes + (size_t)i * ENTRY_BYTES, index->salt, offset, &entry,
				 &number) &&
		    number == i)
			keep_entry(reading, &entry, number);
		else
			index->is_damaged = true;
	}
	mem_free(bytes);
	*n_out = n;
	return err;
}

/* Goes through the whole file for request headers, which stand at multiples of 8. */
static struct error *scan(struct reading *reading)
{
	CLEANUP(cleanup_mem) uint8_t *block = mem_alloc(SCAN_BLOCK);
	uint64_t at = HEADER_BYTES;
	while (reading->size >= ENTRY_BYTES && at <= reading->size - ENTRY_BYTES) {
		size_t n =
			reading->size - at < SCAN_BLOCK ? (size_t)(reading->size - at) : SCAN_BLOCK;
		struct error *err = read_block(reading, at, block, n);
		if (err)
			return err;
		size_t i = 0;
		uint64_t next = 0;
		for (; i + ENTRY_BYTES <= n && !next; i += ALIGNMENT) {
			struct spool_entry entry;
			uint32_t number;
			if (!decode_entry(block + i, reading->index->salt, reading->size, &entry,
					  &number) ||
			    entry.offset != at + i)
				continue;
			uint64_t end = entry.offset + span(entry.n_note, entry.n_message);
			if (end <= reading->size)
				keep_entry(reading, &entry, number);
			next = end;
		}
		at = next ? next : at + i;
	}
	return NULL;
}

struct error *spool_file_read_index(int fd, struct spool_index *out)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return error_errno(errno, "stat");
	struct spool_index index = {0};
	struct reading reading = {.fd = fd, .size = (uint64_t)st.st_size, .index = &index};
	uint32_t n_promised = 0;
	struct error *err = read_header(&reading);
	if (!err)
		err = read_index(&reading, &n_promised);
	if (!err && index.is_damaged && reading.has_salt)
		err = scan(&reading);
	if (!err && n_promised > index.n) {
		struct spool_entry unknown = {0};
		keep_entry(&reading, &unknown, n_promised - 1);
	}
	if (!err && index.is_damaged && !index.n)
		err = error_new(ERROR_BAD_DATA, "no request in it can be read");
	if (err) {
		spool_index_fini(&index);
		return err;
	}
	*out = index;
	return NULL;
}

void spool_index_fini(struct spool_index *index)
{
	mem_free(index->entries);
	*index = (struct spool_index){0};
}

struct error *spool_file_read(int fd, const struct spool_index *index, uint32_t i, struct buf *note,
			      struct buf *message)
{
	const struct spool_entry *entry = &index->entries[i];
	if (!entry->is_known)
		return error_new(ERROR_BAD_DATA, "header of request %" PRIu32 " is damaged", i);
	char text[SPOOL_FILE_MAX_NOTE];
	size_t n = (size_t)entry->n_message;
	struct error *err = buf_reserve(message, n ? n : 1);
	if (err)
		return err;
	size_t got_note, got = 0;
	uint64_t offset = entry->offset + ENTRY_BYTES;
	err = file_read_at(fd, offset, text, entry->n_note, &got_note);
	if (!err)
		err = file_read_at(fd, offset + entry->n_note, message->data + message->size, n,
				   &got);
	if (err)
		return err;
	if (got_note < entry->n_note || got < n ||
	    payload_sum(index->salt, text, entry->n_note, message->data + message->size, n) !=
		    entry->payload_sum)
		return error_new(ERROR_BAD_DATA, "request %" PRIu32 " is damaged", i);
	if (note)
		err = buf_append(note, text, entry->n_note);
	if (note && !err)
		err = buf_append(note, "", 1);
	if (!err)
		message->size += n;
	return err;
}
