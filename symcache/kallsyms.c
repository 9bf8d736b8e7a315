/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/kallsyms.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"

enum { READ_BYTES = 64 << 10, PAGE_BYTES = 4096 };
static const uint32_t name_folded = 1u << 31;
static const uint32_t name_gap = UINT32_MAX;

/* Lower is shown first. Marks end what stands before them and show nothing. */
enum line_rank { RANK_GLOBAL, RANK_WEAK, RANK_LOCAL, RANK_MARK };

struct line {
	uint64_t address;
	uint32_t name;
	uint16_t module;
	uint8_t rank;
	uint8_t name_bytes; /* up to 255 */
};

struct line_text {
	uint64_t address;
	const char *name, *module;
	size_t name_bytes, module_bytes;
	char type;
};

struct parse {
	struct kallsyms *table;
	struct line *lines;
	uint32_t n, capacity;
	uint32_t n_zero; /* text symbols at address 0 */
};

static void parse_init(struct parse *parse, struct kallsyms *table)
{
	*table = (struct kallsyms){0};
	buf_init(&table->texts, KALLSYMS_MAX_NAME_BYTES);
	*parse = (struct parse){.table = table};
	table->module_names = mem_zalloc(KALLSYMS_MAX_MODULES, sizeof(*table->module_names));
	table->n_modules = 1;
	/* Offset 0 is "", the name of the kernel itself. */
	error_free(buf_append(&table->texts, "", 1));
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* ffffffffc0a01000 t nft_do_chain\t[nf_tables] */
static bool split_line(const char *p, const char *end, struct line_text *out)
{
	uint64_t address = 0;
	const char *begin = p;
	for (; p < end && hex_digit(*p) >= 0; p++)
		address = address << 4 | (uint64_t)hex_digit(*p);
	if (p == begin || p - begin > 16 || end - p < 4 || p[0] != ' ' || p[2] != ' ')
		return false;
	out->address = address;
	out->type = p[1];
	out->name = p + 3;
	const char *name_end = out->name;
	while (name_end < end && *name_end != '\t' && *name_end != ' ')
		name_end++;
	out->name_bytes = (size_t)(name_end - out->name);
	out->module = "";
	out->module_bytes = 0;
	while (name_end < end && (*name_end == '\t' || *name_end == ' '))
		name_end++;
	if (end - name_end >= 2 && name_end[0] == '[' && end[-1] == ']') {
		out->module = name_end + 1;
		out->module_bytes = (size_t)(end - name_end) - 2;
	}
	return out->name_bytes != 0;
}

static bool text_equals(const char *text, size_t n, const char *wanted)
{
	return strlen(wanted) == n && memcmp(text, wanted, n) == 0;
}

static bool append_text(struct parse *parse, const char *text, size_t n, uint32_t *offset_out)
{
	struct buf *texts = &parse->table->texts;
	if (texts->size + n + 1 > KALLSYMS_MAX_NAME_BYTES)
		return false;
	*offset_out = (uint32_t)texts->size;
	struct error *err = buf_append(texts, text, n);
	if (!err)
		err = buf_append(texts, "", 1);
	error_free(err);
	return !err;
}

/* Symbols of one module stand together, so the last one is nearly always the one. */
static uint16_t find_module(struct parse *parse, const char *name, size_t n)
{
	struct kallsyms *table = parse->table;
	if (n == 0)
		return 0;
	for (uint32_t i = table->n_modules; i-- > 1;) {
		const char *known = (const char *)table->texts.data + table->module_names[i];
		if (text_equals(name, n, known))
			return (uint16_t)i;
	}
	if (table->n_modules == KALLSYMS_MAX_MODULES ||
	    !append_text(parse, name, n, &table->module_names[table->n_modules]))
		return 0;
	return (uint16_t)table->n_modules++;
}

static bool classify(const struct line_text *line, enum line_rank *out)
{
	switch (line->type) {
	case 'T':
		*out = RANK_GLOBAL;
		break;
	case 'w':
	case 'W':
		*out = RANK_WEAK;
		break;
	case 't':
		*out = RANK_LOCAL;
		break;
	case 'a':
	case 'A':
		return false;
	default:
		*out = RANK_MARK;
	}
	if (text_equals(line->name, line->name_bytes, "_etext") ||
	    text_equals(line->name, line->name_bytes, "_einittext"))
		*out = RANK_MARK;
	return true;
}

static void add_line(struct parse *parse, const char *begin, const char *end)
{
	struct line_text text;
	enum line_rank rank;
	if (!split_line(begin, end, &text) || !classify(&text, &rank) ||
	    parse->n == KALLSYMS_MAX_SYMBOLS)
		return;
	if (text.address == 0) {
		parse->n_zero += rank != RANK_MARK;
		return;
	}
	if (text_equals(text.name, text.name_bytes, "_text"))
		parse->table->text = text.address;
	else if (text_equals(text.name, text.name_bytes, "_stext"))
		parse->table->stext = text.address;
	struct line line = {
		.address = text.address,
		.name = name_gap,
		.rank = (uint8_t)rank,
		.name_bytes = (uint8_t)(text.name_bytes > UINT8_MAX ? UINT8_MAX : text.name_bytes),
		.module = find_module(parse, text.module, text.module_bytes),
	};
	if (rank != RANK_MARK && !append_text(parse, text.name, text.name_bytes, &line.name))
		return;
	if (parse->n == parse->capacity) {
		parse->capacity = parse->capacity ? 2 * parse->capacity : 4096;
		parse->lines = mem_realloc(parse->lines, parse->capacity, sizeof(*parse->lines));
	}
	parse->lines[parse->n++] = line;
}

/* Takes whole lines; gives the number of bytes used. At the end of the input the rest is a line. */
static size_t add_lines(struct parse *parse, const char *text, size_t n, bool is_last)
{
	const char *p = text;
	const char *end = text + n;
	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		if (!newline && !is_last)
			break;
		const char *line_end = newline ? newline : end;
		if (line_end - p <= KALLSYMS_MAX_LINE_BYTES)
			add_line(parse, p, line_end);
		p = newline ? newline + 1 : end;
	}
	return (size_t)(p - text);
}

