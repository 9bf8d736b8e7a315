/* SPDX-License-Identifier: Apache-2.0 */
/* FR-19: every place where a debug file may lie, in turn, and the order between them. */
#include "symcache/debug_file.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "tests/support/elf_writer.h"
#include "tests/support/temp_dir.h"

static const uint8_t build_id[20] = {0xab, 0xcd, 0xef, 1};
#define ID_HEX "cdef0100000000000000000000000000000000"
static const uint8_t other_id[20] = {0xab, 0xcd, 0xef, 2};

struct fixture {
	struct temp_dir dir;
	struct elf_writer writer;
	struct elf_image image;
	const char *roots[3];
	struct debug_file_query query;
	struct debug_file found;
	char binary[PATH_MAX], root[PATH_MAX], target[PATH_MAX];
};

static void begin_debug(struct elf_writer *writer, const uint8_t *id, const char *symbol)
{
	elf_writer_init(writer, true, false, EM_X86_64);
	uint16_t text = (uint16_t)elf_writer_text(writer, 0x1000, 0x100);
	elf_writer_symbol(writer, false, symbol, 0x1000, 8, STB_GLOBAL, STT_FUNC, text);
	if (id)
		elf_writer_note(writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, id, 20);
}

static void save_debug(const char *path, const uint8_t *id, const char *symbol)
{
	struct elf_writer writer;
	begin_debug(&writer, id, symbol);
	elf_writer_save(&writer, path);
	elf_writer_fini(&writer);
}

static uint32_t crc_of_debug(const uint8_t *id, const char *symbol)
{
	struct elf_writer writer;
	begin_debug(&writer, id, symbol);
	size_t n;
	const uint8_t *bytes = elf_writer_finish(&writer, &n);
	uint32_t crc = (uint32_t)crc32_z(crc32(0, NULL, 0), bytes, n);
	elf_writer_fini(&writer);
	return crc;
}

/* A stripped binary at bin/app; its link names app.debug with that CRC. */
static void begin_linked(struct fixture *f, const uint8_t *id, const char *link, uint32_t crc)
{
	*f = (struct fixture){0};
	temp_dir_init(&f->dir);
	snprintf(f->binary, sizeof(f->binary), "%s", temp_dir_path(&f->dir, "bin/app"));
	snprintf(f->root, sizeof(f->root), "%s", temp_dir_path(&f->dir, "debug"));
	snprintf(f->target, sizeof(f->target), "%s", temp_dir_path(&f->dir, "target"));
	elf_writer_init(&f->writer, true, false, EM_X86_64);
	elf_writer_text(&f->writer, 0x1000, 0x100);
	if (id)
		elf_writer_note(&f->writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, id, 20);
	uint8_t bytes[64] = {0};
	size_t n = (strlen(link) + 4) & ~(size_t)3;
	memcpy(bytes, link, strlen(link));
	memcpy(bytes + n, &crc, sizeof(crc));
	elf_writer_section(&f->writer, ".gnu_debuglink", SHT_PROGBITS, 0, 0, bytes, n + 4);
	size_t size;
	const uint8_t *data = elf_writer_finish(&f->writer, &size);
	assert_null(elf_image_init(&f->image, data, size));
	f->roots[0] = f->root;
	f->query =
		(struct debug_file_query){.image = &f->image, .path = f->binary, .roots = f->roots};
}

static void begin(struct fixture *f)
{
	begin_linked(f, build_id, "app.debug", 0);
}

static void end(struct fixture *f)
{
	debug_file_close(&f->found);
	elf_image_fini(&f->image);
	elf_writer_fini(&f->writer);
	temp_dir_fini(&f->dir);
}

static void assert_found_at(struct fixture *f, const char *part)
{
	bool is_found = debug_file_open(&f->query, &f->found);
	for (size_t i = 0; !is_found && i < f->found.n_places; i++)
		printf("%s\n", f->found.places[i]);
	assert_true(is_found);
	/* These have symbol tables alone, so the search went on behind them. */
	size_t n = 0;
	for (size_t i = 0; i < f->found.n_places; i++) {
		const char *place = f->found.places[i];
		if (!strstr(place, ": found"))
			continue;
		n++;
		assert_non_null(strstr(place, part));
	}
	assert_int_equal(n, 1);
}

static void check_place(const char *relative)
{
	struct fixture f;
	begin(&f);
	char path[2 * PATH_MAX];
	/* The mirrored tree repeats the binary's whole folder below the root. */
	if (strcmp(relative, "mirror") == 0)
		snprintf(path, sizeof(path), "debug%s/bin/app.debug", f.dir.path);
	else
		snprintf(path, sizeof(path), "%s", relative);
	save_debug(temp_dir_path(&f.dir, path), build_id, "f");
	assert_found_at(&f, path);
	end(&f);
}

