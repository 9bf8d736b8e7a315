/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/unwind_table_writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "symcache/unwind_phrases.h"
#include "symcache/unwind_table_layout.h"

/* A hole of more bytes ends a span: pages would cost more than another span. */
#define MAX_HOLE_BYTES UINT64_C(65536)

enum {
	PAGE_BYTES_BITS = 8,	  /* pages of 256 bytes have two rows on average */
	MAX_ROWS_OF_SMALL = 8192, /* two ways are tried */
};

struct span {
	uint64_t start, length;
	uint32_t first_page;
	size_t first_row, n_rows; /* of the model */
};

struct writer {
	const struct unwind_model *model;
	struct buf *out;
	struct error *err; /* the first */
	unsigned shift, page_bits;
	struct span *spans;
	uint32_t n_spans, spans_capacity, n_pages;
	uint32_t *order;   /* rules by use */
	uint32_t *numbers; /* of a model's rule, in that order */
	uint32_t n_rules, n_wide;
	struct unwind_item *items;
	size_t n_items;
	struct unwind_phrases phrases;
};

static void put(struct writer *writer, const void *bytes, size_t n)
{
	if (!writer->err)
		writer->err = buf_append(writer->out, bytes, n);
}

static void put_u64(struct writer *writer, uint64_t value)
{
	put(writer, &value, sizeof(value));
}

/* ---- spans ---- */

static unsigned choose_shift(const struct unwind_model *model)
{
	uint64_t bits = 1u << UNWIND_MAX_SHIFT;
	for (size_t i = 0; i < model->n_rows; i++)
		bits |= model->rows[i].svma;
	return (unsigned)__builtin_ctzll(bits);
}

static void add_span(struct writer *writer, size_t first, size_t end)
{
	const struct unwind_row *rows = writer->model->rows;
	if (writer->n_spans == writer->spans_capacity) {
		writer->spans_capacity = writer->spans_capacity ? 2 * writer->spans_capacity : 16;
		writer->spans =
			mem_realloc(writer->spans, writer->spans_capacity, sizeof(*writer->spans));
	}
	writer->spans[writer->n_spans++] = (struct span){
		.start = rows[first].svma,
		.length = rows[end].svma - rows[first].svma,
		.first_row = first,
		.n_rows = end - first,
	};
}

/* Every model ends with a row without a rule. */
static void find_spans(struct writer *writer)
{
	const struct unwind_model *model = writer->model;
	size_t first = 0;
	for (size_t i = 0; i < model->n_rows; i++) {
		if (model->rows[i].rule != UNWIND_RULE_NONE)
			continue;
		if (i + 1 < model->n_rows &&
		    model->rows[i + 1].svma - model->rows[i].svma <= MAX_HOLE_BYTES)
			continue;
		add_span(writer, first, i);
		first = i + 1;
	}
}

static void number_pages(struct writer *writer)
{
	uint64_t page = 0;
	for (uint32_t i = 0; i < writer->n_spans && page <= UNWIND_MAX_PAGES; i++) {
		struct span *span = &writer->spans[i];
		span->first_page = (uint32_t)page;
		page += ((span->length - 1) >> writer->shift >> writer->page_bits) + 1;
	}
	if (page > UNWIND_MAX_PAGES || page << writer->page_bits > UINT32_MAX)
		writer->err = error_new(ERROR_LIMIT, "unwind table: more text than %u pages",
					UNWIND_MAX_PAGES);
	writer->n_pages = (uint32_t)page;
}

/* ---- rules ---- */

struct use {
	uint32_t rule, n;
};

static int compare_uses(const void *left, const void *right)
{
	const struct use *a = left, *b = right;
	if (a->n != b->n)
		return a->n > b->n ? -1 : 1;
	return a->rule < b->rule ? -1 : a->rule > b->rule;
}

/* The most frequent first, unused ones left out. */
static void order_rules(struct writer *writer)
{
	const struct unwind_model *model = writer->model;
	struct use *uses = mem_zalloc(model->n_rules, sizeof(*uses));
	for (uint32_t i = 0; i < model->n_rules; i++)
		uses[i].rule = i;
	for (uint32_t i = 0; i < writer->n_spans; i++) {
		const struct span *span = &writer->spans[i];
		for (size_t k = 0; k < span->n_rows; k++)
			uses[model->rows[span->first_row + k].rule].n++;
	}
	qsort(uses, model->n_rules, sizeof(*uses), compare_uses);
	writer->order = mem_zalloc(model->n_rules, sizeof(*writer->order));
	writer->numbers = mem_zalloc(model->n_rules, sizeof(*writer->numbers));
	for (uint32_t i = 0; i < model->n_rules && uses[i].n; i++) {
		writer->order[i] = uses[i].rule;
		writer->numbers[uses[i].rule] = i;
		writer->n_rules++;
	}
	mem_free(uses);
}

