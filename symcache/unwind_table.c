/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/unwind_table.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/cursor.h"
#include "base/mem.h"
#include "symcache/unwind_expression.h"
#include "symcache/unwind_table_layout.h"

static_assert(sizeof(struct unwind_rule) == UNWIND_WIDE_RULE_BYTES, "wide rules are copied");

enum { MARK_NONE = UINT16_MAX }; /* in the reserved field of a rule that is none */

static struct error *damaged(const char *what)
{
	return error_new(ERROR_BAD_DATA, "unwind table damaged: %s", what);
}

static inline uint16_t load_u16(const uint8_t *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t load_u32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t load_u64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t load_code(const struct unwind_table *table, uint32_t row)
{
	return table->code_bytes == 1 ? table->codes[row]
				      : load_u16(table->codes + (size_t)row * sizeof(uint16_t));
}

/* The page's first row; asked for n_pages too. */
static inline uint32_t first_row(const struct unwind_table *table, uint32_t page)
{
	return table->page_bytes == sizeof(uint16_t)
		       ? load_u16(table->pages + (size_t)page * sizeof(uint16_t))
		       : load_u32(table->pages + (size_t)page * sizeof(uint32_t));
}

/* ---- opening ---- */

/* n items of the size; NULL when they are not there. */
static const uint8_t *take(struct cursor *c, uint64_t n, size_t item_bytes)
{
	if (n > cursor_left(c) / item_bytes) {
		c->is_bad = true;
		return NULL;
	}
	return cursor_bytes(c, (size_t)n * item_bytes);
}

static struct error *read_header(const uint8_t *bytes, struct unwind_table *out)
{
	if (bytes[UNWIND_AT_VERSION] != UNWIND_TABLE_VERSION)
		return error_new(ERROR_UNSUPPORTED, "unwind table of version %u, not %u",
				 bytes[UNWIND_AT_VERSION], UNWIND_TABLE_VERSION);
	*out = (struct unwind_table){
		.machine = (enum unwind_machine)bytes[UNWIND_AT_MACHINE],
		.shift = bytes[UNWIND_AT_SHIFT],
		.code_bytes = bytes[UNWIND_AT_CODE_BYTES],
		.phrase_rule_bytes = bytes[UNWIND_AT_PHRASE_RULE_BYTES],
		.extra_register = bytes[UNWIND_AT_EXTRA_REGISTER],
		.page_bytes = bytes[UNWIND_AT_PAGE_BYTES],
		.n_spans = load_u32(bytes + UNWIND_AT_SPANS),
		.n_pages = load_u32(bytes + UNWIND_AT_PAGES),
		.n_rows = load_u32(bytes + UNWIND_AT_ROWS),
		.n_rules = load_u32(bytes + UNWIND_AT_RULES),
		.expression_bytes = load_u32(bytes + UNWIND_AT_EXPRESSION_BYTES),
	};
	unsigned page_bits = bytes[UNWIND_AT_PAGE_BITS];
	out->page_shift = (uint8_t)(out->shift + page_bits);
	out->page_mask = (uint8_t)((1u << (page_bits & 31)) - 1);
	out->rule_bytes = out->extra_register ? UNWIND_RULE_WITH_EXTRA_BYTES : UNWIND_RULE_BYTES;
	bool is_ok = (out->machine == UNWIND_X86_64 || out->machine == UNWIND_ARM64) &&
		     out->shift <= UNWIND_MAX_SHIFT && page_bits <= UNWIND_MAX_PAGE_BITS &&
		     (out->page_bytes == sizeof(uint16_t) || out->page_bytes == sizeof(uint32_t)) &&
		     (out->code_bytes == 1 || out->code_bytes == 2) &&
		     (out->phrase_rule_bytes == 1 || out->phrase_rule_bytes == 2) &&
		     out->extra_register < UNWIND_N_REGISTERS && out->n_rows <= UNWIND_MAX_ROWS &&
		     out->n_rules <= UNWIND_MAX_RULES && out->n_pages <= UNWIND_MAX_PAGES &&
		     load_u32(bytes + UNWIND_AT_WIDE_RULES) <= UNWIND_MAX_WIDE_RULES &&
		     out->expression_bytes <= UNWIND_MAX_EXPRESSION_BYTES &&
		     out->n_spans <= out->n_pages && (out->n_pages == 0) == (out->n_rows == 0);
	return is_ok ? NULL : damaged("header");
}

/* Rows of a phrase: their distances from the first, all but that one's own, and their rules. */
static size_t phrase_bytes(const struct unwind_table *table, unsigned n_rows)
{
	return n_rows - 1 + (size_t)n_rows * table->phrase_rule_bytes;
}

/* Codes are numbers of rules, then of phrases by their number of rows. */
static struct error *take_phrases(struct cursor *c, const uint8_t *bytes, struct unwind_table *out)
{
	uint32_t limit = out->n_rules;
	for (unsigned n = 2; n <= UNWIND_MAX_PHRASE; n++) {
		uint32_t count = load_u16(bytes + UNWIND_AT_PHRASES + (n - 2) * sizeof(uint16_t));
		out->phrases[n] = take(c, count, phrase_bytes(out, n));
		out->phrase_limits[n - 2] = (uint16_t)limit;
		limit += count;
		out->n_phrases += count;
		if (limit > UINT16_MAX)
			return damaged("number of phrases");
	}
	out->phrase_limits[UNWIND_MAX_PHRASE - 1] = (uint16_t)limit;
	return NULL;
}

static struct error *check_phrases(const struct unwind_table *table)
{
	for (unsigned n = 2; n <= UNWIND_MAX_PHRASE; n++) {
		uint32_t count =
			(uint32_t)table->phrase_limits[n - 1] - table->phrase_limits[n - 2];
		for (uint32_t i = 0; i < count; i++) {
			const uint8_t *rules =
				table->phrases[n] + i * phrase_bytes(table, n) + (n - 1);
			for (unsigned k = 0; k < n; k++) {
				uint32_t rule = table->phrase_rule_bytes == 1
							? rules[k]
							: load_u16(rules + (size_t)k * 2);
				if (rule >= table->n_rules)
					return damaged("rule of a phrase");
			}
		}
	}
	return NULL;
}

static bool is_good_value(const struct unwind_table *table, const struct unwind_value *value)
{
	if (value->kind >= UNWIND_KIND_N || value->register_number >= UNWIND_N_REGISTERS)
		return false;
	if (value->kind != UNWIND_AT_EXPRESSION && value->kind != UNWIND_EXPRESSION)
		return true;
	uint32_t at = (uint32_t)value->offset;
	if (at > table->expression_bytes || table->expression_bytes - at < sizeof(uint16_t))
		return false;
	return load_u16(table->expressions + at) <= table->expression_bytes - at - sizeof(uint16_t);
}

static bool read_wide_rule(const struct unwind_table *table, const uint8_t *bytes,
			   struct unwind_rule *out)
{
	memcpy(out, bytes, sizeof(*out));
	return (out->cfa.kind == UNWIND_REGISTER || out->cfa.kind == UNWIND_EXPRESSION) &&
	       is_good_value(table, &out->cfa) && is_good_value(table, &out->return_address) &&
	       is_good_value(table, &out->frame_pointer) && is_good_value(table, &out->extra) &&
	       out->return_address.kind != UNWIND_SAME &&
	       out->extra_register < UNWIND_N_REGISTERS && !out->reserved;
}

static unsigned field_of(unsigned shape, unsigned shift)
{
	return shape >> shift & UNWIND_SHAPE_FIELD_MASK;
}

/* saved_at in units below the CFA. */
static struct unwind_value saved_value(unsigned field, int32_t saved_at)
{
	static const uint8_t kinds[UNWIND_SHAPE_FIELD_MASK + 1] = {
		[UNWIND_SHAPE_UNDEFINED] = UNWIND_UNDEFINED,
		[UNWIND_SHAPE_SAME] = UNWIND_SAME,
		[UNWIND_SHAPE_AT_CFA] = UNWIND_AT_CFA,
	};
	return (struct unwind_value){
		.kind = kinds[field],
		.offset = field == UNWIND_SHAPE_AT_CFA ? -saved_at * UNWIND_OFFSET_UNIT : 0};
}

static void read_short_rule(const struct unwind_table *table, const uint8_t *bytes,
			    struct unwind_rule *out)
{
	bool is_x86 = table->machine == UNWIND_X86_64;
	unsigned shape = bytes[0], cfa = load_u16(bytes + UNWIND_RULE_AT_CFA);
	unsigned frame_pointer = field_of(shape, UNWIND_SHAPE_FP_SHIFT);
	unsigned return_address = field_of(shape, UNWIND_SHAPE_RETURN_SHIFT);
	int32_t saved_at = bytes[UNWIND_RULE_AT_SAVED];
	int32_t return_at = is_x86 ? 1 : saved_at - (frame_pointer == UNWIND_SHAPE_AT_CFA);
	bool is_fp = shape & UNWIND_SHAPE_CFA_FP;
	*out = (struct unwind_rule){
		.cfa = {.kind = UNWIND_REGISTER,
			.register_number = is_x86 ? (is_fp ? UNWIND_X86_64_FP : UNWIND_X86_64_SP)
						  : (is_fp ? UNWIND_ARM64_FP : UNWIND_ARM64_SP),
			.offset = (int32_t)(cfa & UNWIND_CFA_MASK) * UNWIND_OFFSET_UNIT},
		.return_address = saved_value(return_address, return_at),
		.frame_pointer = saved_value(frame_pointer, saved_at),
		.extra_register = table->extra_register,
		.flags = cfa & UNWIND_CFA_SIGNED ? UNWIND_RETURN_ADDRESS_SIGNED : 0,
	};
	if (return_address == UNWIND_SHAPE_SAME)
		out->return_address = (struct unwind_value){.kind = UNWIND_REGISTER,
							    .register_number = UNWIND_ARM64_LR};
	if (table->extra_register)
		out->extra = saved_value(field_of(shape, UNWIND_SHAPE_EXTRA_SHIFT),
					 bytes[UNWIND_RULE_AT_EXTRA]);
}

/* A rule as it is handed out; MARK_NONE where there is none, for a PLT the bound in its slots. */
static bool read_rule(const struct unwind_table *table, const uint8_t *bytes,
		      const uint8_t *wide_rules, uint32_t n_wide, struct unwind_rule *out)
{
	uint16_t operand = load_u16(bytes + UNWIND_RULE_AT_CFA);
	switch (bytes[0]) {
	case UNWIND_SHAPE_NONE:
		*out = (struct unwind_rule){.reserved = MARK_NONE};
		return true;
	case UNWIND_SHAPE_WIDE:
		return operand < n_wide &&
		       read_wide_rule(table, wide_rules + (size_t)operand * UNWIND_WIDE_RULE_BYTES,
				      out);
	case UNWIND_SHAPE_PLT:
		*out = (struct unwind_rule){
			.cfa = {.kind = UNWIND_REGISTER,
				.register_number = UNWIND_X86_64_SP,
				.offset = UNWIND_OFFSET_UNIT},
			.return_address = {.kind = UNWIND_AT_CFA, .offset = -UNWIND_OFFSET_UNIT},
			.frame_pointer = {.kind = UNWIND_SAME},
			.extra = {.kind = table->extra_register ? UNWIND_SAME : UNWIND_UNDEFINED},
			.extra_register = table->extra_register,
			.reserved = operand,
		};
		return operand && operand < UNWIND_PLT_SLOT_BYTES;
	default:
		read_short_rule(table, bytes, out);
		return bytes[0] <= UNWIND_SHAPE_LAST_SHORT;
	}
}

static struct error *check_expressions(const struct unwind_table *table)
{
	struct cursor c = cursor_make(table->expressions, table->expression_bytes, false);
	while (cursor_left(&c)) {
		uint16_t n = cursor_u16(&c);
		const uint8_t *expression = cursor_bytes(&c, n);
		if (!expression || !unwind_expression_check(expression, n, NULL))
			return damaged("expression");
	}
	return NULL;
}

static uint32_t count_plt_rules(const struct unwind_table *table, const uint8_t *rules)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < table->n_rules; i++)
		n += rules[(size_t)i * table->rule_bytes] == UNWIND_SHAPE_PLT;
	return n;
}

