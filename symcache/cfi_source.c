/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/cfi_source.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "symcache/cfi_program.h"
#include "symcache/cfi_synthetic.h"
#include "symcache/debug_sections.h"

enum {
	/* More room than that between functions is code without rules. */
	MAX_PADDING_BYTES = 64,
	/* An entry point's code, up to its call of C. */
	ENTRY_BYTES = 64,
	/* The vdso is smaller; its trampoline is looked for in covered code too. */
	MAX_VDSO_TEXT_BYTES = 1 << 16,
	ARM64_WORD_BYTES = 4,
	/* Executable segments that are looked at: programs have one or two. */
	MAX_TEXTS = 16,
};

/* Who says something about a stretch of code, best first. */
enum origin {
	ORIGIN_TRAMPOLINE,
	ORIGIN_EH_FRAME,
	ORIGIN_DEBUG_FRAME,
	ORIGIN_DEBUG_FILE,
	ORIGIN_PLT,
	ORIGIN_ENTRY,
};
enum { N_SECTIONS = 3 };

struct item {
	struct cfi_entry entry;
	uint32_t order; /* as found */
	uint8_t origin;
};

/* An item whose rows are being taken. */
struct open_item {
	struct cfi_rows rows;
	size_t next;
	uint64_t end;
};

struct source {
	const struct elf_image *binary;
	struct load_segment texts[MAX_TEXTS];
	unsigned n_texts;
	struct cfi_section sections[N_SECTIONS];
	struct debug_sections debug_sections[2]; /* of the binary, of the debug file */
	struct item *items;
	size_t n_items, items_capacity;
	struct unwind_model model;
	struct cfi_usage usage;
	struct open_item open[CFI_SOURCE_MAX_NESTED];
	unsigned n_open;
};

/* NULL for what is made from the code. */
static struct cfi_section *section_of(struct source *source, enum origin origin)
{
	bool is_section = origin >= ORIGIN_EH_FRAME && origin < ORIGIN_EH_FRAME + N_SECTIONS;
	return is_section ? &source->sections[origin - ORIGIN_EH_FRAME] : NULL;
}

/* ---- the text ---- */

/* Bytes of the file from svma up to end or the end of its segment; NULL when there are none. */
static const uint8_t *bytes_at(const struct elf_image *image, const struct load_segment *segments,
			       size_t n_segments, uint64_t svma, uint64_t end, size_t *n_out)
{
	for (size_t i = 0; i < n_segments; i++) {
		const struct load_segment *segment = &segments[i];
		uint64_t distance = svma - segment->svma, n = segment->file_bytes;
		if (svma < segment->svma || distance >= n || segment->file_offset > image->size ||
		    distance >= image->size - segment->file_offset)
			continue;
		n = n > image->size - segment->file_offset ? image->size - segment->file_offset : n;
		n -= distance;
		*n_out = (size_t)(n < end - svma ? n : end - svma);
		return image->data + segment->file_offset + distance;
	}
	*n_out = 0;
	return NULL;
}

static const uint8_t *code_at(const struct source *source, uint64_t svma, uint64_t end,
			      size_t *n_out)
{
	return bytes_at(source->binary, source->texts, source->n_texts, svma, end, n_out);
}

static void find_texts(struct source *source)
{
	const struct elf_image *image = source->binary;
	for (uint32_t i = 0; i < image->n_segments && source->n_texts < MAX_TEXTS; i++) {
		const struct load_segment *segment = &image->segments[i];
		if (segment->is_executable && segment->file_bytes <= segment->memory_bytes &&
		    segment->memory_bytes < UINT64_MAX - segment->svma)
			source->texts[source->n_texts++] = *segment;
	}
}

/* The end of the executable segment around svma; 0 = none. */
static uint64_t text_end(const struct source *source, uint64_t svma)
{
	for (unsigned i = 0; i < source->n_texts; i++) {
		const struct load_segment *segment = &source->texts[i];
		if (svma >= segment->svma && svma - segment->svma < segment->memory_bytes)
			return segment->svma + segment->memory_bytes;
	}
	return 0;
}

/* ---- items ---- */

static struct error *add_item(struct source *source, const struct cfi_entry *entry,
			      enum origin origin)
{
	uint64_t end = text_end(source, entry->start);
	/* Code that the linker left out has entries too, at 0 or beyond. */
	if (!end)
		return NULL;
	if (source->n_items == CFI_SOURCE_MAX_ENTRIES)
		return error_new(ERROR_LIMIT, "call frame information: more than %d entries",
				 CFI_SOURCE_MAX_ENTRIES);
	if (source->n_items == source->items_capacity) {
		source->items_capacity = source->items_capacity ? 2 * source->items_capacity : 256;
		source->items =
			mem_realloc(source->items, source->items_capacity, sizeof(*source->items));
	}
	struct item *item = &source->items[source->n_items];
	*item = (struct item){
		.entry = *entry, .order = (uint32_t)source->n_items, .origin = (uint8_t)origin};
	if (item->entry.end > end)
		item->entry.end = end;
	source->n_items++;
	return NULL;
}

