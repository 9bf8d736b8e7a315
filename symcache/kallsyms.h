/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel function names out of /proc/kallsyms or a copy of it, read as a stream and kept compact:
 * 32-bit offsets and one block of names.
 *
 * Sizes are not in the text, so a symbol runs to the next address named, text or data. It ends
 * earlier where the next name cannot tell: at the end of a module (KALLSYMS_TAIL_BYTES, rounded up
 * to pages) and after KALLSYMS_MAX_RUN_BYTES. _etext and _einittext start a gap. Of several names
 * at one address the first of this order is shown: global, weak, local, the shortest, the lowest
 * bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "symcache/address_index.h"

enum {
	KALLSYMS_MAX_SYMBOLS = 1 << 22,
	KALLSYMS_MAX_NAME_BYTES = 64 << 20, /* all names together */
	KALLSYMS_MAX_LINE_BYTES = 1024,	    /* the kernel's KSYM_NAME_LEN is 512 */
	KALLSYMS_MAX_MODULES = 4096,
	KALLSYMS_TAIL_BYTES = 4096,
	KALLSYMS_MAX_RUN_BYTES = 1 << 20,
};

struct kallsyms {
	struct address_index ranges;
	uint32_t *names;   /* per range: offset in texts, or a gap */
	uint16_t *modules; /* per range: index in module_names; 0 = the kernel itself */
	struct buf texts;  /* names, each with its 0 */
	uint32_t *module_names;
	uint32_t n_modules;
	bool is_hidden; /* all addresses are 0: kptr_restrict */
	uint64_t text;	/* address of _text, 0 if not listed */
	uint64_t stext; /* address of _stext */
};

/* Names are borrowed from the table. module is "" for the kernel itself, "bpf" for BPF programs. */
struct kallsyms_hit {
	uint32_t key;
	const char *name;
	const char *module;
	bool is_folded;
};

/* Lines that are not of the form `address type name [module]` are skipped. ERROR_NO_ENTRY and
 * ERROR_DENIED as the file has them. */
struct error *kallsyms_read(struct kallsyms *table, const char *path) MUST_USE;
/* The same from memory. */
void kallsyms_parse(struct kallsyms *table, const char *text, size_t n);
void kallsyms_fini(struct kallsyms *table);
bool kallsyms_find(const struct kallsyms *table, uint64_t address, struct kallsyms_hit *out);