static int compare_lines(const void *left, const void *right, void *context)
{
	const struct line *a = left;
	const struct line *b = right;
	const struct kallsyms *table = context;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->name_bytes != b->name_bytes)
		return a->name_bytes < b->name_bytes ? -1 : 1;
	if (a->rank == RANK_MARK)
		return 0;
	const char *texts = (const char *)table->texts.data;
	return strcmp(texts + a->name, texts + b->name);
}

struct ranges {
	uint64_t *starts;
	uint32_t *names;
	uint16_t *modules;
	uint32_t n;
};

static void begin_range(struct ranges *ranges, uint64_t start, uint32_t name, uint16_t module)
{
	if (name == name_gap && (!ranges->n || ranges->names[ranges->n - 1] == name_gap))
		return;
	ranges->starts[ranges->n] = start;
	ranges->names[ranges->n] = name;
	ranges->modules[ranges->n++] = module;
}

/* Where a symbol ends for sure, if no name ends it before. */
static uint64_t run_end(const struct line *line, const struct line *next)
{
	uint64_t limit = KALLSYMS_MAX_RUN_BYTES;
	if (line->module && (!next || next->module != line->module))
		limit = KALLSYMS_TAIL_BYTES;
	if (line->address > UINT64_MAX - limit - PAGE_BYTES)
		return UINT64_MAX;
	uint64_t end = line->address + limit;
	return (end + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
}

static void make_ranges(struct parse *parse)
{
	struct kallsyms *table = parse->table;
	const struct line *lines = parse->lines;
	size_t capacity = 2 * (size_t)parse->n + 1;
	struct ranges ranges = {
		.starts = mem_alloc(capacity * sizeof(*ranges.starts)),
		.names = mem_alloc(capacity * sizeof(*ranges.names)),
		.modules = mem_alloc(capacity * sizeof(*ranges.modules)),
	};
	for (uint32_t i = 0, n = 0; i < parse->n; i += n) {
		const struct line *line = &lines[i];
		uint32_t n_names = line->rank != RANK_MARK;
		for (n = 1; i + n < parse->n && lines[i + n].address == line->address; n++)
			n_names += lines[i + n].rank != RANK_MARK;
		if (line->rank == RANK_MARK) {
			begin_range(&ranges, line->address, name_gap, 0);
			continue;
		}
		uint32_t name = line->name | (n_names > 1 ? name_folded : 0);
		begin_range(&ranges, line->address, name, line->module);
		const struct line *next = i + n < parse->n ? &lines[i + n] : NULL;
		uint64_t end = run_end(line, next);
		if (!next || next->address > end)
			begin_range(&ranges, end, name_gap, 0);
	}
	address_index_init(&table->ranges, ranges.starts, ranges.n);
	mem_free(ranges.starts);
	table->names = mem_realloc(ranges.names, ranges.n + 1, sizeof(*ranges.names));
	table->modules = mem_realloc(ranges.modules, ranges.n + 1, sizeof(*ranges.modules));
}

static void parse_finish(struct parse *parse)
{
	struct kallsyms *table = parse->table;
	bool has_names = false;
	for (uint32_t i = 0; i < parse->n && !has_names; i++)
		has_names = parse->lines[i].rank != RANK_MARK;
	table->is_hidden = !has_names && parse->n_zero != 0;
	if (parse->n)
		qsort_r(parse->lines, parse->n, sizeof(*parse->lines), compare_lines, table);
	make_ranges(parse);
	mem_free(parse->lines);
}

void kallsyms_parse(struct kallsyms *table, const char *text, size_t n)
{
	struct parse parse;
	parse_init(&parse, table);
	(void)add_lines(&parse, text, n, true);
	parse_finish(&parse);
}

static struct error *read_lines(struct parse *parse, int fd, char *block)
{
	size_t held = 0;
	for (;;) {
		size_t n;
		struct error *err = file_read(fd, block + held, READ_BYTES - held, &n);
		if (err)
			return err;
		held += n;
		size_t used = add_lines(parse, block, held, n == 0);
		if (n == 0)
			return NULL;
		/* A line longer than the block is none of ours. */
		if (used == 0 && held == READ_BYTES)
			used = held;
		held -= used;
		memmove(block, block + used, held);
	}
}

struct error *kallsyms_read(struct kallsyms *table, const char *path)
{
	CLEANUP(cleanup_fd) int fd = -1;
	struct error *err = file_open_regular(path, &fd);
	if (err)
		return err;
	CLEANUP(cleanup_mem) char *block = mem_alloc(READ_BYTES);
	struct parse parse;
	parse_init(&parse, table);
	err = read_lines(&parse, fd, block);
	parse_finish(&parse);
	if (err) {
		kallsyms_fini(table);
		return error_wrap(err, "%s", path);
	}
	return NULL;
}

void kallsyms_fini(struct kallsyms *table)
{
	address_index_fini(&table->ranges);
	mem_free(table->names);
	mem_free(table->modules);
	mem_free(table->module_names);
	buf_fini(&table->texts);
	*table = (struct kallsyms){0};
}

bool kallsyms_find(const struct kallsyms *table, uint64_t address, struct kallsyms_hit *out)
{
	uint32_t i = address_index_find(&table->ranges, address);
	if (i == ADDRESS_INDEX_NONE || table->names[i] == name_gap)
		return false;
	const char *texts = (const char *)table->texts.data;
	out->key = table->names[i] & ~name_folded;
	out->name = texts + out->key;
	out->module = texts + table->module_names[table->modules[i]];
	out->is_folded = table->names[i] & name_folded;
	return true;
}