static struct error *add_range(struct source *source, uint64_t start, uint64_t end,
			       enum origin origin)
{
	const struct cfi_entry entry = {.start = start, .end = end};
	return add_item(source, &entry, origin);
}

/* Of those with one start the best comes last, and so on top. */
static int compare_items(const void *left, const void *right)
{
	const struct item *a = left, *b = right;
	if (a->entry.start != b->entry.start)
		return a->entry.start < b->entry.start ? -1 : 1;
	if (a->origin != b->origin)
		return a->origin > b->origin ? -1 : 1;
	return a->order > b->order ? -1 : 1;
}

static void sort_items(struct source *source)
{
	if (source->n_items)
		qsort(source->items, source->n_items, sizeof(*source->items), compare_items);
}

static struct error *read_items(struct source *source, enum origin origin)
{
	struct cfi_section *section = section_of(source, origin);
	size_t offset = 0;
	struct cfi_entry entry = {0};
	struct error *err = NULL;
	while (!err && section->size && cfi_section_next(section, &offset, &entry))
		err = add_item(source, &entry, origin);
	return err;
}

/* ---- sections ---- */

static uint64_t address_of(const struct elf_image *image, const char *name)
{
	const struct elf_section *section = elf_image_find(image, name);
	return section ? section->address : 0;
}

/* Without section headers: the header that the run-time uses leads to it (LSB Core 5.0, 10.6.2). */
static void open_eh_frame_by_header(const struct elf_image *image, struct cfi_section *out)
{
	enum { HEADER_BYTES = 8, VERSION = 1, ENCODING_PCREL_SDATA4 = 0x1b };
	uint64_t svma = image->eh_frame_hdr_svma;
	size_t n;
	const uint8_t *header =
		svma ? bytes_at(image, image->segments, image->n_segments, svma, UINT64_MAX, &n)
		     : NULL;
	if (!header || n < HEADER_BYTES || header[0] != VERSION ||
	    header[1] != ENCODING_PCREL_SDATA4)
		return;
	int32_t distance;
	memcpy(&distance, header + 4, sizeof(distance));
	out->svma = svma + 4 + (uint64_t)(int64_t)distance;
	out->data = bytes_at(image, image->segments, image->n_segments, out->svma, UINT64_MAX, &n);
	out->size = out->data ? n : 0;
}

static void open_eh_frame(const struct elf_image *image, struct cfi_section *out)
{
	const struct elf_section *section = elf_image_find(image, ".eh_frame");
	*out = (struct cfi_section){.is_eh_frame = true,
				    .text_svma = address_of(image, ".text"),
				    .data_svma = address_of(image, ".got")};
	hash_map_init(&out->cies_by_offset);
	if (section) {
		struct cursor c = elf_image_section(image, section);
		out->data = c.next;
		out->size = cursor_left(&c);
		out->svma = section->address;
	} else {
		open_eh_frame_by_header(image, out);
	}
}

static void open_debug_frame(struct debug_sections *sections, const struct elf_image *image,
			     struct cfi_section *out)
{
	*out = (struct cfi_section){0};
	hash_map_init(&out->cies_by_offset);
	debug_sections_init(sections, image, false, false);
	size_t size = sections->items[DEBUG_SECTION_FRAME].size;
	/* One that is damaged is read as far as it goes. */
	(void)debug_sections_need(sections, DEBUG_SECTION_FRAME, 0, size);
	struct cursor c = debug_sections_cursor(sections, DEBUG_SECTION_FRAME);
	out->data = c.next;
	out->size = cursor_left(&c);
}

/* ---- what the code says ---- */

static struct error *add_plts(struct source *source)
{
	static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
	struct error *err = NULL;
	for (size_t i = 0; i < ARRAY_LEN(names) && !err; i++) {
		const struct elf_section *section = elf_image_find(source->binary, names[i]);
		uint64_t end;
		if (section && section->type == SHT_PROGBITS && section->size &&
		    !__builtin_add_overflow(section->address, section->size, &end))
			err = add_range(source, section->address, end, ORIGIN_PLT);
	}
	return err;
}

/* Trampolines in code [start, end). Handlers return to their first byte, and callers are looked up
 * one before. */