static void debug_file_is_found_in_each_place(void **state)
{
	(void)state;
	check_place("debug/.build-id/ab/" ID_HEX ".debug");
	check_place("debug/ab/" ID_HEX "/debuginfo");
	check_place("bin/app.debug");
	check_place("bin/.debug/app.debug");
	check_place("mirror");
}

static void debug_file_is_looked_for_in_documented_order(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	assert_false(debug_file_open(&f.query, &f.found));
	static const char *const order[] = {"/.build-id/ab/" ID_HEX ".debug",
					    "/ab/" ID_HEX "/debuginfo", "/bin/app.debug",
					    "/bin/.debug/app.debug", "/bin/app.debug"};
	assert_int_equal(f.found.n_places, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_non_null(strstr(f.found.places[i], order[i]));
		assert_non_null(strstr(f.found.places[i], ": No such file"));
	}
	assert_non_null(strstr(f.found.places[4], f.root));
	end(&f);
}

static void debug_file_of_target_root_comes_before_that_of_host(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	char path[2 * PATH_MAX];
	snprintf(path, sizeof(path), "target%s/.build-id/ab/" ID_HEX ".debug", f.root);
	save_debug(temp_dir_path(&f.dir, path), build_id, "in_target");
	save_debug(temp_dir_path(&f.dir, "debug/.build-id/ab/" ID_HEX ".debug"), build_id, "host");
	f.query.target_root = f.target;
	assert_found_at(&f, path);
	end(&f);
}

static void debug_file_of_host_serves_target_that_has_none(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	save_debug(temp_dir_path(&f.dir, "debug/.build-id/ab/" ID_HEX ".debug"), build_id, "f");
	f.query.target_root = f.target;
	assert_found_at(&f, ".build-id");
	assert_non_null(strstr(f.found.places[0], f.target));
	assert_non_null(strstr(f.found.places[1], ": found"));
	end(&f);
}

static void links_do_not_lead_out_of_the_target_root(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	char link[2 * PATH_MAX];
	snprintf(link, sizeof(link), "target%s/.build-id/ab/" ID_HEX ".debug", f.root);
	const char *outside = temp_dir_path(&f.dir, "outside.debug");
	save_debug(outside, build_id, "f");
	assert_int_equal(symlink(outside, temp_dir_path(&f.dir, link)), 0);
	f.query.target_root = f.target;
	assert_false(debug_file_open(&f.query, &f.found));
	end(&f);
}

static void debug_file_with_another_id_is_refused(void **state)
{
	(void)state;
	static const uint8_t other[20] = {1, 2, 3};
	struct fixture f;
	begin(&f);
	save_debug(temp_dir_path(&f.dir, "debug/.build-id/ab/" ID_HEX ".debug"), other, "f");
	save_debug(temp_dir_path(&f.dir, "bin/app.debug"), other, "f");
	assert_false(debug_file_open(&f.query, &f.found));
	assert_non_null(strstr(f.found.places[0], "other build-id"));
	assert_non_null(strstr(f.found.places[2], "other build-id"));
	end(&f);
}

static void debug_file_without_build_id_is_taken_by_its_crc(void **state)
{
	(void)state;
	struct fixture f;
	begin_linked(&f, NULL, "app.debug", crc_of_debug(NULL, "right"));
	save_debug(temp_dir_path(&f.dir, "bin/app.debug"), NULL, "wrong");
	save_debug(temp_dir_path(&f.dir, "bin/.debug/app.debug"), NULL, "right");
	assert_found_at(&f, "bin/.debug/app.debug");
	assert_non_null(strstr(f.found.places[0], "bin/app.debug: other CRC"));
	end(&f);
}

/* With DWARF, of which a section's name is all that is looked at. */
static void save_rich_debug(const char *path)
{
	struct elf_writer writer;
	begin_debug(&writer, build_id, "f");
	elf_writer_section(&writer, ".debug_info", SHT_PROGBITS, 0, 0, "x", 1);
	elf_writer_save(&writer, path);
	elf_writer_fini(&writer);
}

static void poor_debug_file_keeps_nobody_from_a_better_one(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	save_debug(temp_dir_path(&f.dir, "debug/.build-id/ab/" ID_HEX ".debug"), build_id, "f");
	save_rich_debug(temp_dir_path(&f.dir, "bin/.debug/app.debug"));
	assert_true(debug_file_open(&f.query, &f.found));
	assert_non_null(strstr(f.found.path, "bin/.debug/app.debug"));
	assert_non_null(strstr(f.found.places[0], ": found, without DWARF"));
	/* The better one ends the search. */
	assert_non_null(
		strstr(f.found.places[f.found.n_places - 1], "bin/.debug/app.debug: found"));
	end(&f);
}

