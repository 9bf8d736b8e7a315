/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF of files to symbol models: CPU, peak memory, and what came out. With --lookup FILE it reads
 * addresses from standard input instead and prints what llvm-symbolizer would.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "symcache/dwarf_source.h"
#include "tests/support/model_lookup.h"

static const size_t max_file_bytes = (size_t)16 << 30;
enum { LOOKUP_TEXT_BYTES = 1 << 16 };

static double cpu_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double peak_mib(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss / 1024;
}

static int fail(struct error *err)
{
	fprintf(stderr, "%s\n", error_text(err));
	error_free(err);
	return 1;
}

static struct error *read_model(const char *path, struct file_map *map, struct elf_image *image,
				struct symbol_model *model, struct dwarf_source_stats *stats)
{
	struct error *err = file_map_open(path, max_file_bytes, map);
	if (!err)
		err = elf_image_init(image, map->data, map->size);
	if (err)
		return err;
	symbol_model_init(model);
	return dwarf_source_read(image, &(struct dwarf_source_files){.is_file_mapping = true},
				 model, stats);
}

static int measure(const char *path)
{
	struct file_map map;
	struct elf_image image;
	struct symbol_model model;
	struct dwarf_source_stats stats;
	struct error *err = read_model(path, &map, &image, &model, &stats);
	if (err)
		return fail(err);
	double read_cpu = cpu_seconds(), read_mib = peak_mib();
	printf("%s\n  read   %.2f s CPU, peak %.0f MiB: %zu ranges, %zu chains, %zu lines\n", path,
	       read_cpu, read_mib, model.ranges.n, model.chains.n, model.lines.n);
	symbol_model_finish(&model);
	printf("  finish %.2f s CPU, peak %.0f MiB: %zu ranges, %zu chains, %zu functions, "
	       "%zu files, %u strings, %zu lines\n",
	       cpu_seconds() - read_cpu, peak_mib(), model.ranges.n, model.chains.n,
	       model.functions.n, model.files.n, model.strings.n, model.lines.n);
	printf("  %u units, %u damaged, %u damaged line tables, %u damaged sections\n",
	       stats.n_units, stats.n_damaged_units, stats.n_damaged_line_tables,
	       stats.n_damaged_sections);
	symbol_model_fini(&model);
	elf_image_fini(&image);
	file_map_close(&map);
	return 0;
}

static int look_up(const char *path)
{
	struct file_map map;
	struct elf_image image;
	struct symbol_model model;
	struct dwarf_source_stats stats;
	struct error *err = read_model(path, &map, &image, &model, &stats);
	if (err)
		return fail(err);
	symbol_model_finish(&model);
	char line[64];
	static char text[LOOKUP_TEXT_BYTES];
	while (fgets(line, sizeof(line), stdin)) {
		model_lookup_text(&model, strtoull(line, NULL, 16), text, sizeof(text));
		printf("%s\n", text);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--lookup") == 0)
		return look_up(argv[2]);
	/* Each file in a process of its own, so that peaks are apart. */
	for (int i = 1; i < argc; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			int result = measure(argv[i]);
			fflush(stdout);
			_exit(result);
		}
		int status = 1;
		if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
			return 1;
	}
	return 0;
}
