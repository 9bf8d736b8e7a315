/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/string_code.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/mem.h"

/*
 * Training: code the sample with the pieces so far, count the pieces and the pairs of neighbours
 * that come out, and keep those that would cover most bytes; a few rounds let pieces grow from
 * single bytes to eight.
 */
enum {
	N_ROUNDS = 5,
	N_CODES = 256 + STRING_CODE_MAX_PIECES, /* single bytes, then pieces */
	N_STARTS = 1 << 16,
	MIN_USES = 4, /* rarer pieces cost more in the dictionary than they save */
};

struct string_encoder {
	/* Sorted by first two bytes, then longest first. One-byte pieces are apart. */
	struct string_piece pieces[STRING_CODE_MAX_PIECES];
	uint8_t codes[STRING_CODE_MAX_PIECES];
	uint32_t n;
	int16_t single[256];	  /* code of a one-byte piece, -1 = none */
	uint8_t starts[N_STARTS]; /* by two bytes: position + 1 of the first piece, 0 = none */
};

struct indexed_piece {
	struct string_piece piece;
	uint8_t code;
};

static int compare_pieces(const void *a, const void *b)
{
	const struct indexed_piece *x = a, *y = b;
	int order = memcmp(x->piece.bytes, y->piece.bytes, 2);
	if (!order)
		order = (int)y->piece.size - (int)x->piece.size;
	return order ? order : memcmp(x->piece.bytes, y->piece.bytes, STRING_CODE_PIECE_BYTES);
}

static uint32_t first_two(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static void index_pieces(struct string_encoder *encoder, const struct string_code *code)
{
	struct indexed_piece sorted[STRING_CODE_MAX_PIECES];
	memset(encoder->single, 0xff, sizeof(encoder->single));
	memset(encoder->starts, 0, sizeof(encoder->starts));
	uint32_t n = 0;
	for (uint32_t i = 0; i < code->n; i++) {
		if (code->pieces[i].size == 1)
			encoder->single[code->pieces[i].bytes[0]] = (int16_t)i;
		else
			sorted[n++] = (struct indexed_piece){code->pieces[i], (uint8_t)i};
	}
	qsort(sorted, n, sizeof(*sorted), compare_pieces);
	encoder->n = n;
	for (uint32_t i = n; i-- > 0;) {
		encoder->pieces[i] = sorted[i].piece;
		encoder->codes[i] = sorted[i].code;
		encoder->starts[first_two(sorted[i].piece.bytes)] = (uint8_t)(i + 1);
	}
}

struct string_encoder *string_encoder_new(const struct string_code *code)
{
	struct string_encoder *encoder = mem_alloc(sizeof(*encoder));
	index_pieces(encoder, code);
	return encoder;
}

void string_encoder_free(struct string_encoder *encoder)
{
	mem_free(encoder);
}

/* Code of the longest piece that text begins with and its size; -1 when there is none. */
static int find_longest(const struct string_encoder *encoder, const uint8_t *text, size_t n,
			size_t *size_out)
{
	uint32_t two = n >= 2 ? first_two(text) : 0;
	for (uint32_t i = n >= 2 ? encoder->starts[two] : 0; i && i <= encoder->n; i++) {
		const struct string_piece *piece = &encoder->pieces[i - 1];
		if (first_two(piece->bytes) != two)
			break;
		if (piece->size <= n && memcmp(piece->bytes, text, piece->size) == 0) {
			*size_out = piece->size;
			return encoder->codes[i - 1];
		}
	}
	*size_out = 1;
	return encoder->single[text[0]];
}

size_t string_encoder_run(const struct string_encoder *encoder, const uint8_t *text, size_t n,
			  uint8_t *out)
{
	size_t n_out = 0, size;
	for (size_t i = 0; i < n; i += size) {
		int code = find_longest(encoder, text + i, n - i, &size);
		if (code < 0)
			out[n_out++] = STRING_CODE_ESCAPE;
		out[n_out++] = code < 0 ? text[i] : (uint8_t)code;
	}
	return n_out;
}

struct training {
	struct string_code *code;
	struct string_encoder *encoder;
	uint32_t singles[N_CODES];
	uint32_t pairs[N_CODES][N_CODES];
};

struct candidate {
	struct string_piece piece;
	uint64_t gain;
};

struct candidates {
	struct candidate *items;
	size_t n, capacity;
};

static struct string_piece piece_of(const struct string_code *code, unsigned number)
{
	if (number >= 256)
		return code->pieces[number - 256];
	return (struct string_piece){.bytes = {(uint8_t)number}, .size = 1};
}

static void count(struct training *training, const uint8_t *sample, size_t n)
{
	memset(training->singles, 0, sizeof(training->singles));
	memset(training->pairs, 0, sizeof(training->pairs));
	size_t size;
	unsigned last = N_CODES;
	for (size_t i = 0; i < n; i += size) {
		int code = find_longest(training->encoder, sample + i, n - i, &size);
		unsigned number = code < 0 ? sample[i] : 256 + (unsigned)code;
		training->singles[number]++;
		if (last < N_CODES)
			training->pairs[last][number]++;
		last = number;
	}
}

static void add_candidate(struct candidates *all, struct string_piece piece, uint32_t uses)
{
	if (uses < MIN_USES)
		return;
	if (all->n == all->capacity) {
		all->capacity = all->capacity ? 2 * all->capacity : 1024;
		all->items = mem_realloc(all->items, all->capacity, sizeof(*all->items));
	}
	all->items[all->n++] = (struct candidate){piece, (uint64_t)uses * piece.size};
}

static int compare_bytes(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int order = memcmp(x->piece.bytes, y->piece.bytes, STRING_CODE_PIECE_BYTES);
	return order ? order : (int)x->piece.size - (int)y->piece.size;
}

static int compare_gain(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->gain != y->gain)
		return x->gain > y->gain ? -1 : 1;
	return compare_bytes(a, b);
}

