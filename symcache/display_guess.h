/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a mangled name most often looks like when shown: its identifiers joined by "::". The symbol
 * file stores a shown name only where this differs from what the demangler says.
 *
 *   _ZN3Foo3barEi                   Foo::bar
 *   _ZNK3FooD2Ev                    Foo::~Foo
 *   _ZN3std4main17h0123456789abcdefE   std::main
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Writes the guess and its 0; false when there is none or it takes more than max bytes. The
 * meaning never changes: files of all versions depend on it. */
bool display_guess(const char *linkage_name, char *out, size_t max);
