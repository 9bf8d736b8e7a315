/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/builder_job.h"

#include <elf.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "symcache/dwarf_source.h"
#include "symcache/elf_image.h"
#include "symcache/mini_debug.h"
#include "symcache/pclntab_source.h"
#include "symcache/symbol_file.h"
#include "symcache/symbol_file_writer.h"
#include "symcache/symbol_naming.h"
#include "symcache/symtab_source.h"

/* An open ELF file. */
struct input {
	struct file_map map;
	struct elf_image image;
};

/* Files that were asked for; open until the job ends. */
struct visitors {
	const struct builder_job *job;
	struct input **items;
	size_t n, capacity;
};

static struct error *open_input(int fd, struct input *out)
{
	struct error *err = file_map_fd(fd, BUILDER_JOB_MAX_FILE_BYTES, &out->map);
	if (err)
		return err;
	err = elf_image_init(&out->image, out->map.data, out->map.size);
	if (err)
		file_map_close(&out->map);
	return err;
}

static void close_input(struct input *input)
{
	elf_image_fini(&input->image);
	file_map_close(&input->map);
}

static const struct elf_image *ask(struct visitors *visitors, const struct builder_wish *wish)
{
	const struct builder_job *job = visitors->job;
	CLEANUP(cleanup_fd) int fd = job->find ? job->find(job->find_context, wish) : -1;
	if (fd < 0)
		return NULL;
	struct input *input = mem_zalloc(1, sizeof(*input));
	struct error *err = open_input(fd, input);
	if (err) {
		error_free(err);
		mem_free(input);
		return NULL;
	}
	if (visitors->n == visitors->capacity) {
		visitors->capacity = visitors->capacity ? 2 * visitors->capacity : 16;
		visitors->items =
			mem_realloc(visitors->items, visitors->capacity, sizeof(struct input *));
	}
	visitors->items[visitors->n++] = input;
	return &input->image;
}

static const struct elf_image *find_alternate(void *context, const char *path,
					      const struct build_id *id)
{
	const struct elf_image *image =
		ask(context,
		    &(struct builder_wish){
			    .kind = BUILDER_WISH_ALTERNATE, .id = *id, .folder = "", .name = path});
	return image && build_id_equal(&image->build_id, id) ? image : NULL;
}

static const struct elf_image *find_dwo(void *context, const char *folder, const char *name,
					uint64_t id)
{
	(void)id; /* of a unit inside: checked by who reads it */
	return ask(context, &(struct builder_wish){.kind = BUILDER_WISH_DWO,
						   .folder = folder ? folder : "",
						   .name = name});
}

static const struct elf_image *find_package(void *context)
{
	return ask(context,
		   &(struct builder_wish){.kind = BUILDER_WISH_PACKAGE, .folder = "", .name = ""});
}

static bool has_dwarf(const struct elf_image *image)
{
	return elf_image_find(image, ".debug_info") || elf_image_find(image, ".zdebug_info");
}

static struct error *read_dwarf(const struct builder_job *job, const struct elf_image *image,
				struct symbol_model *model)
{
	struct visitors visitors = {.job = job};
	const struct dwarf_source_files files = {
		.context = &visitors,
		.find_alternate = find_alternate,
		.find_dwo = find_dwo,
		.find_package = find_package,
		.is_file_mapping = true,
	};
	struct dwarf_source_stats stats;
	struct error *err = dwarf_source_read(image, &files, model, &stats);
	for (size_t i = 0; i < visitors.n; i++) {
		close_input(visitors.items[i]);
		mem_free(visitors.items[i]);
	}
	mem_free(visitors.items);
	if (err && error_get_code(err) == ERROR_UNSUPPORTED) {
		/* Relocatable: its symbol table still names functions. */
		error_free(err);
		err = NULL;
	}
	return err;
}

static struct error *write_out(const struct builder_job *job, const struct symbol_model *model)
{
	const struct symbol_file_options options = {.build_id = job->id};
	struct buf out;
	buf_init(&out, SYMBOL_FILE_MAX_BYTES);
	struct error *err = symbol_file_write(model, &options, &out);
	if (!err)
		err = file_write(job->out_fd, out.data, out.size);
	buf_fini(&out);
	return err;
}

/* .symtab of the binary, of its debug file, or else what was packed into the binary. */
static void read_symbol_tables(const struct elf_image *binary, const struct elf_image *debug,
			       struct symbol_model *model)
{
	bool has_table = elf_image_find_type(binary, SHT_SYMTAB) ||
			 (debug && elf_image_find_type(debug, SHT_SYMTAB));
	struct mini_debug mini;
	bool has_mini = !has_table && mini_debug_find(binary);
	struct error *err = has_mini ? mini_debug_open(binary, &mini) : NULL;
	/* Damage leaves .dynsym; that the better source gave nothing shows in the file's quality.
	 */
	has_mini = has_mini && !err;
	error_free(err);
	symtab_source_read(binary, has_mini ? &mini.image : debug, model);
	if (has_mini)
		mini_debug_close(&mini);
}

static struct error *build(const struct builder_job *job, const struct elf_image *binary,
			   const struct elf_image *debug)
{
	struct symbol_model model;
	symbol_model_init(&model);
	const struct elf_image *dwarf = has_dwarf(binary) ? binary : debug;
	struct error *err = dwarf && !job->no_dwarf ? read_dwarf(job, dwarf, &model) : NULL;
	if (!err && !model.ranges.n)
		pclntab_source_read(binary, &model);
	if (!err) {
		size_t n_dwarf = model.ranges.n;
		read_symbol_tables(binary, debug, &model);
		symbol_naming_apply(&model, n_dwarf);
		symbol_model_finish(&model);
		err = write_out(job, &model);
	}
	symbol_model_fini(&model);
	return err;
}

struct error *builder_job_run(const struct builder_job *job)
{
	struct input binary, debug;
	struct error *err = open_input(job->binary_fd, &binary);
	if (err)
		return err;
	bool has_debug = false;
	if (job->debug_fd >= 0) {
		err = open_input(job->debug_fd, &debug);
		has_debug = !err;
	}
	if (!err)
		err = build(job, &binary.image, has_debug ? &debug.image : NULL);
	if (has_debug)
		close_input(&debug);
	close_input(&binary);
	return err;
}
