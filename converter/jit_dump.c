/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/jit_dump.h"

#include <string.h>

#include "base/cursor.h"

#define MAGIC	      0x4a695444u /* "JiTD" */
#define MAGIC_SWAPPED 0x4454694au

enum {
	VERSION = 1,
	HEADER_BYTES = 40,
	FLAG_ARCH_TIMESTAMP = 1,
	PREFIX_BYTES = 16,
	LOAD_BYTES = 40, /* behind the prefix, before the name */
};

enum record {
	RECORD_LOAD = 0,
	RECORD_MOVE = 1,
	RECORD_DEBUG_INFO = 2,
	RECORD_CLOSE = 3,
	RECORD_UNWINDING_INFO = 4,
};

const char *jit_dump_state_text(enum jit_dump_state state)
{
	switch (state) {
	case JIT_DUMP_OK:
		return "read";
	case JIT_DUMP_FOREIGN:
		return "not a jitdump";
	case JIT_DUMP_VERSION:
		return "a jitdump of an unknown version";
	case JIT_DUMP_ARCH_CLOCK:
		return "its times are those of the processor's counter, not of CLOCK_MONOTONIC";
	case JIT_DUMP_OTHER_CLOCK:
		return "the samples are on another clock than CLOCK_MONOTONIC (perf record -k "
		       "mono)";
	case JIT_DUMP_OTHER_PROCESS:
		return "of another process than its name says";
	case JIT_DUMP_DAMAGED:
		return "damaged, read in part";
	case JIT_DUMP_STATE_N:
		break;
	}
	return "unknown";
}

void jit_dump_init(struct jit_dump *dump, struct jit_code_list *codes)
{
	*dump = (struct jit_dump){.codes = codes};
	hash_map_init(&dump->by_index);
}

void jit_dump_fini(struct jit_dump *dump)
{
	hash_map_fini(&dump->by_index);
	*dump = (struct jit_dump){0};
}

static uint64_t read_header(struct jit_dump *dump, const uint8_t *bytes, size_t n)
{
	struct cursor c = cursor_make(bytes, n, false);
	uint32_t magic = cursor_u32(&c);
	if (n < HEADER_BYTES && (n < sizeof(magic) || magic == MAGIC || magic == MAGIC_SWAPPED))
		return 0;
	dump->is_swapped = c.is_swapped = magic == MAGIC_SWAPPED;
	uint32_t version = cursor_u32(&c), bytes_in_all = cursor_u32(&c);
	dump->machine = cursor_u32(&c);
	cursor_skip(&c, sizeof(uint32_t));
	dump->pid = cursor_u32(&c);
	cursor_skip(&c, sizeof(uint64_t)); /* when the file was made */
	uint64_t flags = cursor_u64(&c);
	dump->has_header = true;
	if (magic != MAGIC && magic != MAGIC_SWAPPED)
		dump->state = JIT_DUMP_FOREIGN;
	else if (version != VERSION)
		dump->state = JIT_DUMP_VERSION;
	else if (flags & FLAG_ARCH_TIMESTAMP)
		dump->state = JIT_DUMP_ARCH_CLOCK;
	else if (bytes_in_all < HEADER_BYTES)
		dump->state = JIT_DUMP_DAMAGED;
	return dump->state == JIT_DUMP_OK ? bytes_in_all : 0;
}

/* The line table is for this piece only when it says so. */
static void take_lines(struct jit_dump *dump, struct jit_code *code)
{
	if (dump->n_lines && dump->lines_of == code->start) {
		code->first_line = dump->first_line;
		code->n_lines = dump->n_lines;
	}
	dump->n_lines = 0;
}

static bool read_load(struct jit_dump *dump, struct cursor *c, uint64_t time_ns)
{
	struct jit_code code = {.from_ns = time_ns};
	cursor_skip(c, 2 * sizeof(uint32_t)); /* pid, tid */
	cursor_skip(c, sizeof(uint64_t));     /* vma: the address, in an older meaning */
	code.start = cursor_u64(c);
	code.size = cursor_u64(c);
	uint64_t index = cursor_u64(c);
	size_t n_name = cursor_left(c);
	const char *name = (const char *)c->next;
	const char *end = n_name ? memchr(name, 0, n_name) : NULL;
	/* A long name's end may lie behind what is at hand. */
	if (!cursor_is_ok(c) || code.start == UINT64_MAX ||
	    (!end && n_name < JIT_CODE_NAME_MAX_BYTES))
		return false;
	take_lines(dump, &code);
	if (dump->codes->n >= JIT_CODE_MAX) {
		dump->codes->n_left_out++;
		return true;
	}
	code.name = jit_code_add_text(dump->codes, name, end ? (size_t)(end - name) : n_name);
	if (code.name == JIT_CODE_NONE)
		dump->codes->n_left_out++;
	else if (jit_code_add(dump->codes, &code))
		*hash_map_put(&dump->by_index, index, NULL) = dump->codes->n;
	return true;
}

