/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/symbol_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "symcache/symbol_file_writer.h"
#include "symcache/symbol_model.h"
#include "tests/support/symbol_file_seal.h"
#include "tests/support/temp_dir.h"

enum { MAX_FILE_BYTES = 64 << 20 };

/* ---- models ---- */

static uint32_t text(struct symbol_model *model, const char *s)
{
	return symbol_model_add_string(model, s, strlen(s));
}

static uint32_t file_named(struct symbol_model *model, const char *folder, const char *name)
{
	return symbol_model_add_file(
		model, (struct symbol_file_name){text(model, folder), text(model, name)});
}

static uint32_t function(struct symbol_model *model, const char *linkage_name, const char *name,
			 uint32_t file, uint32_t start_line)
{
	return symbol_model_add_function(model, (struct symbol_function){text(model, linkage_name),
									 text(model, name), file,
									 start_line});
}

static uint32_t root(struct symbol_model *model, uint32_t of)
{
	return symbol_model_add_chain(model, (struct symbol_chain){of, SYMBOL_CHAIN_NONE, 0, 0, 0});
}

static void range(struct symbol_model *model, uint64_t start, uint64_t end, uint32_t chain,
		  enum symbol_rank rank)
{
	symbol_model_add_range(model,
			       (struct symbol_range){start, end, chain, (uint8_t)rank, false});
}

static void line(struct symbol_model *model, uint64_t address, uint32_t file, uint32_t number,
		 uint32_t column)
{
	symbol_model_add_line(model, (struct symbol_line){.address = address,
							  .file = file,
							  .line = number & 0x7fffffff,
							  .column = column});
}

static void line_end(struct symbol_model *model, uint64_t address)
{
	symbol_model_add_line(model, (struct symbol_line){.address = address, .is_end = 1});
}

static struct buf write_model(const struct symbol_model *model)
{
	struct symbol_file_options options = {.build_id = build_id_make("\1\2\3\4", 4)};
	struct buf bytes;
	buf_init(&bytes, MAX_FILE_BYTES);
	assert_null(symbol_file_write(model, &options, &bytes));
	return bytes;
}

/* A copy of exactly the file's size, so that a sanitizer sees a read behind it. */
struct fixture {
	struct symbol_model model;
	uint8_t *bytes;
	size_t size;
	struct symbol_file *file;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){0};
	symbol_model_init(&f->model);
}

static void finish(struct fixture *f, enum symcache_demangle demangle)
{
	symbol_model_finish(&f->model);
	struct buf bytes = write_model(&f->model);
	f->bytes = mem_copy(bytes.data, bytes.size);
	f->size = bytes.size;
	buf_fini(&bytes);
	struct error *err = symbol_file_open_bytes(f->bytes, f->size, demangle, &f->file);
	if (err)
		fail_msg("%s", error_text(err));
	err = symbol_file_verify(f->file);
	if (err)
		fail_msg("%s", error_text(err));
}

static void end(struct fixture *f)
{
	symbol_file_close(f->file);
	mem_free(f->bytes);
	symbol_model_fini(&f->model);
}

/* "name file:line:column(start line) < …" innermost first, "-" for a gap. */
static const char *show(struct symbol_file *file, uint64_t svma)
{
	static char out[4096];
	struct symbol_result result;
	if (!symbol_file_lookup(file, svma, &result)) {
		assert_int_equal(result.reason, SYMBOL_GAP);
		assert_int_equal(result.n_frames, 0);
		return "-";
	}
	size_t n = 0;
	for (uint32_t i = 0; i < result.n_frames; i++) {
		const struct symbol_frame *frame = &result.frames[i];
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%s %s:%u:%u(%u)", i ? " < " : "",
				      frame->name, frame->file ? frame->file : "?", frame->line,
				      frame->column, frame->start_line);
		assert_true(n < sizeof(out));
	}
	return out;
}

