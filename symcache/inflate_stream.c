/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/inflate_stream.h"

#include <endian.h>
#include <string.h>

#include "base/compiler.h"

enum {
	MAX_CODE_BITS = 15,
	N_LITERALS = 288,
	N_DISTANCES = 32,
	N_LENGTH_CODES = 19,
	LENGTH_CODE_BITS = 7,
	MAX_MATCH = 258,
};

/*
 * An entry of a table, found by the next bits of input:
 *   bits 0-7   of the code to take away
 *   bits 8-11  extra bits behind it, or the bits that index a table of the rest
 *   bits 12-14 what it is, when it is neither a literal nor a base
 *   bits 16-30 literal, base of a length or distance, or where the table of the rest is
 *   bit 31     a literal
 */
enum { ENTRY_INVALID = 1 << 12, ENTRY_END = 1 << 13, ENTRY_MORE = 1 << 14 };
static const uint32_t entry_literal = 1u << 31;
static const uint32_t entry_special = ENTRY_INVALID | ENTRY_END | ENTRY_MORE;

static const uint16_t length_bases[29] = {3,  4,  5,  6,   7,	8,   9,	  10,  11, 13,
					  15, 17, 19, 23,  27,	31,  35,  43,  51, 59,
					  67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t length_extras[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
					  2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
static const uint16_t distance_bases[30] = {
	1,   2,	  3,   4,   5,	 7,    9,    13,   17,	 25,   33,   49,   65,	  97,	 129,
	193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};

static uint32_t literal_entry(unsigned symbol)
{
	if (symbol < 256)
		return entry_literal | symbol << 16;
	if (symbol == 256)
		return ENTRY_END;
	if (symbol - 257 >= sizeof(length_extras))
		return ENTRY_INVALID;
	return (uint32_t)length_bases[symbol - 257] << 16 | (uint32_t)length_extras[symbol - 257]
								    << 8;
}

static uint32_t distance_entry(unsigned symbol)
{
	if (symbol >= 30)
		return ENTRY_INVALID;
	uint32_t extra = symbol < 4 ? 0 : symbol / 2 - 1;
	return (uint32_t)distance_bases[symbol] << 16 | extra << 8;
}

static uint32_t length_code_entry(unsigned symbol)
{
	return entry_literal | symbol << 16;
}

static unsigned reverse(unsigned code, unsigned n)
{
	unsigned result = 0;
	for (; n; n--, code >>= 1)
		result = result << 1 | (code & 1);
	return result;
}

struct table {
	uint32_t *entries;
	unsigned capacity, n;
	unsigned main_bits, more_bits; /* more_bits: of each table of the rest */
};

static void fill(uint32_t *entries, unsigned size, unsigned from, unsigned step, uint32_t entry)
{
	for (unsigned i = from; i < size; i += step)
		entries[i] = entry;
}

/* A code longer than the main table's bits. */
static bool add_long(struct table *table, unsigned code, unsigned n, uint32_t entry)
{
	uint32_t *slot = &table->entries[code & ((1u << table->main_bits) - 1)];
	unsigned size = 1u << table->more_bits;
	if (!(*slot & ENTRY_MORE) || *slot & entry_literal) {
		if (table->n + size > table->capacity)
			return false;
		fill(&table->entries[table->n], size, 0, 1, ENTRY_INVALID);
		*slot = table->n << 16 | ENTRY_MORE | table->more_bits << 8 | table->main_bits;
		table->n += size;
	}
	unsigned rest = n - table->main_bits;
	fill(&table->entries[*slot >> 16 & 0x7fff], size, code >> table->main_bits, 1u << rest,
	     entry | rest);
	return true;
}

/* From the lengths of codes, in the order of RFC 1951, 3.2.2. False: more codes than fit. */
static bool build(struct table *table, const uint8_t *lengths, unsigned n_symbols,
		  uint32_t (*entry_of)(unsigned symbol))
{
	unsigned counts[MAX_CODE_BITS + 1] = {0}, codes[MAX_CODE_BITS + 2] = {0};
	unsigned longest = 0;
	for (unsigned i = 0; i < n_symbols; i++) {
		counts[lengths[i]]++;
		if (lengths[i] > longest)
			longest = lengths[i];
	}
	counts[0] = 0;
	for (unsigned n = 1; n <= MAX_CODE_BITS; n++) {
		codes[n + 1] = (codes[n] + counts[n]) << 1;
		if (codes[n] + counts[n] > 1u << n)
			return false;
	}
	table->n = 1u << table->main_bits;
	table->more_bits = longest > table->main_bits ? longest - table->main_bits : 0;
	fill(table->entries, table->n, 0, 1, ENTRY_INVALID);
	for (unsigned i = 0; i < n_symbols; i++) {
		unsigned n = lengths[i];
		if (!n)
			continue;
		unsigned code = reverse(codes[n]++, n);
		if (n <= table->main_bits)
			fill(table->entries, 1u << table->main_bits, code, 1u << n,
			     entry_of(i) | n);
		else if (!add_long(table, code, n, entry_of(i)))
			return false;
	}
	return true;
}

/* At least 56 bits, or all that is left. */
static inline void refill(struct inflate_stream *s)
{
	if (LIKELY(s->end - s->next >= 8)) {
		uint64_t word;
		memcpy(&word, s->next, sizeof(word));
		s->bits |= le64toh(word) << s->n_bits;
		s->next += (63 - s->n_bits) / 8;
		s->n_bits |= 56;
		return;
	}
	while (s->n_bits <= 56 && s->next < s->end) {
		s->bits |= (uint64_t)*s->next++ << s->n_bits;
		s->n_bits += 8;
	}
}

/* n is at most 15; past the end of input the stream ends. */
static unsigned take(struct inflate_stream *s, unsigned n)
{
	if (s->n_bits < n)
		refill(s);
	if (s->n_bits < n) {
		s->is_ended = true;
		return 0;
	}
	unsigned value = (unsigned)(s->bits & ((1u << n) - 1));
	s->bits >>= n;
	s->n_bits -= n;
	return value;
}

static bool read_lengths(struct inflate_stream *s, uint8_t *lengths, unsigned n,
			 const uint32_t *codes)
{
	for (unsigned i = 0; i < n && !s->is_ended;) {
		refill(s);
		uint32_t entry = codes[s->bits & ((1u << LENGTH_CODE_BITS) - 1)];
		if (entry & ENTRY_INVALID)
			return false;
		(void)take(s, entry & 0xff);
		unsigned symbol = entry >> 16 & 0x7fff;
		if (symbol < 16) {
			lengths[i++] = (uint8_t)symbol;
			continue;
		}
		uint8_t value = 0;
		unsigned repeat;
		if (symbol == 16) {
			if (!i)
				return false;
			value = lengths[i - 1];
			repeat = 3 + take(s, 2);
		} else {
			repeat = symbol == 17 ? 3 + take(s, 3) : 11 + take(s, 7);
		}
		if (repeat > n - i)
			return false;
		memset(&lengths[i], value, repeat);
		i += repeat;
	}
	return !s->is_ended;
}

static bool build_tables(struct inflate_stream *s, const uint8_t *lengths, unsigned n_literals,
			 unsigned n_distances)
{
	struct table literals = {.entries = s->literals,
				 .capacity = INFLATE_LITERAL_ENTRIES,
				 .main_bits = INFLATE_LITERAL_BITS};
	struct table distances = {.entries = s->distances,
				  .capacity = INFLATE_DISTANCE_ENTRIES,
				  .main_bits = INFLATE_DISTANCE_BITS};
	return build(&literals, lengths, n_literals, literal_entry) &&
	       build(&distances, lengths + n_literals, n_distances, distance_entry);
}

static bool read_dynamic(struct inflate_stream *s)
{
	static const uint8_t order[N_LENGTH_CODES] = {16, 17, 18, 0, 8,	 7, 9,	6, 10, 5,
						      11, 4,  12, 3, 13, 2, 14, 1, 15};
	unsigned n_literals = 257 + take(s, 5);
	unsigned n_distances = 1 + take(s, 5);
	unsigned n_codes = 4 + take(s, 4);
	uint8_t code_lengths[N_LENGTH_CODES] = {0};
	for (unsigned i = 0; i < n_codes; i++)
		code_lengths[order[i]] = (uint8_t)take(s, 3);
	uint32_t entries[1 << LENGTH_CODE_BITS];
	struct table codes = {.entries = entries,
			      .capacity = 1 << LENGTH_CODE_BITS,
			      .main_bits = LENGTH_CODE_BITS};
	uint8_t lengths[N_LITERALS + N_DISTANCES] = {0};
	return n_literals <= N_LITERALS && !s->is_ended &&
	       build(&codes, code_lengths, N_LENGTH_CODES, length_code_entry) &&
	       read_lengths(s, lengths, n_literals + n_distances, entries) &&
	       build_tables(s, lengths, n_literals, n_distances);
}

static bool use_fixed(struct inflate_stream *s)
{
	uint8_t lengths[N_LITERALS + N_DISTANCES];
	memset(lengths, 8, 144);
	memset(lengths + 144, 9, 112);
	memset(lengths + 256, 7, 24);
	memset(lengths + 280, 8, 8);
	memset(lengths + N_LITERALS, 5, N_DISTANCES);
	return build_tables(s, lengths, N_LITERALS, N_DISTANCES);
}

/* To the next byte; the bytes that were read ahead go back. */
static bool read_stored(struct inflate_stream *s)
{
	(void)take(s, s->n_bits % 8);
	s->next -= s->n_bits / 8;
	s->bits = 0;
	s->n_bits = 0;
	if (s->end - s->next < 4)
		return false;
	unsigned n = s->next[0] | (unsigned)s->next[1] << 8;
	unsigned complement = s->next[2] | (unsigned)s->next[3] << 8;
	s->next += 4;
	s->stored_left = n;
	s->is_stored = true;
	return (n ^ complement) == 0xffff;
}

static bool begin_block(struct inflate_stream *s)
{
	s->is_last = take(s, 1);
	s->is_in_block = true;
	s->is_stored = false;
	switch (take(s, 2)) {
	case 0:
		return read_stored(s);
	case 1:
		return use_fixed(s);
	case 2:
		return read_dynamic(s);
	default:
		return false;
	}
}

static void copy_stored(struct inflate_stream *s)
{
	size_t n = s->stored_left;
	if (n > (size_t)(s->end - s->next) || n > (size_t)(s->out_end - s->out)) {
		s->is_ended = true;
		return;
	}
	memcpy(s->out, s->next, n);
	s->out += n;
	s->next += n;
	s->stored_left = 0;
	s->is_in_block = false;
}

/* Up to 7 bytes more than n are written. */
static inline void copy_match(uint8_t *out, size_t distance, unsigned n)
{
	const uint8_t *from = out - distance;
	uint8_t *end = out + n;
	if (LIKELY(distance >= 8)) {
		do {
			memcpy(out, from, 8);
			out += 8;
			from += 8;
		} while (out < end);
	} else if (distance == 1) {
		memset(out, *from, n);
	} else {
		do
			*out++ = *from++;
		while (out < end);
	}
}

static inline uint32_t find_entry(const uint32_t *entries, unsigned main_bits, uint64_t *bits,
				  unsigned *n_bits)
{
	uint32_t entry = entries[*bits & ((1u << main_bits) - 1)];
	if (UNLIKELY((entry & (entry_literal | ENTRY_MORE)) == ENTRY_MORE)) {
		*bits >>= main_bits;
		*n_bits -= main_bits;
		entry = entries[(entry >> 16) + (*bits & ((1u << (entry >> 8 & 0xf)) - 1))];
	}
	*bits >>= entry & 0xff;
	*n_bits -= entry & 0xff;
	return entry;
}

static inline unsigned take_extra(uint32_t entry, uint64_t *bits, unsigned *n_bits)
{
	unsigned n = entry >> 8 & 0xf;
	unsigned value = (entry >> 16) + (unsigned)(*bits & ((1u << n) - 1));
	*bits >>= n;
	*n_bits -= n;
	return value;
}

/*
 * Literals and matches until target or the block's end. A symbol takes at most 48 bits; when fewer
 * are left, the count wraps below 0, which is seen after each.
 */
static void copy_coded(struct inflate_stream *s, uint8_t *target)
{
	uint64_t bits;
	unsigned n_bits;
	uint8_t *out = s->out;
	while (out < target) {
		refill(s);
		bits = s->bits;
		n_bits = s->n_bits;
		uint32_t entry = find_entry(s->literals, INFLATE_LITERAL_BITS, &bits, &n_bits);
		if (entry & entry_literal) {
			*out++ = (uint8_t)(entry >> 16);
			/* A second one: two codes and a match fit in no refill, two literals do. */
			if (n_bits >= MAX_CODE_BITS && n_bits <= 64 && out < target) {
				uint32_t peek =
					s->literals[bits & ((1u << INFLATE_LITERAL_BITS) - 1)];
				if (peek & entry_literal) {
					bits >>= peek & 0xff;
					n_bits -= peek & 0xff;
					*out++ = (uint8_t)(peek >> 16);
				}
			}
		} else if (UNLIKELY(entry & entry_special)) {
			s->is_in_block = false;
			s->is_ended = !(entry & ENTRY_END) || n_bits > 64;
			s->bits = bits;
			s->n_bits = n_bits;
			break;
		} else {
			unsigned n = take_extra(entry, &bits, &n_bits);
			entry = find_entry(s->distances, INFLATE_DISTANCE_BITS, &bits, &n_bits);
			unsigned distance = take_extra(entry, &bits, &n_bits);
			if (UNLIKELY(entry & entry_special || distance > out - s->out_begin ||
				     n > s->out_end - out || n_bits > 64)) {
				s->is_ended = true;
				break;
			}
			copy_match(out, distance, n);
			out += n;
		}
		if (UNLIKELY(n_bits > 64)) {
			s->is_ended = true;
			break;
		}
		s->bits = bits;
		s->n_bits = n_bits;
	}
	s->out = out;
}

void inflate_stream_init(struct inflate_stream *stream, const void *in, size_t in_bytes, void *out,
			 size_t out_bytes)
{
	stream->next = in;
	stream->end = stream->next + in_bytes;
	stream->out_begin = stream->out = out;
	stream->out_end = stream->out + out_bytes;
	stream->bits = 0;
	stream->n_bits = 0;
	stream->is_in_block = stream->is_stored = stream->is_last = stream->is_ended = false;
	stream->stored_left = 0;
}

void inflate_stream_run(struct inflate_stream *stream, uint8_t *target)
{
	while (!stream->is_ended && stream->out < target) {
		if (!stream->is_in_block) {
			if (stream->is_last || !begin_block(stream))
				stream->is_ended = true;
		} else if (stream->is_stored) {
			copy_stored(stream);
		} else {
			copy_coded(stream, target);
		}
	}
}
