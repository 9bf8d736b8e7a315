/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a build that asks for them may have. */
#include "symcache/side_file.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/elf_writer.h"
#include "tests/support/temp_dir.h"

static const uint8_t id_bytes[20] = {0xab, 0xcd};
#define ID_REST "cd000000000000000000000000000000000000"

struct fixture {
	struct temp_dir dir;
	char binary[PATH_MAX], root[PATH_MAX];
	const char *roots[2];
	struct side_file_places places;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){0};
	temp_dir_init(&f->dir);
	snprintf(f->binary, sizeof(f->binary), "%s", temp_dir_path(&f->dir, "bin/app"));
	snprintf(f->root, sizeof(f->root), "%s/debug", f->dir.path);
	f->roots[0] = f->root;
	f->places = (struct side_file_places){
		.binary_path = f->binary, .roots = f->roots, .owner = geteuid()};
}

static void end(struct fixture *f)
{
	temp_dir_fini(&f->dir);
}

static const char *save(struct fixture *f, const char *name, const char *section)
{
	const char *path = temp_dir_path(&f->dir, name);
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	elf_writer_section(&writer, section, SHT_PROGBITS, 0, 0, "x", 1);
	elf_writer_note(&writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, id_bytes, 20);
	elf_writer_save(&writer, path);
	elf_writer_fini(&writer);
	return path;
}

static bool gives(const struct fixture *f, enum builder_wish_kind kind, const char *folder,
		  const char *name)
{
	const struct builder_wish wish = {.kind = kind,
					  .id = build_id_make(id_bytes, sizeof(id_bytes)),
					  .folder = folder,
					  .name = name};
	bool is_foreign;
	int fd = side_file_open(&f->places, &wish, &is_foreign);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool gives_foreign(const struct fixture *f)
{
	const struct builder_wish wish = {
		.kind = BUILDER_WISH_DWO, .folder = "", .name = "/nonexistent/unit.dwo"};
	bool is_foreign;
	int fd = side_file_open(&f->places, &wish, &is_foreign);
	assert_true(fd >= 0);
	close(fd);
	return is_foreign;
}

static void side_file_is_told_from_one_that_is_anybody_s(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	const char *path = save(&f, "bin/unit.dwo", ".debug_info.dwo");
	assert_false(gives_foreign(&f));
	/* In another root there may be several of that content. */
	f.places.is_target_elsewhere = true;
	assert_true(gives_foreign(&f));
	f.places.is_target_elsewhere = false;
	if (geteuid() == 0) {
		/* Symbols of a stranger's binary are kept by his name. */
		f.places.owner = 12345;
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_false(gives_foreign(&f));
	}
	end(&f);
}

static void split_unit_is_found_by_its_names(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	const char *path = save(&f, "build/a.dwo", ".debug_info.dwo");
	assert_true(gives(&f, BUILDER_WISH_DWO, "", path));
	char folder[PATH_MAX];
	snprintf(folder, sizeof(folder), "%s/build", f.dir.path);
	assert_true(gives(&f, BUILDER_WISH_DWO, folder, "a.dwo"));
	assert_false(gives(&f, BUILDER_WISH_DWO, "build", "a.dwo"));
	save(&f, "bin/b.dwo", ".debug_info.dwo");
	assert_true(gives(&f, BUILDER_WISH_DWO, "/nonexistent", "obj/b.dwo"));
	end(&f);
}

static void files_of_another_kind_are_not_given(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	const char *plain = save(&f, "build/a.o", ".text");
	assert_false(gives(&f, BUILDER_WISH_DWO, "", plain));
	assert_false(gives(&f, BUILDER_WISH_DWO, "", "/etc/passwd"));
	assert_false(gives(&f, BUILDER_WISH_DWO, "", "/dev/zero"));
	assert_false(gives(&f, BUILDER_WISH_DWO, "", f.dir.path));
	const char *fifo = temp_dir_path(&f.dir, "bin/app.dwp");
	assert_int_equal(mkfifo(fifo, 0644), 0);
	assert_false(gives(&f, BUILDER_WISH_PACKAGE, "", ""));
	end(&f);
}

static void package_and_alternate_are_found_in_their_places(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	assert_false(gives(&f, BUILDER_WISH_PACKAGE, "", ""));
	save(&f, "bin/app.dwp", ".debug_cu_index");
	assert_true(gives(&f, BUILDER_WISH_PACKAGE, "", ""));
	assert_false(gives(&f, BUILDER_WISH_ALTERNATE, "", "../dwz/app.debug"));
	save(&f, "dwz/app.debug", ".debug_info");
	assert_true(gives(&f, BUILDER_WISH_ALTERNATE, "", "../dwz/app.debug"));
	save(&f, "debug/.build-id/ab/" ID_REST ".debug", ".debug_info");
	assert_true(gives(&f, BUILDER_WISH_ALTERNATE, "", ""));
	end(&f);
}

static void private_file_of_somebody_else_is_not_given(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	const char *path = save(&f, "build/a.dwo", ".debug_info.dwo");
	f.places.owner = geteuid() + 1;
	assert_int_equal(chmod(path, 0600), 0);
	assert_false(gives(&f, BUILDER_WISH_DWO, "", path));
	assert_int_equal(chmod(path, 0644), 0);
	assert_true(gives(&f, BUILDER_WISH_DWO, "", path));
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(side_file_is_told_from_one_that_is_anybody_s),
		cmocka_unit_test(split_unit_is_found_by_its_names),
		cmocka_unit_test(files_of_another_kind_are_not_given),
		cmocka_unit_test(package_and_alternate_are_found_in_their_places),
		cmocka_unit_test(private_file_of_somebody_else_is_not_given),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
