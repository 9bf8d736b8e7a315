/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for kernel addresses: from this host's kallsyms when the kernel is this host's (said so, or
 * the build-id of /sys/kernel/notes), from a kallsyms copy that the user names, else from a vmlinux
 * with the kernel's build-id. Recorded addresses are moved by what KASLR moved them: the
 * difference between the recorded address of _text (or _stext) and the table's. A vmlinux with
 * DWARF gives lines and inlined calls where kallsyms gives the names, too.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "symcache/kallsyms.h"
#include "symcache/symbol_supply.h"
#include "symcache/symbol_text.h"
#include "symcache/symcache.h"
#include "symcache/vmlinux_source.h"

struct kernel_names {
	struct kallsyms kallsyms; /* read when first needed, kept */
	bool is_kallsyms_read, has_kallsyms;
	struct vmlinux_source vmlinux;
	bool has_vmlinux;
	struct symbol_outcome vmlinux_symbols; /* asked for when first needed */
	bool are_symbols_asked;
	struct symbol_supply *supply;
	const char *const *roots;
	enum symbol_reason reason; /* SYMBOL_FOUND: one of the tables is in use */
	bool uses_kallsyms;
	bool trusts_bpf;       /* BPF programs in kallsyms are those of the recording */
	uint64_t offset;       /* table address = recorded address + offset */
	bool has_lines;	       /* uses_kallsyms, and the vmlinux has DWARF */
	uint64_t lines_offset; /* address in the vmlinux = address in kallsyms + lines_offset */
	struct symbol_texts kallsyms_texts;
	char *fetched;		 /* path of a vmlinux that came from elsewhere; NULL = none */
	struct build_id lacking; /* whose vmlinux would give names; empty = none would */
};

/*
 * The configuration's texts are borrowed; its list of debug roots has the default put in. supply is
 * NULL with no_symbols only.
 */
void kernel_names_init(struct kernel_names *names, const struct symcache_config *config,
		       struct symbol_supply *supply, struct arena *arena);
void kernel_names_fini(struct kernel_names *names);
void kernel_names_select(struct kernel_names *names, const struct symcache_config *config,
			 const struct kernel_query *query);
/* Another place for the vmlinux that was lacking; to be followed by kernel_names_select. */
void kernel_names_set_fetched(struct kernel_names *names, const char *path);
void kernel_names_resolve(struct kernel_names *names, uint64_t vaddr, struct symbol_result *out,
			  const char **module_name_out);
struct build_id kernel_names_host_build_id(void);