/* Units below the CFA, for a value that is saved there; false when they do not fit. */
static bool shorten(const struct unwind_value *value, uint8_t *out)
{
	int32_t units = -(value->offset / UNWIND_OFFSET_UNIT);
	*out = (uint8_t)units;
	return value->offset % UNWIND_OFFSET_UNIT == 0 && units >= 0 && units <= UINT8_MAX;
}

/* The field for a value; false when it has no short form. */
static bool shape_value(const struct unwind_value *value, unsigned *field_out)
{
	static const uint8_t fields[UNWIND_KIND_N] = {
		[UNWIND_UNDEFINED] = UNWIND_SHAPE_UNDEFINED,
		[UNWIND_SAME] = UNWIND_SHAPE_SAME,
		[UNWIND_AT_CFA] = UNWIND_SHAPE_AT_CFA,
	};
	*field_out = fields[value->kind];
	return value->kind == UNWIND_UNDEFINED || *field_out != UNWIND_SHAPE_UNDEFINED;
}

/* Of the return address; the saved place is its own, or that of the frame pointer beside it. */
static bool shape_return_address(const struct unwind_model *model, const struct unwind_rule *rule,
				 unsigned *field_out, uint8_t *saved_out)
{
	const struct unwind_value *value = &rule->return_address;
	if (model->machine == UNWIND_X86_64) {
		*field_out =
			value->kind == UNWIND_AT_CFA ? UNWIND_SHAPE_AT_CFA : UNWIND_SHAPE_UNDEFINED;
		return value->kind == UNWIND_UNDEFINED ||
		       (value->kind == UNWIND_AT_CFA && value->offset == -UNWIND_OFFSET_UNIT);
	}
	if (value->kind == UNWIND_REGISTER && value->register_number == UNWIND_ARM64_LR) {
		*field_out = UNWIND_SHAPE_SAME;
		return true;
	}
	if (value->kind == UNWIND_SAME || !shape_value(value, field_out))
		return false;
	if (value->kind != UNWIND_AT_CFA)
		return true;
	if (rule->frame_pointer.kind == UNWIND_AT_CFA)
		return value->offset == rule->frame_pointer.offset + UNWIND_OFFSET_UNIT;
	return shorten(value, saved_out);
}

/* A rule's short form; false when it has none. */
static bool shape_rule(const struct unwind_model *model, const struct unwind_rule *rule,
		       uint8_t out[UNWIND_RULE_WITH_EXTRA_BYTES])
{
	bool is_x86 = model->machine == UNWIND_X86_64;
	unsigned sp = is_x86 ? UNWIND_X86_64_SP : UNWIND_ARM64_SP;
	unsigned fp = is_x86 ? UNWIND_X86_64_FP : UNWIND_ARM64_FP;
	unsigned frame_pointer, extra, return_address;
	int32_t units = rule->cfa.offset / UNWIND_OFFSET_UNIT;
	memset(out, 0, UNWIND_RULE_WITH_EXTRA_BYTES);
	if (rule->cfa.kind != UNWIND_REGISTER || rule->cfa.offset % UNWIND_OFFSET_UNIT ||
	    units < 0 || units > UNWIND_CFA_MASK ||
	    (rule->cfa.register_number != sp && rule->cfa.register_number != fp) ||
	    (rule->flags & (uint8_t)~UNWIND_RETURN_ADDRESS_SIGNED) ||
	    (rule->extra_register && rule->extra_register != model->extra_register) ||
	    !shape_value(&rule->frame_pointer, &frame_pointer) ||
	    !shape_value(&rule->extra, &extra) ||
	    (rule->frame_pointer.kind == UNWIND_AT_CFA &&
	     !shorten(&rule->frame_pointer, &out[UNWIND_RULE_AT_SAVED])) ||
	    !shape_return_address(model, rule, &return_address, &out[UNWIND_RULE_AT_SAVED]) ||
	    (rule->extra.kind == UNWIND_AT_CFA &&
	     !shorten(&rule->extra, &out[UNWIND_RULE_AT_EXTRA])))
		return false;
	out[0] = (uint8_t)((rule->cfa.register_number == fp ? UNWIND_SHAPE_CFA_FP : 0) |
			   return_address << UNWIND_SHAPE_RETURN_SHIFT |
			   frame_pointer << UNWIND_SHAPE_FP_SHIFT |
			   extra << UNWIND_SHAPE_EXTRA_SHIFT);
	uint16_t cfa = (uint16_t)((uint32_t)units | (rule->flags ? UNWIND_CFA_SIGNED : 0u));
	memcpy(out + UNWIND_RULE_AT_CFA, &cfa, sizeof(cfa));
	return true;
}