static void symbol_file_names_function_and_line(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	uint32_t a = file_named(&f.model, "/src/lib", "a.c");
	uint32_t chain = root(&f.model, function(&f.model, "", "alpha", a, 10));
	range(&f.model, 0x1000, 0x1020, chain, SYMBOL_RANK_DWARF);
	line(&f.model, 0x1000, a, 10, 1);
	line(&f.model, 0x1008, a, 12, 3);
	line_end(&f.model, 0x1018);
	finish(&f, SYMCACHE_DEMANGLE_NORMAL);
	assert_string_equal(show(f.file, 0xfff), "-");
	assert_string_equal(show(f.file, 0x1000), "alpha /src/lib/a.c:10:1(10)");
	assert_string_equal(show(f.file, 0x1007), "alpha /src/lib/a.c:10:1(10)");
	assert_string_equal(show(f.file, 0x1008), "alpha /src/lib/a.c:12:3(10)");
	assert_string_equal(show(f.file, 0x1018), "alpha /src/lib/a.c:0:0(10)");
	assert_string_equal(show(f.file, 0x1020), "-");
	assert_string_equal(show(f.file, UINT64_MAX), "-");
	end(&f);
}

static void symbol_file_gives_inlined_calls_innermost_first(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	uint32_t a = file_named(&f.model, "", "a.c"), h = file_named(&f.model, "inc", "h.h");
	uint32_t outer = root(&f.model, function(&f.model, "outer", "outer", a, 1));
	uint32_t other = root(&f.model, function(&f.model, "other", "other", a, 50));
	uint32_t inner = function(&f.model, "", "inner", h, 7);
	uint32_t leaf = function(&f.model, "", "leaf", h, 3);
	uint32_t one =
		symbol_model_add_chain(&f.model, (struct symbol_chain){inner, outer, a, 4, 2});
	uint32_t two = symbol_model_add_chain(&f.model, (struct symbol_chain){leaf, one, h, 8, 9});
	uint32_t three =
		symbol_model_add_chain(&f.model, (struct symbol_chain){inner, other, a, 60, 1});
	range(&f.model, 0x1000, 0x1100, outer, SYMBOL_RANK_DWARF);
	range(&f.model, 0x1010, 0x1030, one, SYMBOL_RANK_DWARF);
	range(&f.model, 0x1014, 0x1018, two, SYMBOL_RANK_DWARF);
	range(&f.model, 0x1200, 0x1210, three, SYMBOL_RANK_DWARF);
	line(&f.model, 0x1000, a, 2, 0);
	line(&f.model, 0x1010, h, 7, 0);
	line(&f.model, 0x1014, h, 3, 5);
	line(&f.model, 0x1018, h, 9, 0);
	line(&f.model, 0x1030, a, 5, 0);
	line_end(&f.model, 0x1100);
	finish(&f, SYMCACHE_DEMANGLE_NORMAL);
	assert_string_equal(show(f.file, 0x1000), "outer a.c:2:0(1)");
	assert_string_equal(show(f.file, 0x1013), "inner inc/h.h:7:0(7) < outer a.c:4:2(1)");
	assert_string_equal(show(f.file, 0x1015),
			    "leaf inc/h.h:3:5(3) < inner inc/h.h:8:9(7) < outer a.c:4:2(1)");
	assert_string_equal(show(f.file, 0x1018), "inner inc/h.h:9:0(7) < outer a.c:4:2(1)");
	assert_string_equal(show(f.file, 0x1030), "outer a.c:5:0(1)");
	assert_string_equal(show(f.file, 0x1200), "inner inc/h.h:0:0(7) < other a.c:60:1(50)");
	struct symbol_file_info info = symbol_file_get_info(f.file);
	assert_int_equal(info.n_functions, 4);
	assert_int_equal(info.n_edges, 3);
	assert_true(info.has_lines && info.has_columns && info.has_inlines);
	assert_int_equal(info.quality, SYMBOL_QUALITY_DWARF);
	assert_int_equal(info.build_id.size, 4);
	end(&f);
}