/*
 * PLT rules have their form for the upper part of a slot behind all rules; which one it is stands
 * in the reserved field, beside the bound between the parts.
 */
static struct error *read_rules(struct unwind_table *table, const uint8_t *rules,
				const uint8_t *wide_rules, uint32_t n_wide)
{
	uint32_t n_plt = count_plt_rules(table, rules);
	if (n_plt >= MARK_NONE / UNWIND_PLT_SLOT_BYTES)
		return damaged("PLT rules");
	table->rules = mem_alloc(((size_t)table->n_rules + n_plt) * sizeof(*table->rules));
	struct unwind_rule *upper = table->rules + table->n_rules;
	for (uint32_t i = 0; i < table->n_rules; i++) {
		struct unwind_rule *rule = &table->rules[i];
		if (!read_rule(table, rules + (size_t)i * table->rule_bytes, wide_rules, n_wide,
			       rule))
			return damaged("rule");
		if (!rule->reserved || rule->reserved == MARK_NONE)
			continue;
		*upper = *rule;
		upper->cfa.offset += UNWIND_PLT_PUSHED_BYTES;
		upper->reserved = 0;
		rule->reserved =
			(uint16_t)(rule->reserved |
				   (upper - table->rules - table->n_rules) * UNWIND_PLT_SLOT_BYTES);
		upper++;
	}
	return NULL;
}

