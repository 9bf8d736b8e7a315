/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/display_guess.h"

#include <string.h>

struct guess {
	char *out;
	size_t n, max;
	const char *last; /* identifier */
	size_t last_bytes;
};

static bool put(struct guess *guess, const char *text, size_t n)
{
	if (n >= guess->max - guess->n)
		return false;
	memcpy(guess->out + guess->n, text, n);
	guess->n += n;
	guess->out[guess->n] = 0;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "17h" and 16 hex digits: Rust's hash of the function's contents. */
static bool is_rust_hash(const char *id, size_t n)
{
	return n == 17 && id[0] == 'h' && strspn(id + 1, "0123456789abcdef") >= 16;
}

/* A length and that many bytes; false when p has no identifier. */
static bool read_identifier(const char **p, const char **id_out, size_t *n_out)
{
	size_t n = 0;
	const char *at = *p;
	if (!is_digit(*at) || *at == '0')
		return false;
	for (; is_digit(*at); at++) {
		n = n * 10 + (size_t)(*at - '0');
		if (n > 4096)
			return false;
	}
	if (strnlen(at, n) < n)
		return false;
	*id_out = at;
	*n_out = n;
	*p = at + n;
	return true;
}

static bool add_identifier(struct guess *guess, const char *id, size_t n)
{
	static const char anonymous[] = "_GLOBAL__N_1", shown[] = "(anonymous namespace)";
	if (guess->n && !put(guess, "::", 2))
		return false;
	guess->last = id;
	guess->last_bytes = n;
	if (n == sizeof(anonymous) - 1 && memcmp(id, anonymous, n) == 0)
		return put(guess, shown, sizeof(shown) - 1);
	return put(guess, id, n);
}

bool display_guess(const char *linkage_name, char *out, size_t max)
{
	struct guess guess = {.out = out, .max = max};
	const char *p = linkage_name;
	if (!max || strncmp(p, "_Z", 2) != 0)
		return false;
	p += 2;
	bool is_nested = *p == 'N';
	if (is_nested)
		p++;
	if (*p == 'L')
		p++;
	while (is_nested && (*p == 'K' || *p == 'V' || *p == 'r' || *p == 'R' || *p == 'O'))
		p++;
	bool is_std = p[0] == 'S' && p[1] == 't';
	if (is_std) {
		p += 2;
		if (!put(&guess, "std", 3))
			return false;
	}
	const char *id;
	size_t n;
	while (read_identifier(&p, &id, &n)) {
		if (guess.last && is_rust_hash(id, n) && *p == 'E')
			break;
		if (!add_identifier(&guess, id, n))
			return false;
		if (!is_nested)
			break;
	}
	if (guess.last && is_nested && (p[0] == 'C' || p[0] == 'D') && is_digit(p[1]))
		return put(&guess, "::~", p[0] == 'D' ? 3 : 2) &&
		       put(&guess, guess.last, guess.last_bytes);
	return guess.last != NULL;
}
