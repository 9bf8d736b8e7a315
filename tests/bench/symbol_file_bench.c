/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol files of debug files, beside llvm-gsymutil-14's of the same ones: CPU time to make it,
 * size, warm look-ups at random addresses of functions, and a cold one with the opening.
 * usage: symbol_file_bench DEBUG_FILE…
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "symcache/dwarf_source.h"
#include "symcache/elf_image.h"
#include "symcache/symbol_file.h"
#include "symcache/symbol_file_writer.h"
#include "symcache/symbol_model.h"
#include "symcache/symtab_source.h"

enum {
	MAX_DEBUG_BYTES = 1 << 30,
	N_ADDRESSES = 1 << 20,
	CHUNK = 1 << 14,
	N_ROUNDS = 4,
	N_COLD = 20,
};

static double cpu_seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 20;
}

/* Random addresses of the ranges, each byte as likely as the next. */
static uint64_t *choose_addresses(const struct symbol_model *model)
{
	size_t n = model->ranges.n;
	uint64_t *before = mem_alloc((n + 1) * sizeof(*before)), state = 1;
	before[0] = 0;
	for (size_t i = 0; i < n; i++)
		before[i + 1] =
			before[i] + model->ranges.items[i].end - model->ranges.items[i].start;
	uint64_t *addresses = mem_alloc(N_ADDRESSES * sizeof(*addresses));
	for (size_t i = 0; i < N_ADDRESSES; i++) {
		uint64_t byte = next_random(&state) % before[n];
		size_t low = 0, high = n;
		while (high - low > 1) {
			size_t middle = low + (high - low) / 2;
			*(before[middle] <= byte ? &low : &high) = middle;
		}
		addresses[i] = model->ranges.items[low].start + byte - before[low];
	}
	mem_free(before);
	return addresses;
}

/* The best and the mean of runs of CHUNK look-ups, and frames for each. */
static void bench_warm(struct symbol_file *file, const uint64_t *addresses)
{
	struct symbol_result result;
	uint64_t n_frames = 0;
	double best = 1e9, sum = 0;
	for (size_t i = 0; i < N_ADDRESSES; i++)
		(void)symbol_file_lookup(file, addresses[i], &result);
	for (size_t i = 0; i < (size_t)N_ROUNDS * N_ADDRESSES; i += CHUNK) {
		double start = cpu_seconds();
		for (size_t k = 0; k < CHUNK; k++) {
			(void)symbol_file_lookup(file, addresses[(i + k) % N_ADDRESSES], &result);
			n_frames += result.n_frames;
		}
		double ns = (cpu_seconds() - start) * 1e9 / CHUNK;
		sum += ns;
		best = ns < best ? ns : best;
	}
	const double n = (double)N_ROUNDS * N_ADDRESSES;
	printf("  warm look-up   %.0f ns mean, %.0f ns in the best run, %.2f frames\n",
	       sum / (n / CHUNK), best, (double)n_frames / n);
}

static void bench_cold(const char *path, const uint64_t *addresses)
{
	struct symbol_result result;
	struct symbol_file *file;
	double start = cpu_seconds();
	for (size_t i = 0; i < N_COLD; i++) {
		struct error *err = symbol_file_open(path, SYMCACHE_DEMANGLE_NORMAL, &file);
		if (err) {
			puts(error_text(err));
			error_free(err);
			return;
		}
		(void)symbol_file_lookup(file, addresses[i], &result);
		symbol_file_close(file);
	}
	printf("  open, look up  %.0f us\n", (cpu_seconds() - start) * 1e6 / N_COLD);
}