static void offered_file_is_taken_when_it_is_better(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	const char *poor = temp_dir_path(&f.dir, "poor"), *rich = temp_dir_path(&f.dir, "rich");
	const char *other = temp_dir_path(&f.dir, "other");
	save_debug(poor, build_id, "f");
	save_rich_debug(rich);
	save_debug(other, other_id, "f");
	assert_false(debug_file_offer(&f.found, &f.image, open(other, O_RDONLY), other));
	assert_false(f.found.is_open);
	assert_true(debug_file_offer(&f.found, &f.image, open(poor, O_RDONLY), poor));
	assert_true(debug_file_offer(&f.found, &f.image, open(rich, O_RDONLY), rich));
	assert_false(debug_file_offer(&f.found, &f.image, open(poor, O_RDONLY), poor));
	assert_string_equal(f.found.path, rich);
	end(&f);
}

static void caches_are_looked_into_by_build_id(void **state)
{
	(void)state;
	static const char *const places[] = {
		"perf/.build-id/ab/" ID_HEX "/debug",
		"perf/.build-id/ab/" ID_HEX "/elf",
		"perf/.build-id/ab/" ID_HEX,
		"client/ab" ID_HEX "/debuginfo",
	};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct fixture f;
		begin(&f);
		char perf[PATH_MAX], client[PATH_MAX];
		snprintf(perf, sizeof(perf), "%s/perf", f.dir.path);
		snprintf(client, sizeof(client), "%s/client", f.dir.path);
		const struct file_places caches = {.perf = perf, .clients = {client}};
		f.query.places = &caches;
		save_rich_debug(temp_dir_path(&f.dir, places[i]));
		assert_found_at(&f, places[i]);
		debug_file_close(&f.found);
		/* Whose it is counts there, as others may write into homes of theirs. */
		if (geteuid() == 0) {
			assert_int_equal(chown(temp_dir_path(&f.dir, places[i]), 1234, 1234), 0);
			assert_false(debug_file_open(&f.query, &f.found));
		}
		end(&f);
	}
}

static void alternate_is_read_from_its_link(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t n;
		bool is_link;
	} cases[] = {
		{"../x.debug\0\1\2\3\4", 15, true},
		{"x\0\1", 3, true},
		{"x\0", 2, false},
		{"x", 1, false},
		{"", 0, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct elf_writer writer;
		struct elf_image image;
		struct debug_alternate alternate;
		elf_writer_init(&writer, true, false, EM_X86_64);
		elf_writer_section(&writer, ".gnu_debugaltlink", SHT_PROGBITS, 0, 0, cases[i].bytes,
				   cases[i].n);
		size_t n;
		const uint8_t *bytes = elf_writer_finish(&writer, &n);
		assert_null(elf_image_init(&image, bytes, n));
		assert_int_equal(debug_file_alternate(&image, &alternate), cases[i].is_link);
		if (i == 0) {
			assert_string_equal(alternate.path, "../x.debug");
			assert_int_equal(alternate.id.size, 4);
			assert_int_equal(alternate.id.bytes[3], 4);
		}
		elf_image_fini(&image);
		elf_writer_fini(&writer);
	}
}

static void debug_file_without_symbol_table_is_passed_over(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	elf_writer_note(&writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, build_id, 20);
	elf_writer_save(&writer, temp_dir_path(&f.dir, "bin/app.debug"));
	elf_writer_fini(&writer);
	save_debug(temp_dir_path(&f.dir, "bin/.debug/app.debug"), build_id, "f");
	assert_found_at(&f, "bin/.debug/app.debug");
	end(&f);
}

static void links_upwards_and_absolute_ones_are_not_followed(void **state)
{
	(void)state;
	static const char *const links[] = {"../app.debug", "/etc/passwd", ""};
	for (size_t i = 0; i < 3; i++) {
		struct fixture f;
		begin_linked(&f, NULL, links[i], crc_of_debug(NULL, "f"));
		save_debug(temp_dir_path(&f.dir, "app.debug"), NULL, "f");
		assert_false(debug_file_open(&f.query, &f.found));
		assert_int_equal(f.found.n_places, 0);
		end(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(debug_file_is_found_in_each_place),
		cmocka_unit_test(debug_file_is_looked_for_in_documented_order),
		cmocka_unit_test(debug_file_of_target_root_comes_before_that_of_host),
		cmocka_unit_test(debug_file_of_host_serves_target_that_has_none),
		cmocka_unit_test(links_do_not_lead_out_of_the_target_root),
		cmocka_unit_test(debug_file_with_another_id_is_refused),
		cmocka_unit_test(debug_file_without_build_id_is_taken_by_its_crc),
		cmocka_unit_test(poor_debug_file_keeps_nobody_from_a_better_one),
		cmocka_unit_test(offered_file_is_taken_when_it_is_better),
		cmocka_unit_test(caches_are_looked_into_by_build_id),
		cmocka_unit_test(alternate_is_read_from_its_link),
		cmocka_unit_test(debug_file_without_symbol_table_is_passed_over),
		cmocka_unit_test(links_upwards_and_absolute_ones_are_not_followed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