/* Spans rise and share no pages; each has those that its bytes need. */
static struct error *check_spans(const struct unwind_table *table)
{
	uint64_t last = 0, page = 0;
	for (uint32_t i = 0; i < table->n_spans; i++) {
		const uint8_t *span = table->spans + (size_t)i * UNWIND_SPAN_BYTES;
		uint64_t start = load_u64(span), length = load_u64(span + 8);
		if (length == 0 || length > UINT64_MAX - start || (i && start < last) ||
		    load_u64(span + 16) != page)
			return damaged("span");
		last = start + length;
		page += ((length - 1) >> table->page_shift) + 1;
		if (page > table->n_pages)
			return damaged("pages of a span");
	}
	return page == table->n_pages ? NULL : damaged("number of pages");
}

static struct error *check_pages(const struct unwind_table *table)
{
	const uint32_t n_codes = table->phrase_limits[UNWIND_MAX_PHRASE - 1];
	uint32_t row = 0;
	/* Every search finds a row that way, if not in its own page. */
	if (table->n_pages &&
	    (first_row(table, 0) != 0 || first_row(table, 1) == 0 || table->offsets[0] != 0))
		return damaged("its first page");
	for (uint32_t page = 0; page < table->n_pages; page++) {
		uint32_t end = first_row(table, page + 1);
		if (end < row || end > table->n_rows)
			return damaged("rows of a page");
		for (uint32_t first = row; row < end; row++) {
			if (load_code(table, row) >= n_codes ||
			    (row > first && table->offsets[row] <= table->offsets[row - 1]))
				return damaged("row");
		}
	}
	return row == table->n_rows ? NULL : damaged("number of rows");
}

