/* SPDX-License-Identifier: Apache-2.0 */
/* .gnu_debugdata: as Fedora makes it, and as nobody should. */
#include "symcache/mini_debug.h"

#include <elf.h>
#include <lzma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "symcache/symcache.h"
#include "tests/support/elf_writer.h"
#include "tests/support/temp_dir.h"

#define TEXT 0x1000

enum { PACKED_MAX_BYTES = 1 << 20 };

static const uint8_t id[20] = {1, 2, 3, 4}, other_id[20] = {4, 3, 2, 1};

struct packed {
	uint8_t bytes[PACKED_MAX_BYTES];
	size_t n;
};

static void pack(struct packed *packed, const void *bytes, size_t n)
{
	packed->n = 0;
	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, bytes, n, packed->bytes,
						 &packed->n, sizeof(packed->bytes)),
			 LZMA_OK);
}

/* The file inside: one static function at TEXT. */
static void pack_symbols(struct packed *packed, uint16_t machine, bool is_64,
			 const uint8_t *build_id)
{
	struct elf_writer writer;
	elf_writer_init(&writer, is_64, false, machine);
	uint16_t text = (uint16_t)elf_writer_text(&writer, TEXT, 0x100);
	elf_writer_symbol(&writer, false, "hidden", TEXT, 0x20, STB_LOCAL, STT_FUNC, text);
	if (build_id)
		elf_writer_note(&writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, build_id,
				sizeof(id));
	size_t n;
	const uint8_t *bytes = elf_writer_finish(&writer, &n);
	pack(packed, bytes, n);
	elf_writer_fini(&writer);
}

/* The stripped program around it: one dynamic function behind the static one. */
static void write_program(struct elf_writer *writer, const struct packed *packed)
{
	elf_writer_init(writer, true, false, EM_X86_64);
	uint16_t text = (uint16_t)elf_writer_text(writer, TEXT, 0x100);
	elf_writer_symbol(writer, true, "shown", TEXT + 0x40, 0x20, STB_GLOBAL, STT_FUNC, text);
	elf_writer_note(writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, id, sizeof(id));
	elf_writer_section(writer, ".gnu_debugdata", SHT_PROGBITS, 0, 0, packed->bytes, packed->n);
	elf_writer_segment(writer, PT_LOAD, PF_R | PF_X, 0, 0, 0x10000);
}

static void assert_refused(const struct packed *packed, enum error_code code, const char *text)
{
	struct elf_writer writer;
	write_program(&writer, packed);
	size_t n;
	const uint8_t *bytes = elf_writer_finish(&writer, &n);
	struct elf_image image;
	assert_null(elf_image_init(&image, bytes, n));
	struct mini_debug mini;
	struct error *err = mini_debug_open(&image, &mini);
	assert_non_null(err);
	if (!strstr(error_text(err), text))
		fail_msg("\"%s\" instead of \"%s\"", error_text(err), text);
	assert_int_equal(error_get_code(err), code);
	error_free(err);
	elf_image_fini(&image);
	elf_writer_fini(&writer);
}

static struct packed packed;

static void assert_name(struct symcache *cache, struct module *module, uint64_t svma,
			const char *name)
{
	struct symbol_result result;
	symcache_resolve(cache, module, svma, &result);
	if (!name) {
		assert_int_equal(result.n_frames, 0);
		return;
	}
	assert_int_equal(result.reason, SYMBOL_FOUND);
	assert_string_equal(result.frames[0].name, name);
}

/* Through the door, so through the builder's jail. */
static void assert_names(const char *static_name)
{
	struct temp_dir dir;
	temp_dir_init(&dir);
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s", temp_dir_path(&dir, "program"));
	struct elf_writer writer;
	write_program(&writer, &packed);
	elf_writer_save(&writer, path);
	elf_writer_fini(&writer);
	static const char *const no_roots[] = {NULL};
	struct symcache *cache = symcache_new(&(struct symcache_config){
		.trust_paths = true, .no_cache = true, .debug_roots = no_roots});
	struct module *module = symcache_module(cache, &(struct module_query){.path = path});
	assert_name(cache, module, TEXT + 0x10, static_name);
	assert_name(cache, module, TEXT + 0x20, NULL);
	assert_name(cache, module, TEXT + 0x50, "shown");
	symcache_free(cache);
	temp_dir_fini(&dir);
}

static void static_functions_are_named_from_the_packed_table(void **state)
{
	(void)state;
	pack_symbols(&packed, EM_X86_64, true, id);
	assert_names("hidden");
	/* The link that objcopy makes need not have the note. */
	pack_symbols(&packed, EM_X86_64, true, NULL);
	assert_names("hidden");
}

static void damage_leaves_the_dynamic_symbols(void **state)
{
	(void)state;
	pack_symbols(&packed, EM_X86_64, true, id);
	packed.n -= 20;
	assert_names(NULL);
}

static void symbols_of_another_program_are_refused(void **state)
{
	(void)state;
	pack_symbols(&packed, EM_X86_64, true, other_id);
	assert_refused(&packed, ERROR_BAD_DATA, "another build-id");
	pack_symbols(&packed, EM_AARCH64, true, id);
	assert_refused(&packed, ERROR_BAD_DATA, "another machine");
	pack_symbols(&packed, EM_X86_64, false, id);
	assert_refused(&packed, ERROR_BAD_DATA, "another machine");
}

