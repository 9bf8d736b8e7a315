/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a perf.data says about itself: header, attrs and features of file mode, and what grows
 * while the records of pipe mode are read. Also where all warnings about one input are gathered.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/perf_record.h"
#include "collector/collector.h"
#include "collector/perf_file_events.h"

enum {
	PERF_FILE_HEAD_BYTES = 16,    /* magic and size: common to both modes */
	PERF_FILE_HEADER_BYTES = 104, /* file mode */
	PERF_FILE_FEATURES = 256,     /* bits in the header */
	PERF_FILE_UNKNOWN_TYPES = 16, /* unknown record types told apart */
	PERF_FILE_BUILD_IDS_MAX = 1 << 18,
};

enum { PERF_COMPRESSION_NONE = 0, PERF_COMPRESSION_ZSTD = 1 };

struct perf_file {
	struct perf_source_info info;
	struct perf_file_events events;
	struct collector_file_format format;
	uint8_t features[PERF_FILE_FEATURES];
	uint8_t end_feature; /* pipe mode: the number after the last that its perf knows */
	bool is_big_endian;
	uint64_t size;	      /* of the file, UINT64_MAX when unknown */
	uint64_t data_offset; /* file mode: the records */
	uint64_t data_end;    /* one past the data section, as the header says, or end of file */
	bool is_unfinished;   /* the recorder did not come to write the header's sizes */
	uint32_t compression; /* of the COMPRESSED feature; 0 until it is known */
	uint32_t build_ids_capacity;
	struct buf event_desc; /* pipe mode: the feature came before its attrs */
	struct buf damaged;    /* names of features that could not be read */
	struct collector_unknown_type
		unknown[PERF_FILE_UNKNOWN_TYPES]; /* format has their number */
	uint64_t n_unknown_more;		  /* records of further unknown types */
	struct collector_warning *warnings;
	size_t n_warnings;
	char *stopped;
};

void perf_file_init(struct perf_file *file);
void perf_file_fini(struct perf_file *file);

/*
 * Looks at the first n <= 16 bytes: byte order, and whether it is pipe mode. Errors: E604 empty,
 * E603 not a perf.data, E601 cut off.
 */
struct error *perf_file_read_head(struct perf_file *file, const uint8_t *head, size_t n) MUST_USE;
/* File mode: the rest of the header, attrs and features, from a seekable descriptor. */
struct error *perf_file_read_header(struct perf_file *file, int fd) MUST_USE;

/* Pipe mode: keeps the list rising and without repeats. */
void perf_file_add_feature(struct perf_file *file, uint8_t feature);
/* Takes text (from mem_format); why may be NULL and must be a literal. */
void perf_file_warn_take(struct perf_file *file, int number, bool is_damage, const char *why,
			 char *text);
void perf_file_count_unknown(struct perf_file *file, uint32_t type);
/* The warnings about what was skipped; at the end of the input. */
void perf_file_warn_skipped(struct perf_file *file);
