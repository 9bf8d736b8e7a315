/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbol table that Fedora and its kin leave in stripped binaries: .gnu_debugdata holds an ELF
 * file, packed by xz, whose .symtab names the functions that .dynsym does not. Unpacked within caps
 * in the builder's worker. (gdb manual, "Debugging information in a special section".)
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "symcache/elf_image.h"

enum {
	/* Unpacked. The symbols of Fedora's largest libraries take 30 MB. */
	MINI_DEBUG_MAX_BYTES = 256 << 20,
	/* Symbol tables pack ten times at best; more is built to fill memory. */
	MINI_DEBUG_MAX_RATIO = 64,
	MINI_DEBUG_MORE_BYTES = 64 << 10, /* over the ratio: small files have little but zeros */
	/* Of the unpacker; `xz -9` wants 65 MiB. */
	MINI_DEBUG_UNPACK_BYTES = 128 << 20,
};

struct mini_debug {
	struct buf bytes;
	struct elf_image image;
};

/* NULL when the binary has none. */
const struct elf_section *mini_debug_find(const struct elf_image *binary);
/*
 * Of a binary that has one. ERROR_BAD_DATA: not xz, cut, damaged, or the symbols of another program
 * (machine, class or build-id); ERROR_LIMIT: over a cap. Open only on success.
 */
struct error *mini_debug_open(const struct elf_image *binary, struct mini_debug *out) MUST_USE;
void mini_debug_close(struct mini_debug *mini);