static void cut_damaged_and_foreign_containers_are_refused(void **state)
{
	(void)state;
	pack_symbols(&packed, EM_X86_64, true, id);
	packed.n /= 2;
	assert_refused(&packed, ERROR_BAD_DATA, "cut off");
	packed.n = 0;
	assert_refused(&packed, ERROR_BAD_DATA, "cut off");
	pack_symbols(&packed, EM_X86_64, true, id);
	packed.bytes[packed.n / 2] ^= 0x55;
	assert_refused(&packed, ERROR_BAD_DATA, "damaged");
	memcpy(packed.bytes, "\x1f\x8b\x08\0\0\0\0\0\0\x03", 10); /* gzip */
	assert_refused(&packed, ERROR_BAD_DATA, "not packed by xz");
	pack(&packed, "no ELF file at all", 18);
	assert_refused(&packed, ERROR_BAD_DATA, "ELF");
}

static void bomb_ends_at_the_ratio(void **state)
{
	(void)state;
	size_t n = (size_t)64 << 20;
	uint8_t *zeros = mem_zalloc(n, 1);
	pack(&packed, zeros, n);
	mem_free(zeros);
	assert_true(packed.n < 20000);
	assert_refused(&packed, ERROR_LIMIT, "maximum");
}

static void unpacker_that_wants_much_memory_is_refused(void **state)
{
	(void)state;
	/* Packed with a small one; the header is what the reader goes by. */
	lzma_options_lzma options;
	assert_false(lzma_lzma_preset(&options, 0));
	options.dict_size = 1 << 16;
	lzma_filter filters[] = {{.id = LZMA_FILTER_LZMA2, .options = &options},
				 {.id = LZMA_VLI_UNKNOWN}};
	packed.n = 0;
	assert_int_equal(lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC32, NULL,
						   (const uint8_t *)"x", 1, packed.bytes, &packed.n,
						   sizeof(packed.bytes)),
			 LZMA_OK);
	/* Stream header 12, block header: size, flags, filter id, size of properties, dictionary
	 * (xz file format 3.1 and 5.3.1); its CRC-32 is the last word. */
	uint8_t *block = packed.bytes + 12;
	size_t header_bytes = (block[0] + 1u) * 4;
	uint8_t *dictionary = memchr(block, 0x21, header_bytes);
	assert_non_null(dictionary);
	dictionary[2] = 39; /* 3 GiB */
	uint32_t crc = lzma_crc32(block, header_bytes - 4, 0);
	memcpy(block + header_bytes - 4, &crc, sizeof(crc));
	assert_refused(&packed, ERROR_LIMIT, "too much memory");
}

static void program_made_as_fedora_does_is_named(void **state)
{
	(void)state;
	struct temp_dir dir;
	temp_dir_init(&dir);
	char command[4 * PATH_MAX], path[PATH_MAX];
	snprintf(command, sizeof(command),
		 "cd %s && cat > p.c <<'E'\n"
		 "__attribute__((noinline)) static int secret(int n) { return n * 7 + 1; }\n"
		 "int main(int argc, char **argv) { (void)argv; return secret(argc); }\n"
		 "E\n"
		 "gcc -O1 -g -no-pie -o p p.c && nm -P p | awk '$1 == \"secret\" {print $3}' > at "
		 "&&\n"
		 "nm -D p --format=posix --defined-only | awk '{print $1}' | sort > dynsyms &&\n"
		 "nm p --format=posix --defined-only |\n"
		 "  awk '{ if ($2 == \"T\" || $2 == \"t\" || $2 == \"D\") print $1 }' | sort > "
		 "funcsyms &&\n"
		 "comm -13 dynsyms funcsyms > keep &&\n"
		 "objcopy --only-keep-debug p debug &&\n"
		 "objcopy -S --remove-section .gdb_index --remove-section .comment "
		 "--keep-symbols=keep debug mini &&\n"
		 "strip --strip-all p && xz mini &&\n"
		 "objcopy --add-section .gnu_debugdata=mini.xz p",
		 dir.path);
	if (system("command -v gcc objcopy xz > /dev/null") != 0 || system(command) != 0) {
		temp_dir_fini(&dir);
		skip();
	}
	FILE *file = fopen(temp_dir_path(&dir, "at"), "r");
	assert_non_null(file);
	unsigned long long svma;
	assert_int_equal(fscanf(file, "%llx", &svma), 1);
	fclose(file);
	snprintf(path, sizeof(path), "%s", temp_dir_path(&dir, "p"));
	struct symcache *cache =
		symcache_new(&(struct symcache_config){.trust_paths = true, .no_cache = true});
	struct module *module = symcache_module(cache, &(struct module_query){.path = path});
	assert_name(cache, module, svma, "secret");
	symcache_free(cache);
	temp_dir_fini(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(static_functions_are_named_from_the_packed_table),
		cmocka_unit_test(damage_leaves_the_dynamic_symbols),
		cmocka_unit_test(symbols_of_another_program_are_refused),
		cmocka_unit_test(cut_damaged_and_foreign_containers_are_refused),
		cmocka_unit_test(bomb_ends_at_the_ratio),
		cmocka_unit_test(unpacker_that_wants_much_memory_is_refused),
		cmocka_unit_test(program_made_as_fedora_does_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