static void symbol_file_shows_names_as_asked(void **state)
{
	(void)state;
	static const struct {
		const char *linkage, *normal, *full;
	} names[] = {
		{"main", "main", "main"},
		{"_ZN3Foo3barEi", "Foo::bar", "Foo::bar(int)"},
		{"_ZNK3FooD2Ev", "Foo::~Foo", "Foo::~Foo() const"},
		{"_Z3maxIiET_S0_S0_", "max<int>", "int max<int>(int, int)"},
		{"_ZN12_GLOBAL__N_13runEv", "(anonymous namespace)::run",
		 "(anonymous namespace)::run()"},
		{"_ZN3std4main17h0123456789abcdefE", "std::main", "std::main::h0123456789abcdef"},
		{"_ZSt4moveIiEvT_", "std::move<int>", "void std::move<int>(int)"},
	};
	const size_t n = sizeof(names) / sizeof(names[0]);
	static const enum symcache_demangle modes[] = {
		SYMCACHE_DEMANGLE_NORMAL, SYMCACHE_DEMANGLE_FULL, SYMCACHE_DEMANGLE_NONE};
	for (size_t mode = 0; mode < 3; mode++) {
		struct fixture f;
		begin(&f);
		for (size_t i = 0; i < n; i++)
			range(&f.model, 0x1000 + i * 16, 0x1010 + i * 16,
			      root(&f.model, function(&f.model, names[i].linkage, "plain", 0, 0)),
			      SYMBOL_RANK_SYMTAB);
		finish(&f, modes[mode]);
		for (size_t i = 0; i < n; i++) {
			struct symbol_result result;
			assert_true(symbol_file_lookup(f.file, 0x1008 + i * 16, &result));
			const char *want = mode == 0   ? names[i].normal
					   : mode == 1 ? names[i].full
						       : names[i].linkage;
			assert_string_equal(result.frames[0].name, want);
			assert_string_equal(result.frames[0].linkage_name, names[i].linkage);
		}
		end(&f);
	}
}

static void symbol_file_keeps_rank_and_folding(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	uint32_t chain = root(&f.model, function(&f.model, "alias", "", 0, 0));
	symbol_model_add_range(&f.model,
			       (struct symbol_range){0x10, 0x20, chain, SYMBOL_RANK_DYNSYM, true});
	range(&f.model, 0x40, 0x50, root(&f.model, function(&f.model, "f@plt", "", 0, 0)),
	      SYMBOL_RANK_PLT);
	finish(&f, SYMCACHE_DEMANGLE_NORMAL);
	struct symbol_result result;
	assert_true(symbol_file_lookup(f.file, 0x1f, &result));
	assert_true(result.is_folded);
	assert_true(symbol_file_lookup(f.file, 0x40, &result));
	assert_false(result.is_folded);
	assert_string_equal(result.frames[0].name, "f@plt");
	assert_int_equal(symbol_file_get_info(f.file).quality, SYMBOL_QUALITY_DYNSYM);
	assert_false(symbol_file_get_info(f.file).has_lines);
	end(&f);
}

static void symbol_file_spans_the_whole_address_space(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	uint32_t a = root(&f.model, function(&f.model, "low", "", 0, 0));
	uint32_t b = root(&f.model, function(&f.model, "high", "", 0, 0));
	range(&f.model, 0, 1, a, SYMBOL_RANK_SYMTAB);
	range(&f.model, 0x7fffffffffff, 0x800000000003, a, SYMBOL_RANK_SYMTAB);
	range(&f.model, UINT64_MAX - 9, UINT64_MAX, b, SYMBOL_RANK_SYMTAB);
	finish(&f, SYMCACHE_DEMANGLE_NORMAL);
	assert_string_equal(show(f.file, 0), "low ?:0:0(0)");
	assert_string_equal(show(f.file, 1), "-");
	assert_string_equal(show(f.file, 0x7ffffffffffe), "-");
	assert_string_equal(show(f.file, 0x800000000002), "low ?:0:0(0)");
	assert_string_equal(show(f.file, 0x800000000003), "-");
	assert_string_equal(show(f.file, UINT64_MAX - 9), "high ?:0:0(0)");
	assert_string_equal(show(f.file, UINT64_MAX - 1), "high ?:0:0(0)");
	assert_string_equal(show(f.file, UINT64_MAX), "-");
	end(&f);
}