static bool is_wide(const struct unwind_model *model, uint32_t number)
{
	uint8_t bytes[UNWIND_RULE_WITH_EXTRA_BYTES];
	const struct unwind_model_rule *slot = &model->rules[number];
	return number != UNWIND_RULE_NONE && !slot->plt_bound &&
	       !shape_rule(model, &slot->rule, bytes);
}

static void put_rules(struct writer *writer)
{
	const struct unwind_model *model = writer->model;
	uint16_t n_wide = 0;
	for (uint32_t i = 0; i < writer->n_rules; i++) {
		uint32_t number = writer->order[i];
		const struct unwind_model_rule *slot = &model->rules[number];
		uint8_t bytes[UNWIND_RULE_WITH_EXTRA_BYTES] = {0};
		uint16_t operand = 0;
		if (number == UNWIND_RULE_NONE) {
			bytes[0] = UNWIND_SHAPE_NONE;
		} else if (slot->plt_bound) {
			bytes[0] = UNWIND_SHAPE_PLT;
			operand = slot->plt_bound;
		} else if (is_wide(model, number)) {
			bytes[0] = UNWIND_SHAPE_WIDE;
			operand = n_wide++;
		}
		if (bytes[0])
			memcpy(bytes + UNWIND_RULE_AT_CFA, &operand, sizeof(operand));
		else
			(void)shape_rule(model, &slot->rule, bytes);
		put(writer, bytes,
		    model->extra_register ? UNWIND_RULE_WITH_EXTRA_BYTES : UNWIND_RULE_BYTES);
	}
}

static void put_wide_rules(struct writer *writer)
{
	for (uint32_t i = 0; i < writer->n_rules; i++) {
		if (is_wide(writer->model, writer->order[i]))
			put(writer, &writer->model->rules[writer->order[i]].rule,
			    sizeof(struct unwind_rule));
	}
}

static uint32_t count_wide_rules(const struct writer *writer)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < writer->n_rules; i++)
		n += is_wide(writer->model, writer->order[i]);
	return n;
}

/* ---- rows ---- */

static void make_items(struct writer *writer)
{
	const struct unwind_model *model = writer->model;
	mem_free(writer->items);
	writer->items = mem_alloc((model->n_rows + 1) * sizeof(*writer->items));
	writer->n_items = 0;
	for (uint32_t i = 0; i < writer->n_spans; i++) {
		const struct span *span = &writer->spans[i];
		for (size_t k = 0; k < span->n_rows; k++) {
			const struct unwind_row *row = &model->rows[span->first_row + k];
			writer->items[writer->n_items++] = (struct unwind_item){
				.unit = (span->first_page << writer->page_bits) +
					(uint32_t)((row->svma - span->start) >> writer->shift),
				.code = writer->numbers[row->rule],
			};
		}
	}
}

static void put_spans(struct writer *writer)
{
	for (uint32_t i = 0; i < writer->n_spans; i++) {
		put_u64(writer, writer->spans[i].start);
		put_u64(writer, writer->spans[i].length);
		put_u64(writer, writer->spans[i].first_page);
	}
}

/* How many rows are before each page, and in all. */
static void put_pages(struct writer *writer, unsigned page_bytes)
{
	uint32_t row = 0;
	for (uint32_t page = 0; page <= writer->n_pages; page++) {
		while (row < writer->n_items && writer->items[row].unit >> writer->page_bits < page)
			row++;
		put(writer, &row, page_bytes);
	}
}

static void put_phrases(struct writer *writer, unsigned rule_bytes)
{
	for (uint32_t i = 0; i < writer->phrases.n; i++) {
		const struct unwind_phrase *phrase = &writer->phrases.phrases[i];
		put(writer, phrase->distances + 1, phrase->n_rows - 1u);
		for (unsigned k = 0; k < phrase->n_rows; k++)
			put(writer, &phrase->rules[k], rule_bytes);
	}
}

static void put_rows(struct writer *writer, unsigned code_bytes)
{
	static const uint8_t tail[UNWIND_TAIL_BYTES];
	for (size_t i = 0; i < writer->n_items; i++) {
		uint8_t offset = (uint8_t)(writer->items[i].unit & ((1u << writer->page_bits) - 1));
		put(writer, &offset, sizeof(offset));
	}
	for (size_t i = 0; i < writer->n_items; i++)
		put(writer, &writer->items[i].code, code_bytes);
	put(writer, tail, sizeof(tail));
}

