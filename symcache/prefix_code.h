/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical prefix codes of at most 10 bits over small alphabets, least significant bit first, and
 * numbers coded as a symbol with extra bits behind it. The writer makes a code from counts; the
 * reader makes a table from the stored lengths, which tells symbol and length in one step.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	PREFIX_CODE_MAX_BITS = 10,
	PREFIX_CODE_MAX_SYMBOLS = 160,
	PREFIX_CODE_SLOTS = 1 << PREFIX_CODE_MAX_BITS,
	/* A stored length that says: the only symbol, it takes no bits. */
	PREFIX_CODE_ONLY = 15,
};

struct prefix_code {
	uint8_t lengths[PREFIX_CODE_MAX_SYMBOLS]; /* 0 = unused */
	uint16_t codes[PREFIX_CODE_MAX_SYMBOLS];  /* as they go into the stream */
};

/* Zero counts get no code. */
void prefix_code_init(struct prefix_code *code, const uint64_t *counts, size_t n_symbols);
/* Bits of a symbol. */
static inline unsigned prefix_code_bits(const struct prefix_code *code, unsigned symbol)
{
	return code->lengths[symbol] == PREFIX_CODE_ONLY ? 0 : code->lengths[symbol];
}

/* extra: bits behind the code when the symbol stands for a number. */
struct prefix_slot {
	uint8_t symbol, bits, extra;
};

struct prefix_table {
	struct prefix_slot slots[PREFIX_CODE_SLOTS];
};

/* False unless the lengths are a whole code: no room left, none taken twice. Without any symbol
 * every slot is symbol 0 of no bits. */
bool prefix_table_init(struct prefix_table *table, const uint8_t *lengths, size_t n_symbols);

/*
 * Numbers below PREFIX_NUMBER_DIRECT are symbols of their own. Larger ones take two symbols an
 * octave, and the bits under the first two as extra bits.
 */
enum {
	PREFIX_NUMBER_DIRECT_BITS = 4,
	PREFIX_NUMBER_DIRECT = 1 << PREFIX_NUMBER_DIRECT_BITS,
	PREFIX_NUMBER_MAX_BITS = 31,
	PREFIX_NUMBER_SYMBOLS =
		PREFIX_NUMBER_DIRECT + 2 * (PREFIX_NUMBER_MAX_BITS - PREFIX_NUMBER_DIRECT_BITS),
};

/* The least number of each symbol. */
extern const uint32_t prefix_number_bases[PREFIX_NUMBER_SYMBOLS];

static inline unsigned prefix_number_extra_bits(unsigned symbol)
{
	if (symbol < PREFIX_NUMBER_DIRECT || symbol >= PREFIX_NUMBER_SYMBOLS)
		return 0;
	return (symbol - PREFIX_NUMBER_DIRECT) / 2 + PREFIX_NUMBER_DIRECT_BITS - 1;
}

/* v < 2^31 */
static inline unsigned prefix_number_symbol(uint32_t v)
{
	if (v < PREFIX_NUMBER_DIRECT)
		return v;
	unsigned top = 31 - (unsigned)__builtin_clz(v);
	return PREFIX_NUMBER_DIRECT + 2 * (top - PREFIX_NUMBER_DIRECT_BITS) + (v >> (top - 1) & 1);
}

static inline uint32_t prefix_number_zigzag(int32_t v)
{
	return (uint32_t)v << 1 ^ (uint32_t)(v >> 31);
}

static inline int32_t prefix_number_unzigzag(uint32_t v)
{
	return (int32_t)(v >> 1 ^ -(v & 1));
}