struct error *unwind_table_open(const void *bytes, size_t size, struct unwind_table *out)
{
	struct unwind_table table;
	if (size < UNWIND_HEADER_BYTES)
		return damaged("it ends within the header");
	struct error *err = read_header(bytes, &table);
	if (err)
		return err;
	struct cursor c = cursor_make(bytes, size, false);
	uint32_t n_wide = load_u32((const uint8_t *)bytes + UNWIND_AT_WIDE_RULES);
	cursor_skip(&c, UNWIND_HEADER_BYTES);
	table.spans = take(&c, table.n_spans, UNWIND_SPAN_BYTES);
	table.pages = take(&c, (uint64_t)table.n_pages + 1, table.page_bytes);
	const uint8_t *rules = take(&c, table.n_rules, table.rule_bytes);
	const uint8_t *wide_rules = take(&c, n_wide, UNWIND_WIDE_RULE_BYTES);
	table.expressions = take(&c, table.expression_bytes, 1);
	err = take_phrases(&c, bytes, &table);
	if (err)
		return err;
	table.offsets = take(&c, table.n_rows, 1);
	table.codes = take(&c, table.n_rows, table.code_bytes);
	(void)take(&c, UNWIND_TAIL_BYTES, 1);
	if (!cursor_is_ok(&c) || cursor_left(&c))
		return damaged("its size");
	err = check_spans(&table);
	if (!err)
		err = check_phrases(&table);
	if (!err)
		err = check_pages(&table);
	if (!err)
		err = check_expressions(&table);
	if (!err)
		err = read_rules(&table, rules, wide_rules, n_wide);
	if (err) {
		unwind_table_close(&table);
		return err;
	}
	if (table.n_spans) {
		table.start = load_u64(table.spans);
		table.length = load_u64(table.spans + 8);
	}
	*out = table;
	return NULL;
}