/* Bytes that items of several parts take. */
struct widths {
	unsigned page_bytes, code_bytes, rule_bytes;
};

static struct widths widths_of(const struct writer *writer)
{
	return (struct widths){
		.page_bytes = writer->n_items <= UINT16_MAX ? 2 : 4,
		.code_bytes = writer->n_rules + writer->phrases.n <= UINT8_MAX + 1 ? 1 : 2,
		.rule_bytes = writer->n_rules <= UINT8_MAX + 1 ? 1 : 2,
	};
}

static void put_header(struct writer *writer, const struct widths *widths)
{
	const struct unwind_model *model = writer->model;
	uint8_t bytes[UNWIND_HEADER_BYTES] = {
		[UNWIND_AT_VERSION] = UNWIND_TABLE_VERSION,
		[UNWIND_AT_MACHINE] = (uint8_t)model->machine,
		[UNWIND_AT_SHIFT] = (uint8_t)writer->shift,
		[UNWIND_AT_PAGE_BITS] = (uint8_t)writer->page_bits,
		[UNWIND_AT_CODE_BYTES] = (uint8_t)widths->code_bytes,
		[UNWIND_AT_PHRASE_RULE_BYTES] = (uint8_t)widths->rule_bytes,
		[UNWIND_AT_EXTRA_REGISTER] = model->extra_register,
		[UNWIND_AT_PAGE_BYTES] = (uint8_t)widths->page_bytes,
	};
	const uint32_t counts[] = {
		writer->n_spans, writer->n_pages,	   (uint32_t)writer->n_items,
		writer->n_rules, count_wide_rules(writer), (uint32_t)model->expressions.size,
	};
	memcpy(bytes + UNWIND_AT_SPANS, counts, sizeof(counts));
	memcpy(bytes + UNWIND_AT_PHRASES, writer->phrases.n_of_rows + 2,
	       (UNWIND_MAX_PHRASE - 1) * sizeof(uint16_t));
	put(writer, bytes, sizeof(bytes));
}

/* Rows and phrases with at most so many codes. */
static void make_rows(struct writer *writer, uint32_t max_codes)
{
	size_t n;
	unwind_phrases_fini(&writer->phrases);
	make_items(writer);
	unwind_phrases_make(&writer->phrases, writer->items, writer->n_items, writer->n_rules,
			    max_codes - writer->n_rules, writer->page_bits, &n);
	writer->n_items = n;
}

/* Bytes of rows and phrases. */
static size_t rows_bytes(const struct writer *writer)
{
	struct widths widths = widths_of(writer);
	size_t bytes = writer->n_items * (1 + widths.code_bytes);
	for (uint32_t i = 0; i < writer->phrases.n; i++)
		bytes += writer->phrases.phrases[i].n_rows * (1 + widths.rule_bytes) - 1;
	return bytes;
}

/* Codes of one byte are worth fewer phrases in small tables. */
static void choose_rows(struct writer *writer)
{
	make_rows(writer, UINT16_MAX);
	if (writer->n_rules + writer->phrases.n <= UINT8_MAX + 1 || writer->n_rules > UINT8_MAX ||
	    writer->n_items > MAX_ROWS_OF_SMALL)
		return;
	size_t bytes = rows_bytes(writer);
	make_rows(writer, UINT8_MAX + 1);
	if (rows_bytes(writer) > bytes)
		make_rows(writer, UINT16_MAX);
}

static void write_all(struct writer *writer)
{
	choose_rows(writer);
	struct widths widths = widths_of(writer);
	put_header(writer, &widths);
	put_spans(writer);
	put_pages(writer, widths.page_bytes);
	put_rules(writer);
	put_wide_rules(writer);
	put(writer, writer->model->expressions.data, writer->model->expressions.size);
	put_phrases(writer, widths.rule_bytes);
	put_rows(writer, widths.code_bytes);
}

struct error *unwind_table_write(const struct unwind_model *model, struct buf *out)
{
	struct writer writer = {
		.model = model,
		.out = out,
		.shift = choose_shift(model),
	};
	writer.page_bits = PAGE_BYTES_BITS - writer.shift;
	find_spans(&writer);
	number_pages(&writer);
	if (!writer.err) {
		order_rules(&writer);
		write_all(&writer);
	}
	unwind_phrases_fini(&writer.phrases);
	mem_free(writer.items);
	mem_free(writer.numbers);
	mem_free(writer.order);
	mem_free(writer.spans);
	return writer.err;
}