static void symbol_file_cuts_what_is_too_deep_or_too_long(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	uint32_t chain = root(&f.model, function(&f.model, "outer", "", 0, 0));
	uint32_t again = function(&f.model, "", "again", 0, 0);
	for (uint32_t i = 1; i <= 200; i++)
		chain = symbol_model_add_chain(&f.model,
					       (struct symbol_chain){again, chain, 0, i, 70000});
	range(&f.model, 0x1000, 0x1010, chain, SYMBOL_RANK_DWARF);
	char *name = mem_alloc(200000);
	memset(name, 'n', 200000);
	uint32_t long_name = symbol_model_add_string(&f.model, name, 200000);
	uint32_t long_function = symbol_model_add_function(
		&f.model, (struct symbol_function){.linkage_name = long_name});
	range(&f.model, 0x2000, UINT64_MAX, root(&f.model, long_function), SYMBOL_RANK_SYMTAB);
	finish(&f, SYMCACHE_DEMANGLE_NORMAL);
	struct symbol_result result;
	assert_true(symbol_file_lookup(f.file, 0x1000, &result));
	assert_int_equal(result.n_frames, SYMBOL_FRAMES_MAX);
	assert_string_equal(result.frames[0].name, "again");
	assert_int_equal(result.frames[0].line, 64);
	assert_int_equal(result.frames[0].column, 0);
	assert_int_equal(result.frames[62].line, 2);
	assert_string_equal(result.frames[63].name, "outer");
	assert_int_equal(result.frames[63].line, 1);
	assert_true(symbol_file_lookup(f.file, 0x2000, &result));
	assert_int_equal(strlen(result.frames[0].name), 1 << 16);
	assert_string_equal(show(f.file, 0x2000 + (UINT64_C(1) << 30)), "-");
	mem_free(name);
	end(&f);
}

static void symbol_file_joins_paths_as_they_were(void **state)
{
	(void)state;
	static const struct {
		const char *folder, *name, *want;
	} paths[] = {
		{"/usr/src", "a.c", "/usr/src/a.c"},
		{"", "b.c", "b.c"},
		{"/", "c.c", "/c.c"},
		{"/usr/src/", "d.c", "/usr/src/d.c"},
		{"x//y", "../e.c", "x//y/../e.c"},
		{"/ignored", "/abs/f.c", "/abs/f.c"},
		{"./", "g.c", "./g.c"},
	};
	struct fixture f;
	begin(&f);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char name[16];
		snprintf(name, sizeof(name), "f%zu", i);
		uint32_t file = file_named(&f.model, paths[i].folder, paths[i].name);
		range(&f.model, i * 16, i * 16 + 16,
		      root(&f.model, function(&f.model, name, "", file, 1)), SYMBOL_RANK_DWARF);
	}
	finish(&f, SYMCACHE_DEMANGLE_NORMAL);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct symbol_result result;
		assert_true(symbol_file_lookup(f.file, i * 16, &result));
		assert_string_equal(result.frames[0].file, paths[i].want);
	}
	end(&f);
}

static void symbol_file_without_symbols_answers_nothing(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	finish(&f, SYMCACHE_DEMANGLE_NORMAL);
	assert_string_equal(show(f.file, 0), "-");
	assert_string_equal(show(f.file, UINT64_MAX), "-");
	assert_int_equal(symbol_file_get_info(f.file).quality, SYMBOL_QUALITY_NONE);
	size_t n;
	assert_null(symbol_file_unwind(f.file, &n));
	end(&f);
}

static void symbol_file_carries_an_unwind_section(void **state)
{
	(void)state;
	struct symbol_model model;
	symbol_model_init(&model);
	symbol_model_finish(&model);
	struct symbol_file_options options = {.unwind = "unwind", .unwind_bytes = 6};
	struct buf bytes;
	buf_init(&bytes, MAX_FILE_BYTES);
	assert_null(symbol_file_write(&model, &options, &bytes));
	struct symbol_file *file;
	assert_null(
		symbol_file_open_bytes(bytes.data, bytes.size, SYMCACHE_DEMANGLE_NORMAL, &file));
	size_t n;
	assert_memory_equal(symbol_file_unwind(file, &n), "unwind", 6);
	assert_int_equal(n, 6);
	symbol_file_close(file);
	buf_fini(&bytes);
	symbol_model_fini(&model);
}

/* ---- random models against the model itself ---- */

static uint64_t seed;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % n);
}

struct shape {
	uint32_t n_functions, n_files, max_depth, max_step, n_addresses;
	unsigned shift;
};

static uint32_t random_chain(struct symbol_model *model, const struct shape *shape,
			     const uint32_t *functions, const uint32_t *files)
{
	uint32_t chain = root(model, functions[random_below(shape->n_functions)]);
	for (uint32_t depth = random_below(shape->max_depth + 1); depth > 0; depth--)
		chain = symbol_model_add_chain(
			model, (struct symbol_chain){functions[random_below(shape->n_functions)],
						     chain, files[random_below(shape->n_files)],
						     1 + random_below(500), random_below(80)});
	return chain;
}