void unwind_table_close(struct unwind_table *table)
{
	mem_free(table->rules);
	*table = (struct unwind_table){0};
}

/* ---- finding ---- */

/* Of a later span than the first; *distance_out is from its start. */
static bool find_span(const struct unwind_table *table, uint64_t svma, uint64_t *distance_out,
		      uint32_t *page_out)
{
	uint32_t low = 0;
	for (uint32_t high = table->n_spans; low < high;) {
		uint32_t middle = low + (high - low) / 2;
		if (load_u64(table->spans + (size_t)middle * UNWIND_SPAN_BYTES) <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	const uint8_t *span = table->spans + (size_t)(low - 1) * UNWIND_SPAN_BYTES;
	*distance_out = svma - load_u64(span);
	*page_out = (uint32_t)load_u64(span + 16);
	return *distance_out < load_u64(span + 8);
}

/*
 * How many of n rising bytes are at most limit. Eight at a time: the highest bit of each lane of
 * is_low says that limit - byte does not borrow.
 */
static inline uint32_t count_at_most(const uint8_t *bytes, uint32_t n, uint8_t limit)
{
	const uint64_t ones = 0x0101010101010101, high = ones << 7, limits = ones * limit;
	uint32_t count = 0;
	for (;; bytes += 8, n -= 8) {
		uint64_t word = load_u64(bytes);
		uint64_t low_bits = (limits | high) - (word & ~high);
		uint64_t is_low = ((limits & ~word) | (~(limits ^ word) & low_bits)) & high;
		if (n < 8)
			is_low &= (UINT64_C(1) << 8 * n) - 1;
		count += (uint32_t)((is_low >> 7) * ones >> 56);
		if (n <= 8)
			return count;
	}
}

/* Of a phrase, at so many units from its first row. */
static inline uint32_t find_in_phrase(const struct unwind_table *table, uint32_t code,
				      uint8_t distance)
{
	unsigned n = 1;
	for (unsigned i = 0; i < UNWIND_MAX_PHRASE; i++)
		n += code >= table->phrase_limits[i];
	const uint8_t *phrase = table->phrases[n] + (size_t)(code - table->phrase_limits[n - 2]) *
							    phrase_bytes(table, n);
	const uint8_t *rules = phrase + (n - 1);
	uint32_t row = count_at_most(phrase, n - 1, distance);
	return table->phrase_rule_bytes == 1 ? rules[row] : load_u16(rules + (size_t)row * 2);
}

static inline uint32_t find_rule(const struct unwind_table *table, uint32_t page, uint8_t offset)
{
	uint32_t first = first_row(table, page), n = first_row(table, page + 1) - first;
	uint32_t before = count_at_most(table->offsets + first, n, offset);
	/* The last row of an earlier page holds on, and a phrase's last rule with it. The very
	 * first row is at the start, so that there always is one. */
	uint32_t row = first + before - 1, code = load_code(table, row);
	uint8_t distance = before ? (uint8_t)(offset - table->offsets[row]) : UINT8_MAX;
	return code < table->n_rules ? code : find_in_phrase(table, code, distance);
}

const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t svma)
{
	uint64_t distance = svma - table->start;
	uint32_t page = 0;
	if (UNLIKELY(distance >= table->length) && !find_span(table, svma, &distance, &page))
		return NULL;
	page += (uint32_t)(distance >> table->page_shift);
	uint32_t number =
		find_rule(table, page, (uint8_t)(distance >> table->shift) & table->page_mask);
	const struct unwind_rule *rule = &table->rules[number];
	if (LIKELY(!rule->reserved))
		return rule;
	if (rule->reserved == MARK_NONE)
		return NULL;
	bool is_upper = svma % UNWIND_PLT_SLOT_BYTES >= rule->reserved % UNWIND_PLT_SLOT_BYTES;
	return is_upper ? &table->rules[table->n_rules + rule->reserved / UNWIND_PLT_SLOT_BYTES]
			: rule;
}

const uint8_t *unwind_table_expression(const struct unwind_table *table, int32_t offset,
				       size_t *n_out)
{
	*n_out = load_u16(table->expressions + offset);
	return table->expressions + offset + sizeof(uint16_t);
}
