/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/kernel_names.h"

#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "symcache/content_id.h"
#include "symcache/symtab_source.h"

#define LOG_AREA "symcache"
#include "base/log.h"

enum { KERNEL_NOTES_MAX_BYTES = 64 << 10 };

void kernel_names_init(struct kernel_names *names, const struct symcache_config *config,
		       struct symbol_supply *supply, struct arena *arena)
{
	*names = (struct kernel_names){
		.reason = SYMBOL_NO_FILE, .supply = supply, .roots = config->debug_roots};
	symbol_texts_init(&names->kallsyms_texts, arena, config->demangle);
}

static void close_vmlinux(struct kernel_names *names)
{
	if (!names->has_vmlinux)
		return;
	vmlinux_source_close(&names->vmlinux);
	symbol_outcome_fini(&names->vmlinux_symbols);
	names->has_vmlinux = names->are_symbols_asked = false;
}

void kernel_names_fini(struct kernel_names *names)
{
	if (names->has_kallsyms)
		kallsyms_fini(&names->kallsyms);
	close_vmlinux(names);
	symbol_texts_fini(&names->kallsyms_texts);
	mem_free(names->fetched);
	*names = (struct kernel_names){0};
}

static void read_kallsyms(struct kernel_names *names, const char *path)
{
	if (names->is_kallsyms_read)
		return;
	names->is_kallsyms_read = true;
	struct error *err = kallsyms_read(&names->kallsyms, path);
	names->has_kallsyms = !err;
	if (err)
		log_debug("kallsyms not read reason=\"%s\"", error_text(err));
	error_free(err);
}

/* table_start: where the table has what the recording had at query->text_start; 0 = unknown. */
static bool relocate(struct kernel_names *names, const struct kernel_query *query,
		     uint64_t table_start)
{
	if (!query->text_start || !table_start)
		return false;
	names->offset = table_start - query->text_start;
	return true;
}

static uint64_t find_relocation_symbol(const struct kernel_names *names,
				       const struct kernel_query *query)
{
	const char *symbol = query->relocation_symbol ? query->relocation_symbol : "_text";
	return strcmp(symbol, "_stext") == 0 ? names->kallsyms.stext : names->kallsyms.text;
}

/*
 * `perf record -o -` writes no build-id of the kernel. The same host and release with the kernel's
 * text at the same (mostly random) address is the same boot, or the same build at least.
 */
static bool is_where_it_lay(const struct kernel_names *names, const struct kernel_query *query)
{
	return names->has_kallsyms && !names->kallsyms.is_hidden && query->text_start &&
	       find_relocation_symbol(names, query) == query->text_start;
}

/* is_given: the user named the file, so it is of the kernel asked for. */
static bool select_kallsyms(struct kernel_names *names, const struct kernel_query *query,
			    bool is_given)
{
	if (!names->has_kallsyms || names->kallsyms.is_hidden || !names->kallsyms.ranges.n)
		return false;
	names->offset = 0;
	uint64_t start = find_relocation_symbol(names, query);
	if (!query->is_this_host && !relocate(names, query, start) && !is_given)
		return false;
	names->uses_kallsyms = true;
	names->trusts_bpf = query->is_this_host || is_given;
	return true;
}

static bool open_vmlinux(struct kernel_names *names, const struct symcache_config *config,
			 const struct kernel_query *query, const struct build_id *build_id)
{
	struct vmlinux_query vmlinux_query = {
		.build_id = *build_id,
		.os_release = query->os_release,
		.path = config->vmlinux,
		.sysroot = config->sysroot,
		.roots = config->debug_roots,
		.places = config->places,
		.fetched = names->fetched,
	};
	if (names->has_vmlinux && !build_id_equal(&names->vmlinux.image.build_id, build_id))
		close_vmlinux(names);
	if (!names->has_vmlinux)
		names->has_vmlinux = vmlinux_source_open(&vmlinux_query, &names->vmlinux);
	return names->has_vmlinux;
}

static bool select_vmlinux(struct kernel_names *names, const struct symcache_config *config,
			   const struct kernel_query *query, const struct build_id *build_id)
{
	bool is_open = open_vmlinux(names, config, query, build_id);
	const char *symbol = query->relocation_symbol ? query->relocation_symbol : "_text";
	uint64_t start;
	names->uses_kallsyms = false;
	bool is_found = is_open && symtab_source_value(&names->vmlinux.image, symbol, &start);
	if (is_open)
		elf_image_trim(&names->vmlinux.image);
	return is_found && relocate(names, query, start);
}

/* Lines for what kallsyms names, when a vmlinux of that very kernel has them. */
static void select_lines(struct kernel_names *names, const struct symcache_config *config,
			 const struct kernel_query *query, const struct build_id *build_id)
{
	uint64_t text;
	names->has_lines =
		names->kallsyms.text && open_vmlinux(names, config, query, build_id) &&
		symbol_supply_quality_of(&names->vmlinux.image) == SYMBOL_QUALITY_DWARF &&
		symtab_source_value(&names->vmlinux.image, "_text", &text);
	if (names->has_vmlinux)
		elf_image_trim(&names->vmlinux.image);
	if (names->has_lines)
		names->lines_offset = text - names->kallsyms.text;
}

