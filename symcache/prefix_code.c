/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/prefix_code.h"

#include <assert.h>

const uint32_t prefix_number_bases[PREFIX_NUMBER_SYMBOLS] = {
	0x00000000, 0x00000001, 0x00000002, 0x00000003, 0x00000004, 0x00000005, 0x00000006,
	0x00000007, 0x00000008, 0x00000009, 0x0000000a, 0x0000000b, 0x0000000c, 0x0000000d,
	0x0000000e, 0x0000000f, 0x00000010, 0x00000018, 0x00000020, 0x00000030, 0x00000040,
	0x00000060, 0x00000080, 0x000000c0, 0x00000100, 0x00000180, 0x00000200, 0x00000300,
	0x00000400, 0x00000600, 0x00000800, 0x00000c00, 0x00001000, 0x00001800, 0x00002000,
	0x00003000, 0x00004000, 0x00006000, 0x00008000, 0x0000c000, 0x00010000, 0x00018000,
	0x00020000, 0x00030000, 0x00040000, 0x00060000, 0x00080000, 0x000c0000, 0x00100000,
	0x00180000, 0x00200000, 0x00300000, 0x00400000, 0x00600000, 0x00800000, 0x00c00000,
	0x01000000, 0x01800000, 0x02000000, 0x03000000, 0x04000000, 0x06000000, 0x08000000,
	0x0c000000, 0x10000000, 0x18000000, 0x20000000, 0x30000000, 0x40000000, 0x60000000,
};

enum { MAX_NODES = 2 * PREFIX_CODE_MAX_SYMBOLS };

/* Of the nodes without parent the two lightest are joined until one is left; ties go to the lower
 * number, so that equal counts give equal codes. Quadratic, over few symbols. */
static unsigned find_lightest(const uint64_t *weights, const int16_t *parents, unsigned n,
			      unsigned except)
{
	unsigned best = MAX_NODES;
	for (unsigned i = 0; i < n; i++)
		if (parents[i] < 0 && weights[i] && i != except &&
		    (best == MAX_NODES || weights[i] < weights[best]))
			best = i;
	return best;
}

/* The longest length. */
static unsigned make_lengths(uint8_t *lengths, const uint64_t *counts, unsigned n_symbols)
{
	uint64_t weights[MAX_NODES];
	int16_t parents[MAX_NODES];
	memcpy(weights, counts, n_symbols * sizeof(*weights));
	memset(parents, 0xff, sizeof(parents));
	unsigned n = n_symbols;
	for (;;) {
		unsigned a = find_lightest(weights, parents, n, MAX_NODES);
		unsigned b = find_lightest(weights, parents, n, a);
		if (b == MAX_NODES)
			break;
		weights[n] = weights[a] + weights[b];
		parents[a] = parents[b] = (int16_t)n++;
	}
	unsigned longest = 0;
	for (unsigned i = 0; i < n_symbols; i++) {
		unsigned bits = 0;
		for (int node = (int)i; parents[node] >= 0; node = parents[node])
			bits++;
		lengths[i] = (uint8_t)bits;
		if (bits > longest)
			longest = bits;
		if (counts[i] && !bits)
			lengths[i] = PREFIX_CODE_ONLY;
	}
	return longest;
}

static uint16_t reverse(unsigned code, unsigned bits)
{
	unsigned reversed = 0;
	for (unsigned i = 0; i < bits; i++)
		reversed |= (code >> i & 1) << (bits - 1 - i);
	return (uint16_t)reversed;
}

/* Codes in the order of length, then symbol. False when the lengths are no whole code. */
static bool assign(const uint8_t *lengths, size_t n_symbols, uint16_t *codes)
{
	unsigned next = 0, n_used = 0;
	for (unsigned bits = 1; bits <= PREFIX_CODE_MAX_BITS; bits++) {
		next <<= 1;
		for (size_t i = 0; i < n_symbols; i++) {
			if (lengths[i] != bits)
				continue;
			if (next >> bits)
				return false;
			codes[i] = reverse(next++, bits);
			n_used++;
		}
	}
	return !n_used || next == PREFIX_CODE_SLOTS;
}

void prefix_code_init(struct prefix_code *code, const uint64_t *counts, size_t n_symbols)
{
	assert(n_symbols <= PREFIX_CODE_MAX_SYMBOLS);
	uint64_t scaled[PREFIX_CODE_MAX_SYMBOLS];
	memcpy(scaled, counts, n_symbols * sizeof(*scaled));
	*code = (struct prefix_code){0};
	/* Flatter counts give shorter longest codes; all equal, 160 symbols take 8 bits. */
	while (make_lengths(code->lengths, scaled, (unsigned)n_symbols) > PREFIX_CODE_MAX_BITS)
		for (size_t i = 0; i < n_symbols; i++)
			scaled[i] = (scaled[i] + 1) / 2;
	bool is_whole = assign(code->lengths, n_symbols, code->codes);
	assert(is_whole);
	(void)is_whole;
}

bool prefix_table_init(struct prefix_table *table, const uint8_t *lengths, size_t n_symbols)
{
	assert(n_symbols <= PREFIX_CODE_MAX_SYMBOLS);
	uint16_t codes[PREFIX_CODE_MAX_SYMBOLS];
	size_t n_only = 0, n_coded = 0;
	struct prefix_slot fill = {0};
	for (size_t i = 0; i < n_symbols; i++) {
		if (lengths[i] == PREFIX_CODE_ONLY) {
			fill.symbol = (uint8_t)i;
			fill.extra = (uint8_t)prefix_number_extra_bits((unsigned)i);
			n_only++;
		} else if (lengths[i] > PREFIX_CODE_MAX_BITS) {
			return false;
		} else if (lengths[i]) {
			n_coded++;
		}
	}
	if (n_only > 1 || (n_only && n_coded) || !assign(lengths, n_symbols, codes))
		return false;
	if (!n_coded) {
		for (size_t i = 0; i < PREFIX_CODE_SLOTS; i++)
			table->slots[i] = fill;
		return true;
	}
	for (size_t i = 0; i < n_symbols; i++) {
		struct prefix_slot slot = {
			.symbol = (uint8_t)i,
			.bits = lengths[i],
			.extra = (uint8_t)prefix_number_extra_bits((unsigned)i),
		};
		if (!lengths[i])
			continue;
		for (size_t at = codes[i]; at < PREFIX_CODE_SLOTS; at += (size_t)1 << lengths[i])
			table->slots[at] = slot;
	}
	return true;
}