static struct error *add_trampolines(struct source *source, uint64_t start, uint64_t end)
{
	enum unwind_machine machine = source->model.machine;
	uint64_t before = machine == UNWIND_X86_64 ? 1 : ARM64_WORD_BYTES;
	size_t n, at = 0, size;
	const uint8_t *code = code_at(source, start, end, &n);
	struct error *err = NULL;
	while (code && !err) {
		at += cfi_synthetic_find_trampoline(machine, code + at, n - at, &size);
		if (at >= n)
			break;
		uint64_t svma = start + at;
		err = add_range(source, svma < before ? svma : svma - before, svma + size,
				ORIGIN_TRAMPOLINE);
		at += size;
	}
	return err;
}

static struct error *add_hole(struct source *source, uint64_t start, uint64_t end)
{
	uint64_t entry = source->binary->entry_svma;
	struct error *err = add_trampolines(source, start, end);
	if (!err && entry >= start && entry < end)
		err = add_range(source, entry,
				end - entry > ENTRY_BYTES ? entry + ENTRY_BYTES : end,
				ORIGIN_ENTRY);
	return err;
}

/* Executable code that no item covers. Items are sorted, and more come behind them. */
static struct error *add_holes(struct source *source)
{
	size_t n = source->n_items;
	struct error *err = NULL;
	for (unsigned k = 0; k < source->n_texts && !err; k++) {
		uint64_t at = source->texts[k].svma, end = at + source->texts[k].file_bytes;
		if (source->model.machine == UNWIND_ARM64 && end - at <= MAX_VDSO_TEXT_BYTES)
			err = add_trampolines(source, at, end);
		for (size_t i = 0; i < n && !err; i++) {
			const struct cfi_entry entry = source->items[i].entry;
			if (entry.start >= end)
				break;
			if (entry.start > at)
				err = add_hole(source, at, entry.start);
			at = entry.end > at ? entry.end : at;
		}
		if (!err && at < end)
			err = add_hole(source, at, end);
	}
	return err;
}

/* ---- rows ---- */

static struct error *run_item(struct source *source, const struct item *item, struct cfi_rows *rows)
{
	const struct cfi_entry *entry = &item->entry;
	struct unwind_model *model = &source->model;
	struct cfi_section *section = section_of(source, (enum origin)item->origin);
	if (section)
		return cfi_section_run(section, entry, model, &source->usage, rows);
	if (item->origin == ORIGIN_PLT) {
		size_t n;
		const uint8_t *code = code_at(source, entry->start, entry->end, &n);
		return cfi_synthetic_plt(model, entry->start, code, n, rows);
	}
	uint32_t rule;
	struct error *err = item->origin == ORIGIN_TRAMPOLINE
				    ? cfi_synthetic_trampoline(model, &rule)
				    : cfi_synthetic_entry(model, &rule);
	if (err)
		return err;
	rows->n = 0;
	cfi_rows_add(rows, entry->start, rule);
	return NULL;
}

/* Rows of the open item that begin before svma. */
static struct error *take_rows(struct source *source, uint64_t svma)
{
	struct open_item *top = &source->open[source->n_open - 1];
	struct error *err = NULL;
	for (; !err && top->next < top->rows.n && top->rows.rows[top->next].svma < svma;
	     top->next++)
		err = unwind_model_row(&source->model, top->rows.rows[top->next].svma,
				       top->rows.rows[top->next].rule);
	return err;
}

/* The rule that an open item has at svma, and its later rows to come. */
static uint32_t resume(struct open_item *open, uint64_t svma)
{
	while (open->next < open->rows.n && open->rows.rows[open->next].svma <= svma)
		open->next++;
	return open->next ? open->rows.rows[open->next - 1].rule : UNWIND_RULE_NONE;
}

/* Whether the room up to the next item fills up the function that ends here. */
static bool is_padding(const struct source *source, uint64_t start, uint64_t end)
{
	size_t n;
	if (end - start > MAX_PADDING_BYTES)
		return false;
	const uint8_t *code = code_at(source, start, end, &n);
	return code && n == end - start && cfi_synthetic_is_padding(source->model.machine, code, n);
}

/* All that comes before svma, where the next item starts. */
static struct error *close_until(struct source *source, uint64_t svma)
{
	struct error *err = NULL;
	while (source->n_open && !err) {
		uint64_t end = source->open[source->n_open - 1].end;
		if (end > svma)
			return take_rows(source, svma);
		err = take_rows(source, end);
		uint32_t rule = UNWIND_RULE_NONE;
		/* Those around that end here too, or ended before, go with it. */
		do {
			source->n_open--;
		} while (source->n_open && source->open[source->n_open - 1].end <= end);
		if (source->n_open)
			rule = resume(&source->open[source->n_open - 1], end);
		else if (end == svma || is_padding(source, end, svma))
			break;
		if (!err)
			err = unwind_model_row(&source->model, end, rule);
	}
	return err;
}

