/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a symbolizer needs of an ELF file, as a file of its own: headers, notes, symbol tables,
 * .debug_*, unwind tables and Go's pclntab with their content, all other sections with their place
 * and size only (as SHT_NOBITS). Program headers stay as they are, because servers translate
 * addresses with them; those that lie within a kept section, PT_NOTE above all, point to where it
 * went. Small files are taken whole.
 *
 * The file may be anybody's and may change meanwhile: it is read with pread(2), and what is not
 * there any more is an error. Layout of ELF: elf(5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/build_id.h"
#include "base/compiler.h"
#include "base/error.h"

enum {
	DEBUGINFO_MAX_SECTIONS = 1 << 16,
	DEBUGINFO_MAX_PROGRAM_HEADERS = 512,
	DEBUGINFO_WHOLE_BYTES = 64 << 10, /* a file of this size is taken whole */
	DEBUGINFO_HASH_BYTES = 33,	  /* hex and 0 */
};

/* A run of bytes of the result: of a header, of the file, or zeros. */
struct debuginfo_piece {
	uint64_t offset; /* in the result */
	uint64_t source; /* in the buffer or the file */
	uint64_t n;
	enum { DEBUGINFO_PIECE_HEADER, DEBUGINFO_PIECE_FILE, DEBUGINFO_PIECE_ZEROS } kind;
};

struct debuginfo_image {
	int fd; /* borrowed */
	uint64_t n_bytes;
	struct debuginfo_piece *pieces; /* by offset, without gaps */
	size_t n_pieces, capacity;
	struct buf headers;
	char hash[DEBUGINFO_HASH_BYTES]; /* of all headers and the size: tells layouts apart */
};

/*
 * fd is borrowed while the image lives. ERROR_NO_ENTRY: nothing in it names an address.
 * ERROR_BAD_DATA: not ELF, damaged, or its GNU build-id is another than id (which is not compared
 * when it is of another kind). ERROR_LIMIT: the result would pass max_bytes.
 */
struct error *debuginfo_extract(int fd, const struct build_id *id, uint64_t max_bytes,
				struct debuginfo_image *out) MUST_USE;
void debuginfo_image_fini(struct debuginfo_image *image);
/* n bytes from offset on; ERROR_BAD_DATA when the file has changed. */
struct error *debuginfo_image_read(const struct debuginfo_image *image, uint64_t offset,
				   uint8_t *out, size_t n) MUST_USE;
