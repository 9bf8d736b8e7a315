/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/demangle.h"

/* libiberty.h asks for it without being sure that it is defined. */
#define HAVE_DECL_BASENAME 1
#include <demangle.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PLT_SUFFIX "@plt"

/*
 * Substitutions let a short mangled name stand for an exponentially long one. The callback leaves
 * by longjmp once the output is full, which ends time and size together; it may do so because the
 * callback forms of libiberty keep everything on the stack.
 */
struct demangle_output {
	struct demangled *out;
	size_t n;
	jmp_buf is_full;
};

static void append_output(const char *text, size_t n, void *opaque)
{
	struct demangle_output *output = opaque;
	/* Empty pieces come without text. */
	if (n == 0)
		return;
	if (n >= sizeof(output->out->text) - output->n)
		longjmp(output->is_full, 1);
	memcpy(output->out->text + output->n, text, n);
	output->n += n;
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D');
}

static int run_demangler(const char *name, enum symcache_demangle mode,
			 struct demangle_output *output)
{
	bool is_full_form = mode == SYMCACHE_DEMANGLE_FULL;
	int options = is_full_form ? DMGL_PARAMS | DMGL_ANSI : DMGL_ANSI;
	if (rust_demangle_callback(name, is_full_form ? options | DMGL_VERBOSE : options,
				   append_output, output))
		return 1;
	output->n = 0;
	return name[1] == 'Z' && cplus_demangle_v3_callback(name, options | DMGL_NO_RECURSE_LIMIT,
							    append_output, output);
}

/*
 * Where the parameters of "a.f!(int).g(char) const" begin, else the text's end. Quoted arguments of
 * templates may hold anything, so names with them are left alone.
 */
static size_t find_d_parameters(const char *text)
{
	size_t n = strlen(text);
	const char *close = strrchr(text, ')');
	if (!close || close[1 + strspn(close + 1, "abcdefghijklmnopqrstuvwxyz ")] ||
	    strpbrk(text, "\"'`"))
		return n;
	int depth = 0;
	for (const char *c = close; c > text; c--) {
		depth += (*c == ')') - (*c == '(');
		if (!depth)
			return c[-1] == '!' ? n : (size_t)(c - text);
	}
	return n;
}

/* _D and the length of a name (dlang.org, "Name Mangling"); _Dmain. */
static bool demangle_d(const char *name, enum symcache_demangle mode, struct demangled *out,
		       size_t *n_out)
{
	unsigned n_references = 0;
	for (const char *c = name; (c = strchr(c, 'Q')); c++)
		n_references++;
	if (n_references > DEMANGLE_MAX_D_REFERENCES || strlen(name) > DEMANGLE_MAX_D_NAME_BYTES)
		return false;
	char *text = dlang_demangle(name, 0);
	if (!text)
		return false;
	size_t n = mode == SYMCACHE_DEMANGLE_FULL ? strlen(text) : find_d_parameters(text);
	bool has_room = n && n < sizeof(out->text);
	if (has_room) {
		memcpy(out->text, text, n);
		out->text[n] = 0;
		*n_out = n;
	}
	free(text); /* libiberty's */
	return has_room;
}

static bool demangle_plain(const char *name, enum symcache_demangle mode, struct demangled *out,
			   size_t *n_out)
{
	struct demangle_output output = {.out = out};
	if (name[1] == 'D')
		return demangle_d(name, mode, out, n_out);
	if (setjmp(output.is_full))
		return false;
	if (!run_demangler(name, mode, &output) || !output.n)
		return false;
	out->text[output.n] = 0;
	*n_out = output.n;
	return true;
}

bool demangle_name(const char *name, enum symcache_demangle mode, struct demangled *out)
{
	size_t n = strnlen(name, DEMANGLE_MAX_NAME_BYTES + 1);
	if (mode == SYMCACHE_DEMANGLE_NONE || !is_mangled(name) || n > DEMANGLE_MAX_NAME_BYTES)
		return false;
	size_t suffix = sizeof(PLT_SUFFIX) - 1;
	if (n <= suffix || strcmp(name + n - suffix, PLT_SUFFIX) != 0)
		return demangle_plain(name, mode, out, &n);
	char plain[DEMANGLE_MAX_NAME_BYTES];
	memcpy(plain, name, n - suffix);
	plain[n - suffix] = 0;
	if (!demangle_plain(plain, mode, out, &n) || n + suffix >= sizeof(out->text))
		return false;
	memcpy(out->text + n, PLT_SUFFIX, suffix + 1);
	return true;
}