static struct error *make_rows(struct source *source)
{
	struct error *err = NULL;
	for (size_t i = 0; i < source->n_items && !err; i++) {
		const struct item *item = &source->items[i];
		err = close_until(source, item->entry.start);
		if (err || source->n_open == CFI_SOURCE_MAX_NESTED ||
		    item->entry.start >= item->entry.end)
			continue;
		struct open_item *open = &source->open[source->n_open++];
		open->next = 0;
		open->end = item->entry.end;
		err = run_item(source, item, &open->rows);
		if (!open->rows.n)
			cfi_rows_add(&open->rows, item->entry.start, UNWIND_RULE_NONE);
	}
	return err ? err : close_until(source, UINT64_MAX);
}

/* ---- all of it ---- */

static void release(struct source *source)
{
	for (unsigned i = 0; i < N_SECTIONS; i++)
		cfi_section_fini(&source->sections[i]);
	for (size_t i = 0; i < ARRAY_LEN(source->debug_sections); i++)
		debug_sections_fini(&source->debug_sections[i]);
	for (unsigned i = 0; i < CFI_SOURCE_MAX_NESTED; i++)
		mem_free(source->open[i].rows.rows);
	mem_free(source->items);
}

/* extra_register as of struct unwind_model. */
static struct error *read_all(const struct elf_image *binary, const struct elf_image *debug,
			      enum unwind_machine machine, uint8_t extra_register,
			      struct cfi_usage *usage_out, struct unwind_model *out)
{
	struct source source = {.binary = binary};
	struct error *err = NULL;
	find_texts(&source);
	unwind_model_init(&source.model, machine);
	source.model.extra_register = extra_register;
	open_eh_frame(binary, section_of(&source, ORIGIN_EH_FRAME));
	open_debug_frame(&source.debug_sections[0], binary,
			 section_of(&source, ORIGIN_DEBUG_FRAME));
	if (debug)
		open_debug_frame(&source.debug_sections[1], debug,
				 section_of(&source, ORIGIN_DEBUG_FILE));
	for (unsigned i = 0; i < N_SECTIONS && !err; i++)
		err = read_items(&source, (enum origin)(ORIGIN_EH_FRAME + i));
	if (!err)
		err = add_plts(&source);
	sort_items(&source);
	if (!err)
		err = add_holes(&source);
	sort_items(&source);
	if (!err)
		err = make_rows(&source);
	*usage_out = source.usage;
	release(&source);
	if (err)
		unwind_model_fini(&source.model);
	else
		*out = source.model;
	return err;
}

/* The register that most CFAs are kept in, of those that calls preserve and that are followed for
 * no other reason; 0 = none. */
static uint8_t choose_extra(enum unwind_machine machine, const struct cfi_usage *usage)
{
	const uint64_t x86 = UINT64_C(1) << 3 | UINT64_C(0xf) << 12, arm64 = UINT64_C(0x3ff) << 19;
	uint64_t preserved = machine == UNWIND_X86_64 ? x86 : arm64, most = 0;
	uint8_t chosen = 0;
	for (uint8_t i = 0; i < UNWIND_N_REGISTERS; i++) {
		if (preserved >> i & 1 && usage->n_rows[i] > most) {
			most = usage->n_rows[i];
			chosen = i;
		}
	}
	return chosen;
}

struct error *cfi_source_read(const struct elf_image *binary, const struct elf_image *debug,
			      struct unwind_model *out)
{
	enum unwind_machine machine = binary->machine == EM_X86_64 ? UNWIND_X86_64 : UNWIND_ARM64;
	if (!binary->is_64 || binary->is_swapped || binary->type == ET_REL ||
	    (binary->machine != EM_X86_64 && binary->machine != EM_AARCH64))
		return error_new(ERROR_UNSUPPORTED, "unwind table: of another machine");
	if (debug && (!debug->is_64 || debug->is_swapped || debug->machine != binary->machine))
		debug = NULL;
	struct cfi_usage usage;
	struct error *err = read_all(binary, debug, machine, 0, &usage, out);
	uint8_t extra_register = err ? 0 : choose_extra(machine, &usage);
	if (!extra_register)
		return err;
	unwind_model_fini(out);
	return read_all(binary, debug, machine, extra_register, &usage, out);
}
