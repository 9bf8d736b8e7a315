/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables of binaries, beside their .eh_frame and .eh_frame_hdr: size, CPU time to make and
 * to open one, and finds at random addresses of the text. With several files a line sums up those
 * that have call frame information; files of other kinds are passed over. usage: unwind_table_bench
 * FILE…
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "symcache/cfi_source.h"
#include "symcache/elf_image.h"
#include "symcache/unwind_table.h"
#include "symcache/unwind_table_writer.h"

enum {
	N_ADDRESSES = 1 << 16,
	N_HOT = 1 << 10, /* as many as a profile has over and over */
	N_ROUNDS = 20,
	MAX_TABLE_BYTES = 1 << 28,
	LARGE_BYTES = 50000,
	SHT_NOBITS_TYPE = 8,
};
#define MAX_FILE_BYTES ((size_t)4 << 30)

struct total {
	size_t n, n_large, peer_bytes, bytes;
	double read_s, write_s, largest_ratio;
	char largest[256];
};

static double cpu_seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static size_t section_bytes(const struct elf_image *image, const char *name)
{
	const struct elf_section *section = elf_image_find(image, name);
	return section && section->type != SHT_NOBITS_TYPE ? (size_t)section->size : 0;
}

/* Nanoseconds of a find among the first n addresses, a power of two, in the best round. */
static double time_finds(const struct unwind_table *table, const uint64_t *addresses, size_t n)
{
	double best = 1e9;
	uint64_t sum = 0;
	for (unsigned round = 0; round < N_ROUNDS; round++) {
		double start = cpu_seconds();
		for (size_t i = 0; i < N_ADDRESSES; i++) {
			const struct unwind_rule *rule =
				unwind_table_find(table, addresses[i & (n - 1)]);
			sum += rule ? (uint64_t)rule->cfa.offset : 1;
		}
		double seconds = cpu_seconds() - start;
		best = seconds < best ? seconds : best;
	}
	/* Used, so that the finds stay. */
	if (!sum)
		puts("no rules");
	return best * 1e9 / N_ADDRESSES;
}

static void bench_finds(const struct unwind_table *table, const struct unwind_model *model)
{
	uint64_t start = model->rows[0].svma, state = 1;
	uint64_t length = model->rows[model->n_rows - 1].svma - start;
	uint64_t *addresses = mem_alloc(N_ADDRESSES * sizeof(*addresses));
	for (size_t i = 0; i < N_ADDRESSES; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		addresses[i] = start + (state >> 16) % length;
	}
	printf("; find %.1f ns hot, %.1f ns anywhere", time_finds(table, addresses, N_HOT),
	       time_finds(table, addresses, N_ADDRESSES));
	mem_free(addresses);
}

static struct error *bench_model(const struct unwind_model *model, const struct elf_image *image,
				 const char *path, bool is_alone, struct total *total)
{
	struct buf bytes;
	struct unwind_table table;
	size_t peer = section_bytes(image, ".eh_frame") + section_bytes(image, ".eh_frame_hdr");
	buf_init(&bytes, MAX_TABLE_BYTES);
	double start = cpu_seconds();
	struct error *err = unwind_table_write(model, &bytes);
	double written = cpu_seconds();
	if (!err)
		err = unwind_table_open(bytes.data, bytes.size, &table);
	double opened = cpu_seconds();
	if (!err && peer && model->n_rows) {
		double ratio = (double)bytes.size / (double)peer;
		total->n++;
		total->peer_bytes += peer;
		total->bytes += bytes.size;
		total->write_s += written - start;
		if (peer > LARGE_BYTES) {
			total->n_large++;
			if (ratio > total->largest_ratio) {
				total->largest_ratio = ratio;
				snprintf(total->largest, sizeof(total->largest), "%s", path);
			}
		}
		if (is_alone) {
			printf("%s: %zu bytes, %.2f of %zu; %zu rows, %u rules; write %.1f ms, "
			       "open %.2f ms",
			       path, bytes.size, ratio, peer, model->n_rows, table.n_rules,
			       (written - start) * 1e3, (opened - written) * 1e3);
			bench_finds(&table, model);
			puts("");
		}
	}
	if (!err)
		unwind_table_close(&table);
	buf_fini(&bytes);
	return err;
}

static struct error *bench_file(const char *path, bool is_alone, struct total *total)
{
	struct file_map map;
	struct elf_image image;
	struct unwind_model model;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_errno(errno, "open");
	struct error *err = file_map_fd(fd, MAX_FILE_BYTES, &map);
	close(fd);
	if (err)
		return err;
	err = elf_image_init(&image, map.data, map.size);
	if (!err) {
		double start = cpu_seconds();
		err = cfi_source_read(&image, NULL, &model);
		total->read_s += cpu_seconds() - start;
		if (!err) {
			err = bench_model(&model, &image, path, is_alone, total);
			unwind_model_fini(&model);
		}
		elf_image_fini(&image);
	}
	file_map_close(&map);
	return err;
}

int main(int argc, char **argv)
{
	enum { MAX_ALONE = 16 };
	struct total total = {0};
	if (argc < 2) {
		fprintf(stderr, "usage: %s FILE...\n", argv[0]);
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		struct error *err = bench_file(argv[i], argc <= MAX_ALONE, &total);
		if (err && argc <= MAX_ALONE)
			printf("%s: %s\n", argv[i], error_text(err));
		error_free(err);
	}
	if (total.n > 1)
		printf("%zu binaries: %.3f MB, %.3f of %.1f MB; read %.2f s, written in %.2f s; "
		       "%zu with more than %d bytes of it: at most %.3f (%s)\n",
		       total.n, (double)total.bytes / 1e6,
		       (double)total.bytes / (double)total.peer_bytes,
		       (double)total.peer_bytes / 1e6, total.read_s, total.write_s, total.n_large,
		       LARGE_BYTES, total.largest_ratio, total.largest);
	return total.n ? 0 : 1;
}
