/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short texts coded one by one: a byte stands for a piece of 1 to 8 bytes out of one dictionary of
 * at most 255 pieces, chosen for the texts of the file; 255 says that the next byte stands for
 * itself. Any text can be decoded without its neighbours, in one step a byte.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum {
	STRING_CODE_MAX_PIECES = 255,
	STRING_CODE_PIECE_BYTES = 8,
	STRING_CODE_ESCAPE = 255,
	STRING_CODE_SAMPLE_BYTES = 1 << 16,
};

struct string_piece {
	uint8_t bytes[STRING_CODE_PIECE_BYTES]; /* zeros behind size */
	uint8_t size;
};

struct string_code {
	struct string_piece pieces[STRING_CODE_MAX_PIECES];
	uint32_t n;
};

/* Chooses pieces for the texts that lie one after the other in sample. */
void string_code_train(struct string_code *code, const uint8_t *sample, size_t n);

/* Finds the longest piece at a place: pieces by their first two bytes. */
struct string_encoder;
struct string_encoder *string_encoder_new(const struct string_code *code);
void string_encoder_free(struct string_encoder *encoder);
/* Writes at most 2 * n bytes to out and gives their number. */
size_t string_encoder_run(const struct string_encoder *encoder, const uint8_t *text, size_t n,
			  uint8_t *out);

/* The dictionary as it is stored: their number, their sizes, their bytes. */
struct error *string_code_store(const struct string_code *code, struct buf *out) MUST_USE;
/* False when the bytes are no dictionary. */
bool string_code_load(struct string_code *code, const uint8_t *bytes, size_t n);

/* Bytes of the decoded text. */
size_t string_code_decoded_size(const struct string_code *code, const uint8_t *coded, size_t n);
/* out has room for that and STRING_CODE_PIECE_BYTES more. */
void string_code_decode(const struct string_code *code, const uint8_t *coded, size_t n, char *out);