static void make_random(struct symbol_model *model, const struct shape *shape)
{
	uint32_t functions[512], files[64], chains[64] = {0};
	for (uint32_t i = 0; i < shape->n_files; i++) {
		char folder[32], name[32];
		snprintf(folder, sizeof(folder), "/src/part%u", i % 5);
		snprintf(name, sizeof(name), "file%u.c", i);
		files[i] = file_named(model, folder, name);
	}
	for (uint32_t i = 0; i < shape->n_functions; i++) {
		char name[64];
		snprintf(name, sizeof(name), i % 3 ? "function_%u" : "_ZN5outer8inner_%02uEv",
			 i % 3 ? i : i % 100);
		functions[i] = function(model, i % 7 ? name : "", name,
					files[random_below(shape->n_files)], random_below(1000));
	}
	uint64_t at = 0x1000;
	for (uint32_t i = 0; i < shape->n_addresses; i++) {
		if (i % 32 < 2 || !random_below(8))
			chains[i % 64] = random_chain(model, shape, functions, files);
		uint32_t chain = chains[random_below(i < 64 ? i + 1 : 64)];
		uint64_t size = (1 + (uint64_t)random_below(shape->max_step)) << shape->shift;
		if (!chain && i)
			chain = chains[0];
		range(model, at, at + size, chain, (enum symbol_rank)random_below(4));
		if (random_below(10))
			line(model, at, files[random_below(shape->n_files)], random_below(400),
			     random_below(100));
		if (size >> shape->shift > 1 && random_below(2))
			line(model, at + (UINT64_C(1) << shape->shift),
			     files[random_below(shape->n_files)], 1 + random_below(400), 0);
		at += size;
		if (!random_below(6)) {
			line_end(model, at);
			at += (uint64_t)random_below(5) << shape->shift;
		}
		if (!random_below(500))
			at += UINT64_C(0x12345678) << shape->shift;
	}
	line_end(model, at);
}

static const struct symbol_range *find_range(const struct symbol_model *model, uint64_t svma)
{
	for (size_t i = 0; i < model->ranges.n; i++)
		if (model->ranges.items[i].start <= svma && svma < model->ranges.items[i].end)
			return &model->ranges.items[i];
	return NULL;
}

static const struct symbol_line *find_row(const struct symbol_model *model, uint64_t svma)
{
	const struct symbol_line *found = NULL;
	for (size_t i = 0; i < model->lines.n && model->lines.items[i].address <= svma; i++)
		found = &model->lines.items[i];
	return found && !found->is_end && found->line ? found : NULL;
}

static void check_frame(const struct symbol_model *model, const struct symbol_frame *frame,
			uint32_t number, uint32_t file, uint32_t line_number, uint32_t column)
{
	const struct symbol_function *f = &model->functions.items[number];
	const char *linkage =
		intern_text(&model->strings, f->linkage_name ? f->linkage_name : f->name);
	assert_string_equal(frame->linkage_name, linkage);
	assert_int_equal(frame->line, line_number);
	assert_int_equal(frame->column, column);
	if (!line_number)
		return;
	char path[128];
	snprintf(path, sizeof(path), "%s/%s",
		 intern_text(&model->strings, model->files.items[file].folder),
		 intern_text(&model->strings, model->files.items[file].name));
	assert_string_equal(frame->file, path);
	assert_int_equal(frame->start_line, file == f->file ? f->start_line : 0);
}

static void check_address(const struct symbol_model *model, struct symbol_file *file, uint64_t svma)
{
	struct symbol_result result;
	const struct symbol_range *at = find_range(model, svma);
	assert_int_equal(symbol_file_lookup(file, svma, &result), at != NULL);
	if (!at)
		return;
	const struct symbol_line *row = find_row(model, svma);
	struct symbol_line place = row ? *row : (struct symbol_line){0};
	uint32_t chain = at->chain, i = 0;
	for (; chain != SYMBOL_CHAIN_NONE; i++) {
		const struct symbol_chain *step = &model->chains.items[chain];
		assert_true(i < result.n_frames);
		check_frame(model, &result.frames[i], step->function, place.file, place.line,
			    place.column);
		place = (struct symbol_line){.file = step->call_file,
					     .line = step->call_line & 0x7fffffff,
					     .column = step->call_column};
		chain = step->parent;
	}
	assert_int_equal(result.n_frames, i);
}

