/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/demangle.h"

/* libiberty.h asks for it without being sure that it is defined. */
#define HAVE_DECL_BASENAME 1
#include <demangle.h>
#include <setjmp.h>
#include <stddef.h>
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
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
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

static bool demangle_plain(const char *name, enum symcache_demangle mode, struct demangled *out,
			   size_t *n_out)
{
	struct demangle_output output = {.out = out};
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