static bool read_move(struct jit_dump *dump, struct cursor *c, uint64_t time_ns)
{
	cursor_skip(c, 2 * sizeof(uint32_t) + sizeof(uint64_t));
	uint64_t from = cursor_u64(c), to = cursor_u64(c), size = cursor_u64(c);
	uint64_t index = cursor_u64(c);
	const uint64_t *known = hash_map_get(&dump->by_index, index);
	if (!cursor_is_ok(c) || !known || to == UINT64_MAX || from == UINT64_MAX)
		return false;
	struct jit_code moved = dump->codes->codes[*known - 1];
	const struct jit_code gone = {
		.start = from, .size = size, .from_ns = time_ns, .name = JIT_CODE_NONE};
	moved.start = to;
	moved.size = size;
	moved.from_ns = time_ns;
	if (jit_code_add(dump->codes, &gone) && jit_code_add(dump->codes, &moved))
		*hash_map_put(&dump->by_index, index, NULL) = dump->codes->n;
	return true;
}

/* The file of an entry; "\xff" stands for that of the entry before. */
static bool take_file(struct jit_dump *dump, struct cursor *c, const char **last, uint32_t *text)
{
	static const char same[] = "\xff";
	const char *name = cursor_string(c, SIZE_MAX);
	if (!name)
		return false;
	if (strcmp(name, same) == 0 && *last)
		return true;
	if (*last && strcmp(name, *last) == 0)
		return true;
	*last = name;
	*text = jit_code_add_text(dump->codes, name, strlen(name));
	return *text != JIT_CODE_NONE;
}

static bool read_lines(struct jit_dump *dump, struct cursor *c)
{
	uint64_t start = cursor_u64(c), n = cursor_u64(c);
	const char *last = NULL;
	uint32_t file = JIT_CODE_NONE;
	dump->lines_of = start;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t vaddr = cursor_u64(c);
		uint32_t line = cursor_u32(c);
		cursor_skip(c, sizeof(uint32_t)); /* discriminator */
		if (!take_file(dump, c, &last, &file))
			return false;
		if (vaddr < start || vaddr - start > UINT32_MAX || line > INT32_MAX)
			continue;
		const struct jit_line entry = {
			.offset = (uint32_t)(vaddr - start), .line = line, .file = file};
		if (!jit_code_add_line(dump->codes, &entry))
			return false;
	}
	return cursor_is_ok(c);
}

static bool read_debug_info(struct jit_dump *dump, struct cursor *c)
{
	dump->first_line = dump->codes->n_lines;
	bool is_sound = read_lines(dump, c);
	if (!is_sound)
		dump->codes->n_lines = dump->first_line;
	dump->n_lines = dump->codes->n_lines - dump->first_line;
	jit_code_sort_lines(dump->codes, dump->first_line);
	return is_sound;
}

static bool read_body(struct jit_dump *dump, enum record id, struct cursor *c, uint64_t time_ns)
{
	switch (id) {
	case RECORD_LOAD:
		return read_load(dump, c, time_ns);
	case RECORD_MOVE:
		return read_move(dump, c, time_ns);
	case RECORD_DEBUG_INFO:
		return read_debug_info(dump, c);
	case RECORD_CLOSE:
		dump->is_closed = true;
		return true;
	case RECORD_UNWINDING_INFO:
		return true;
	}
	return true; /* of a later version: passed over by its size */
}

/* How much of a record has to be at hand to read it. */
static size_t needed_bytes(enum record id, uint32_t size)
{
	enum { LOAD_HEAD_BYTES = PREFIX_BYTES + LOAD_BYTES + JIT_CODE_NAME_MAX_BYTES };
	if (id == RECORD_DEBUG_INFO)
		return size;
	return size < LOAD_HEAD_BYTES ? size : LOAD_HEAD_BYTES;
}

uint64_t jit_dump_read(struct jit_dump *dump, const uint8_t *bytes, size_t n, uint64_t n_file)
{
	if (dump->state != JIT_DUMP_OK || dump->is_closed)
		return 0;
	if (!dump->has_header)
		return read_header(dump, bytes, n);
	if (n < PREFIX_BYTES)
		return 0;
	struct cursor c = cursor_make(bytes, n, dump->is_swapped);
	enum record id = (enum record)cursor_u32(&c);
	uint32_t size = cursor_u32(&c);
	uint64_t time_ns = cursor_u64(&c);
	if (size < PREFIX_BYTES) {
		dump->state = JIT_DUMP_DAMAGED;
		return 0;
	}
	if (size > n_file)
		return 0;
	size_t needed = needed_bytes(id, size);
	if (needed > JIT_DUMP_MAX_RECORD_BYTES) {
		dump->n_skipped++;
		return size;
	}
	if (needed > n)
		return 0;
	struct cursor body = cursor_sub(&c, needed - PREFIX_BYTES);
	dump->n_skipped += !read_body(dump, id, &body, time_ns);
	return size;
}