void kernel_names_select(struct kernel_names *names, const struct symcache_config *config,
			 const struct kernel_query *query)
{
	if (config->no_symbols) {
		names->reason = SYMBOL_DISABLED;
		return;
	}
	struct build_id host = kernel_names_host_build_id();
	bool is_host = query->is_this_host || build_id_equal(&host, &query->build_id);
	bool may_be_host = query->is_same_release && !build_id_is_set(&query->build_id);
	if (is_host || may_be_host || config->kallsyms)
		read_kallsyms(names, config->kallsyms ? config->kallsyms : "/proc/kallsyms");
	bool may_use_kallsyms =
		is_host || config->kallsyms || (may_be_host && is_where_it_lay(names, query));
	const struct build_id *wanted = &query->build_id;
	if ((query->is_this_host || may_be_host) && !build_id_is_set(wanted))
		wanted = &host;
	names->reason = SYMBOL_FOUND;
	names->lacking = (struct build_id){0};
	if (may_use_kallsyms && select_kallsyms(names, query, config->kallsyms)) {
		select_lines(names, config, query, wanted);
		return;
	}
	wanted = query->is_this_host ? wanted : &query->build_id;
	if (select_vmlinux(names, config, query, wanted))
		return;
	if (!names->has_vmlinux && !config->vmlinux)
		names->lacking = *wanted;
	if (!may_use_kallsyms)
		names->reason = SYMBOL_OTHER_KERNEL;
	else if (names->has_kallsyms && (names->kallsyms.is_hidden || !query->text_start))
		names->reason = SYMBOL_HIDDEN;
	else
		names->reason = SYMBOL_NO_FILE;
}

void kernel_names_set_fetched(struct kernel_names *names, const char *path)
{
	mem_free(names->fetched);
	names->fetched = mem_copy_string(path);
}

static void ask_for_symbols(struct kernel_names *names)
{
	const struct elf_image *image = &names->vmlinux.image;
	struct symbol_outcome *outcome = &names->vmlinux_symbols;
	struct symbol_order order = {
		.id = image->build_id,
		.quality = symbol_supply_quality_of(image),
		.debug_fd = -1,
		.places = {.binary_path = names->vmlinux.path, .roots = names->roots},
	};
	names->are_symbols_asked = true;
	if (names->vmlinux.is_foreign) {
		struct build_id hash;
		struct error *err = content_id_of_fd(names->vmlinux.fd, 0, image->size, &hash);
		if (err) {
			outcome->failure = mem_copy_string(error_text(err));
			error_free(err);
			return;
		}
		content_id_extend(&order.id, &hash);
	}
	if (symbol_supply_find(names->supply, &order.id, order.quality, outcome))
		return;
	order.binary_fd = fcntl(names->vmlinux.fd, F_DUPFD_CLOEXEC, 0);
	if (order.binary_fd < 0)
		return;
	symbol_supply_build(names->supply, &order, outcome);
	symbol_supply_wait(names->supply);
}

/* False when the vmlinux has no name there. */
static bool look_up_vmlinux(struct kernel_names *names, uint64_t address, struct symbol_result *out)
{
	if (!names->are_symbols_asked)
		ask_for_symbols(names);
	struct symbol_file *file = names->vmlinux_symbols.file;
	return file && symbol_file_lookup(file, address, out);
}

static void resolve_kallsyms(struct kernel_names *names, uint64_t address,
			     struct symbol_result *out, const char **module_name_out)
{
	struct kallsyms_hit hit;
	/* BPF programs come and go, those of now say nothing about a recording; and modules do not
	 * move by what the kernel moved. */
	if (!kallsyms_find(&names->kallsyms, address, &hit) ||
	    (!names->trusts_bpf && strcmp(hit.module, "bpf") == 0) ||
	    (names->offset && *hit.module))
		return;
	*module_name_out = hit.module;
	if (names->has_lines && !*hit.module &&
	    look_up_vmlinux(names, address + names->lines_offset, out))
		return;
	const struct symbol_text *text = symbol_texts_find(&names->kallsyms_texts, hit.key);
	if (!text)
		text = symbol_texts_add(&names->kallsyms_texts, hit.key, hit.name, strlen(hit.name),
					"");
	symbol_text_set(out, text, hit.is_folded);
}

void kernel_names_resolve(struct kernel_names *names, uint64_t vaddr, struct symbol_result *out,
			  const char **module_name_out)
{
	*module_name_out = "";
	out->n_frames = 0;
	out->is_folded = false;
	out->reason = names->reason;
	if (names->reason != SYMBOL_FOUND)
		return;
	uint64_t address = vaddr + names->offset;
	out->reason = SYMBOL_GAP;
	if (names->uses_kallsyms) {
		resolve_kallsyms(names, address, out, module_name_out);
		return;
	}
	if (!look_up_vmlinux(names, address, out) && !names->vmlinux_symbols.file)
		out->reason = SYMBOL_FAILED;
}

struct build_id kernel_names_host_build_id(void)
{
	struct build_id id = {0};
	struct buf notes;
	buf_init(&notes, KERNEL_NOTES_MAX_BYTES);
	struct error *err = file_read_all("/sys/kernel/notes", &notes);
	if (!err)
		id = elf_image_note_build_id(notes.data, notes.size);
	error_free(err);
	buf_fini(&notes);
	return id;
}