static void symbol_file_answers_as_the_model(void **state)
{
	(void)state;
	static const struct shape shapes[] = {
		{1, 1, 0, 1, 3, 0},	     {20, 3, 0, 300, 400, 0}, {60, 8, 4, 12, 1500, 0},
		{300, 40, 12, 6, 1500, 0},   {60, 8, 3, 12, 900, 2},  {10, 2, 40, 9, 500, 0},
		{40, 60, 2, 100000, 900, 4},
	};
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct fixture f;
		begin(&f);
		seed = i + 1;
		make_random(&f.model, &shapes[i]);
		finish(&f, SYMCACHE_DEMANGLE_NONE);
		size_t n = f.model.ranges.n;
		for (int k = 0; k < 3000; k++) {
			const struct symbol_range *near =
				&f.model.ranges.items[random_below((uint32_t)n)];
			check_address(&f.model, f.file,
				      near->start + random_below(2 * shapes[i].max_step + 2));
			check_address(&f.model, f.file, near->start);
			check_address(&f.model, f.file, near->start - 1);
			check_address(&f.model, f.file, near->end);
		}
		end(&f);
	}
}

static void symbol_file_is_the_same_each_time(void **state)
{
	(void)state;
	static const struct shape shape = {60, 8, 4, 12, 1500, 0};
	struct buf first = {0};
	for (int i = 0; i < 3; i++) {
		struct symbol_model model;
		symbol_model_init(&model);
		seed = 77;
		make_random(&model, &shape);
		symbol_model_finish(&model);
		struct buf bytes = write_model(&model);
		symbol_model_fini(&model);
		if (i == 0) {
			first = bytes;
			continue;
		}
		assert_int_equal(bytes.size, first.size);
		assert_memory_equal(bytes.data, first.data, first.size);
		buf_fini(&bytes);
	}
	buf_fini(&first);
}

/* ---- damage ---- */

static void make_small(struct fixture *f)
{
	static const struct shape shape = {12, 4, 3, 9, 60, 0};
	begin(f);
	seed = 5;
	make_random(&f->model, &shape);
	finish(f, SYMCACHE_DEMANGLE_NORMAL);
}

static struct error *try_open(const uint8_t *bytes, size_t size)
{
	struct symbol_file *file;
	struct error *err = symbol_file_open_bytes(bytes, size, SYMCACHE_DEMANGLE_NORMAL, &file);
	if (!err)
		symbol_file_close(file);
	return err;
}

static void symbol_file_refuses_every_flipped_bit(void **state)
{
	(void)state;
	struct fixture f;
	make_small(&f);
	for (size_t i = 0; i < f.size; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			f.bytes[i] ^= (uint8_t)(1u << bit);
			struct error *err = try_open(f.bytes, f.size);
			if (!err)
				fail_msg("bit %u of byte %zu", bit, i);
			error_free(err);
			f.bytes[i] ^= (uint8_t)(1u << bit);
		}
	}
	end(&f);
}

static void symbol_file_refuses_every_cut(void **state)
{
	(void)state;
	struct fixture f;
	make_small(&f);
	for (size_t i = 0; i < f.size; i++) {
		uint8_t *cut = mem_copy(f.bytes, i);
		struct error *err = try_open(cut, i);
		assert_non_null(err);
		assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
		error_free(err);
		mem_free(cut);
	}
	end(&f);
}

static void look_everywhere(struct symbol_file *file)
{
	struct symbol_result result;
	for (uint64_t svma = 0xff0; svma < 0x1300; svma++) {
		if (!symbol_file_lookup(file, svma, &result))
			continue;
		assert_in_range(result.n_frames, 1, SYMBOL_FRAMES_MAX);
		for (uint32_t i = 0; i < result.n_frames; i++)
			assert_non_null(result.frames[i].name);
	}
}

static void symbol_file_survives_damage_behind_right_checksums(void **state)
{
	(void)state;
	struct fixture f;
	make_small(&f);
	uint32_t n_opened = 0, n_verified = 0;
	for (size_t i = 0; i < f.size; i++) {
		static const uint8_t masks[] = {0xff, 0x01, 0x80, 0x10};
		for (size_t k = 0; k < sizeof(masks); k++) {
			uint8_t *bytes = mem_copy(f.bytes, f.size);
			bytes[i] ^= masks[k];
			symbol_file_seal(bytes, f.size);
			struct symbol_file *file;
			struct error *err = symbol_file_open_bytes(bytes, f.size,
								   SYMCACHE_DEMANGLE_NORMAL, &file);
			if (!err) {
				n_opened++;
				look_everywhere(file);
				err = symbol_file_verify(file);
				n_verified += !err;
				symbol_file_close(file);
			}
			error_free(err);
			mem_free(bytes);
		}
	}
	/* Most of these bytes say something else now, and something sensible. */
	assert_true(n_opened > 100 && n_verified < n_opened);
	end(&f);
}

