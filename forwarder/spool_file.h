/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of one window in a spool: requests with a header each, an index behind them, all under
 * checksums. Written once, front to back; read in any order.
 *
 *   header 64 | request header 72, note, message, zeros to a multiple of 8 | … | index | trailer 40
 *
 * Integers are little-endian; offsets count from the start of the file. The index is a copy of the
 * request headers, and each of them says where it stands, so that either one finds what the other
 * lost: a damaged byte costs at most the request it is in, and a cut file keeps all whole ones.
 * Checksums are XXH3 (64 bits) seeded with the window's salt, which no request can know.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/backend.h"

enum {
	SPOOL_FILE_VERSION = 1,
	SPOOL_FILE_MAX_REQUESTS = 1 << 16,
	SPOOL_FILE_MAX_NOTE = 1 << 12,
};
#define SPOOL_FILE_MAX_MESSAGE ((uint64_t)1 << 28)

/* Where a request lies and what it carries. */
struct spool_entry {
	uint64_t offset; /* of its header */
	uint64_t n_message;
	uint32_t n_note;
	struct request_summary summary;
	uint64_t payload_sum; /* of note and message */
	bool is_known;	      /* false: its header and its index entry are both damaged */
};

/* Writes the file to fd, which stays the caller's. */
struct spool_file_writer {
	int fd;
	uint32_t content;
	uint64_t salt;
	uint64_t offset;
	struct buf index;
	uint32_t n_requests;
	struct request_summary total;
};
/* content: what the messages are, a number of the caller's. enqueued_ns: wall clock. */
struct error *spool_file_begin(struct spool_file_writer *writer, int fd, uint32_t content,
			       uint64_t salt, uint64_t enqueued_ns) MUST_USE;
/* note may be NULL: why it was refused. ERROR_LIMIT: too many requests, or too large a message. */
struct error *spool_file_append(struct spool_file_writer *writer, const uint8_t *message, size_t n,
				const struct request_summary *summary, const char *note) MUST_USE;
/* Index and trailer; nothing is fsynced. */
struct error *spool_file_end(struct spool_file_writer *writer) MUST_USE;
void spool_file_writer_fini(struct spool_file_writer *writer);

/* What a file holds. */
struct spool_index {
	uint64_t salt, enqueued_ns;
	uint32_t content;
	struct spool_entry *entries;
	uint32_t n;
	bool is_damaged; /* something in it did not check */
};
/*
 * Reads index or headers, no messages. ERROR_BAD_DATA: nothing in it can be used;
 * ERROR_UNSUPPORTED: of a newer version; other errors are the system's, and another try may do.
 */
struct error *spool_file_read_index(int fd, struct spool_index *out) MUST_USE;
void spool_index_fini(struct spool_index *index);
/* Appends note (with a 0 behind, also when there is none; may be NULL) and message.
 * ERROR_BAD_DATA: damaged. */
struct error *spool_file_read(int fd, const struct spool_index *index, uint32_t i, struct buf *note,
			      struct buf *message) MUST_USE;