/* The same piece can come out of several pairs. */
static void merge_equal(struct candidates *all)
{
	if (all->n)
		qsort(all->items, all->n, sizeof(*all->items), compare_bytes);
	size_t n = 0;
	for (size_t i = 0; i < all->n; i++) {
		if (n && compare_bytes(&all->items[n - 1], &all->items[i]) == 0)
			all->items[n - 1].gain += all->items[i].gain;
		else
			all->items[n++] = all->items[i];
	}
	all->n = n;
}

static void choose(struct training *training)
{
	struct candidates all = {0};
	for (unsigned a = 0; a < N_CODES; a++) {
		if (!training->singles[a])
			continue;
		struct string_piece first = piece_of(training->code, a);
		add_candidate(&all, first, training->singles[a]);
		/* Its first byte stays at hand for other texts. */
		if (first.size > 1)
			add_candidate(&all, piece_of(training->code, first.bytes[0]),
				      training->singles[a]);
		for (unsigned b = 0; b < N_CODES; b++) {
			if (training->pairs[a][b] < MIN_USES)
				continue;
			struct string_piece pair = first, second = piece_of(training->code, b);
			if (first.size + second.size > STRING_CODE_PIECE_BYTES)
				continue;
			memcpy(pair.bytes + pair.size, second.bytes, second.size);
			pair.size = (uint8_t)(first.size + second.size);
			add_candidate(&all, pair, training->pairs[a][b]);
		}
	}
	merge_equal(&all);
	if (all.n)
		qsort(all.items, all.n, sizeof(*all.items), compare_gain);
	uint32_t n = all.n < STRING_CODE_MAX_PIECES ? (uint32_t)all.n : STRING_CODE_MAX_PIECES;
	for (uint32_t i = 0; i < n; i++)
		training->code->pieces[i] = all.items[i].piece;
	training->code->n = n;
	mem_free(all.items);
}

void string_code_train(struct string_code *code, const uint8_t *sample, size_t n)
{
	*code = (struct string_code){0};
	struct training *training = mem_alloc(sizeof(*training));
	training->code = code;
	training->encoder = mem_alloc(sizeof(*training->encoder));
	for (int round = 0; round < N_ROUNDS; round++) {
		index_pieces(training->encoder, code);
		count(training, sample, n);
		choose(training);
	}
	mem_free(training->encoder);
	mem_free(training);
}

struct error *string_code_store(const struct string_code *code, struct buf *out)
{
	struct error *err = buf_append(out, &(uint8_t){(uint8_t)code->n}, 1);
	for (uint32_t i = 0; i < code->n && !err; i++)
		err = buf_append(out, &code->pieces[i].size, 1);
	for (uint32_t i = 0; i < code->n && !err; i++)
		err = buf_append(out, code->pieces[i].bytes, code->pieces[i].size);
	return err;
}

bool string_code_load(struct string_code *code, const uint8_t *bytes, size_t n)
{
	struct cursor c = cursor_make(bytes, n, false);
	*code = (struct string_code){.n = cursor_u8(&c)};
	if (code->n > STRING_CODE_MAX_PIECES)
		return false;
	for (uint32_t i = 0; i < code->n; i++) {
		code->pieces[i].size = cursor_u8(&c);
		if (!code->pieces[i].size || code->pieces[i].size > STRING_CODE_PIECE_BYTES)
			return false;
	}
	for (uint32_t i = 0; i < code->n; i++) {
		const uint8_t *piece = cursor_bytes(&c, code->pieces[i].size);
		if (!piece)
			return false;
		memcpy(code->pieces[i].bytes, piece, code->pieces[i].size);
	}
	return cursor_is_ok(&c) && !cursor_left(&c);
}

size_t string_code_decoded_size(const struct string_code *code, const uint8_t *coded, size_t n)
{
	size_t size = 0;
	for (size_t i = 0; i < n; i++) {
		if (coded[i] == STRING_CODE_ESCAPE) {
			i++;
			size += i < n;
		} else {
			/* Pieces that do not exist have size 0. */
			size += code->pieces[coded[i]].size;
		}
	}
	return size;
}

void string_code_decode(const struct string_code *code, const uint8_t *coded, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++) {
		if (coded[i] == STRING_CODE_ESCAPE) {
			if (++i < n)
				*out++ = (char)coded[i];
			continue;
		}
		const struct string_piece *piece = &code->pieces[coded[i]];
		memcpy(out, piece->bytes, STRING_CODE_PIECE_BYTES);
		out += piece->size;
	}
}