static void symbol_file_passes_over_unknown_sections_and_misses_known_ones(void **state)
{
	(void)state;
	struct symbol_model model;
	symbol_model_init(&model);
	symbol_model_finish(&model);
	struct symbol_file_options options = {.unwind = "unwind", .unwind_bytes = 6};
	struct buf bytes;
	buf_init(&bytes, MAX_FILE_BYTES);
	assert_null(symbol_file_write(&model, &options, &bytes));
	for (unsigned i = 0; i < SYMBOL_SECTION_N - 1; i++) {
		uint8_t *kind = bytes.data + SYMBOL_FILE_HEADER_BYTES + i * SYMBOL_FILE_ENTRY_BYTES;
		uint8_t before = *kind;
		*kind = 200;
		symbol_file_seal(bytes.data, bytes.size);
		struct error *err = try_open(bytes.data, bytes.size);
		assert_int_equal(err == NULL, before == SYMBOL_SECTION_UNWIND);
		error_free(err);
		*kind = before;
	}
	buf_fini(&bytes);
	symbol_model_fini(&model);
}

static void symbol_file_says_what_is_no_symbol_file(void **state)
{
	(void)state;
	struct fixture f;
	make_small(&f);
	struct error *err = try_open((const uint8_t *)"\177ELF\2\1\1\0\0\0\0\0", 12);
	assert_string_equal(error_text(err), "not a symbol file");
	error_free(err);
	f.bytes[SYMBOL_FILE_AT_VERSION]++;
	err = try_open(f.bytes, f.size);
	assert_int_equal(error_get_code(err), ERROR_UNSUPPORTED);
	error_free(err);
	end(&f);
}

static void symbol_file_opens_by_path(void **state)
{
	(void)state;
	struct fixture f;
	struct temp_dir dir;
	temp_dir_init(&dir);
	make_small(&f);
	const char *path = temp_dir_path(&dir, "x.sym");
	struct file_writer writer;
	assert_null(file_writer_open(path, &writer));
	assert_null(file_write(writer.fd, f.bytes, f.size));
	assert_null(file_writer_commit(&writer));
	file_writer_close(&writer);
	struct symbol_file *file;
	assert_null(symbol_file_open(path, SYMCACHE_DEMANGLE_NORMAL, &file));
	assert_null(symbol_file_verify(file));
	look_everywhere(file);
	symbol_file_close(file);
	struct error *err =
		symbol_file_open(temp_dir_path(&dir, "none"), SYMCACHE_DEMANGLE_NORMAL, &file);
	assert_int_equal(error_get_code(err), ERROR_NO_ENTRY);
	error_free(err);
	temp_dir_fini(&dir);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbol_file_names_function_and_line),
		cmocka_unit_test(symbol_file_gives_inlined_calls_innermost_first),
		cmocka_unit_test(symbol_file_shows_names_as_asked),
		cmocka_unit_test(symbol_file_keeps_rank_and_folding),
		cmocka_unit_test(symbol_file_spans_the_whole_address_space),
		cmocka_unit_test(symbol_file_cuts_what_is_too_deep_or_too_long),
		cmocka_unit_test(symbol_file_joins_paths_as_they_were),
		cmocka_unit_test(symbol_file_without_symbols_answers_nothing),
		cmocka_unit_test(symbol_file_carries_an_unwind_section),
		cmocka_unit_test(symbol_file_answers_as_the_model),
		cmocka_unit_test(symbol_file_is_the_same_each_time),
		cmocka_unit_test(symbol_file_refuses_every_flipped_bit),
		cmocka_unit_test(symbol_file_refuses_every_cut),
		cmocka_unit_test(symbol_file_survives_damage_behind_right_checksums),
		cmocka_unit_test(symbol_file_passes_over_unknown_sections_and_misses_known_ones),
		cmocka_unit_test(symbol_file_says_what_is_no_symbol_file),
		cmocka_unit_test(symbol_file_opens_by_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