/* CPU seconds and peak memory of the peer; its file at out. 0 when it did not run. */
static size_t run_peer(const char *debug_path, const char *out)
{
	pid_t child = fork();
	if (child == 0) {
		int null = open("/dev/null", O_WRONLY);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execlp("llvm-gsymutil-14", "llvm-gsymutil-14", "--convert", debug_path, "-o", out,
		       "--num-threads", "1", (char *)NULL);
		_exit(127);
	}
	int status;
	struct rusage usage;
	struct stat st;
	if (wait4(child, &status, 0, &usage) != child || status != 0 || stat(out, &st) < 0)
		return 0;
	printf("  gsymutil       %.2f s CPU, %ld MiB, %.2f MB\n",
	       (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6,
	       usage.ru_maxrss / 1024, (double)st.st_size / 1e6);
	return (size_t)st.st_size;
}

static struct error *save(const char *path, const struct buf *bytes)
{
	struct file_writer writer;
	struct error *err = file_writer_open(path, &writer);
	if (err)
		return err;
	err = file_write(writer.fd, bytes->data, bytes->size);
	if (!err)
		err = file_writer_commit(&writer);
	file_writer_close(&writer);
	return err;
}

static struct error *bench_model(struct symbol_model *model, const struct elf_image *image,
				 const char *debug_path, const char *folder)
{
	struct buf bytes;
	char path[256], peer_path[256];
	snprintf(path, sizeof(path), "%s/file.sym", folder);
	snprintf(peer_path, sizeof(peer_path), "%s/file.gsym", folder);
	buf_init(&bytes, SYMBOL_FILE_MAX_BYTES);
	double start = cpu_seconds();
	struct symbol_file_options options = {.build_id = image->build_id};
	struct error *err = symbol_file_write(model, &options, &bytes);
	if (!err)
		err = save(path, &bytes);
	if (!err) {
		printf("  write          %.2f s CPU, %.3f MB\n", cpu_seconds() - start,
		       (double)bytes.size / 1e6);
		size_t peer_bytes = run_peer(debug_path, peer_path);
		if (peer_bytes)
			printf("  size           %.2f of gsymutil's\n",
			       (double)bytes.size / (double)peer_bytes);
	}
	struct symbol_file *file = NULL;
	if (!err)
		err = symbol_file_open(path, SYMCACHE_DEMANGLE_NORMAL, &file);
	if (!err) {
		uint64_t *addresses = choose_addresses(model);
		bench_warm(file, addresses);
		symbol_file_close(file);
		bench_cold(path, addresses);
		mem_free(addresses);
	}
	unlink(path);
	unlink(peer_path);
	buf_fini(&bytes);
	return err;
}

static struct error *bench_image(const struct elf_image *image, const char *debug_path,
				 const char *folder)
{
	struct symbol_model model;
	struct dwarf_source_files files = {.is_file_mapping = true};
	struct dwarf_source_stats stats;
	symbol_model_init(&model);
	double start = cpu_seconds();
	struct error *err = dwarf_source_read(image, &files, &model, &stats);
	if (!err) {
		symtab_source_read(image, NULL, &model);
		symbol_model_finish(&model);
		printf("  read           %.2f s CPU; %zu functions, %zu chains, %zu ranges, %zu "
		       "rows\n",
		       cpu_seconds() - start, model.functions.n, model.chains.n, model.ranges.n,
		       model.lines.n);
		if (model.ranges.n)
			err = bench_model(&model, image, debug_path, folder);
	}
	symbol_model_fini(&model);
	return err;
}

static struct error *bench_file(const char *path, const char *folder)
{
	struct file_map map;
	struct elf_image image;
	printf("%s\n", path);
	struct error *err = file_map_open(path, MAX_DEBUG_BYTES, &map);
	if (err)
		return err;
	err = elf_image_init(&image, map.data, map.size);
	if (!err) {
		err = bench_image(&image, path, folder);
		elf_image_fini(&image);
	}
	file_map_close(&map);
	return err;
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/perfpipe-bench-XXXXXX";
	int status = 0;
	if (argc < 2 || !mkdtemp(folder)) {
		fprintf(stderr, "usage: symbol_file_bench DEBUG_FILE...\n");
		return 1;
	}
	for (int i = 1; i < argc; i++) {
		struct error *err = bench_file(argv[i], folder);
		if (!err)
			continue;
		fprintf(stderr, "%s\n", error_text(err));
		error_free(err);
		status = 1;
	}
	rmdir(folder);
	return status;
}
