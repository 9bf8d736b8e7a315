/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Display names of C++ (Itanium ABI), Rust (legacy and v0) and D functions. What is not mangled,
 * too long or too costly stays as it is, and so do names of Swift.
 *
 *            _Z3maxIiET_S0_S0_       _ZN3Foo3barEi.cold           _ZN3std4main17h0123456789abcdefE
 *   NORMAL   max<int>                Foo::bar                     std::main
 *   FULL     int max<int>(int, int)  Foo::bar(int) [clone .cold]  std::main::h0123456789abcdef
 *   NONE     the name as it is
 *
 * So NORMAL leaves out parameters, return types, clone suffixes and Rust's hashes: parts and
 * instances that differ in them only are added up. Suffixes of C names (foo.part.0) stay, and so
 * does the "@plt" of linkage table entries.
 */
#pragma once

#include <stdbool.h>

#include "symcache/symcache.h"

enum {
	/* Longer mangled names are not tried: the demangler's stack grows with them, up to 1.4 MB
	 * here. */
	DEMANGLE_MAX_NAME_BYTES = 2048,
	DEMANGLE_MAX_OUTPUT_BYTES = 4096,
	/* libiberty's D demangler makes its output whole, and each back reference can double it. */
	DEMANGLE_MAX_D_NAME_BYTES = 1024,
	DEMANGLE_MAX_D_REFERENCES = 14,
};

struct demangled {
	char text[DEMANGLE_MAX_OUTPUT_BYTES];
};

/* False when name is to be shown as it is; out is then undefined. */
bool demangle_name(const char *name, enum symcache_demangle mode, struct demangled *out);
