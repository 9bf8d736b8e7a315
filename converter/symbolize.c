/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/symbolize.h"

#include <string.h>
#include <sys/utsname.h>

#include "base/mem.h"
#include "converter/jit_name.h"
#include "converter/location.h"

struct symbolizer {
	const struct symbolize_input *input;
	struct hash_map mappings;    /* (image or module, segment) → mapping + 1 */
	uint32_t *mapping_images;    /* per mapping: an image that led to it */
	struct symbol_result result; /* large: one for all */
};

#define NO_IMAGE UINT32_MAX

static struct image *get_image(const struct symbolizer *s, uint32_t index)
{
	return image_table_get(s->input->images, index);
}

/* The mapping for a key, made by the caller's template when it is new. */
static uint32_t intern_mapping(struct symbolizer *s, uint64_t key,
			       const struct profile_mapping *template, uint32_t image)
{
	bool is_new;
	uint64_t *value = hash_map_put(&s->mappings, key, &is_new);
	if (is_new) {
		uint32_t mapping = profile_add_mapping(s->input->profile, template);
		*value = mapping;
		s->mapping_images =
			mem_realloc(s->mapping_images, mapping + 1, sizeof(*s->mapping_images));
		s->mapping_images[mapping] = image;
	}
	return (uint32_t)*value;
}

static uint32_t intern_build_id(const struct symbolizer *s, const struct build_id *id)
{
	char hex[BUILD_ID_HEX_BYTES];
	build_id_format(id, hex);
	return profile_string(s->input->profile, hex);
}

/* "/usr/bin/git (deleted)" → "/usr/bin/git" */
static uint32_t intern_path(const struct symbolizer *s, const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(path), d = sizeof(deleted) - 1;
	if (n > d && strcmp(path + n - d, deleted) == 0)
		n -= d;
	return profile_string_n(s->input->profile, path, n);
}

enum { PAGE_BYTES = 4096 };

/*
 * The segment whose pages hold a file offset. Linkers let segments share a page of the file (lld:
 * headers up to 0x6c0, text from 0x6d0), so the exact one is looked for first, then by pages.
 */
static const struct load_segment *find_segment(const struct load_segment *segments, size_t n,
					       uint64_t offset)
{
	const struct load_segment *by_page = NULL;
	for (size_t i = 0; i < n; i++) {
		const struct load_segment *seg = &segments[i];
		if (!seg->is_executable)
			continue;
		uint64_t end = seg->file_offset + seg->file_bytes;
		if (offset >= seg->file_offset && offset < end)
			return seg;
		if (offset >= (seg->file_offset & -(uint64_t)PAGE_BYTES) &&
		    offset < ((end + PAGE_BYTES - 1) & -(uint64_t)PAGE_BYTES))
			by_page = seg;
	}
	return by_page;
}

/* Text of an ELF file that we have: the address in the ELF, and its PT_LOAD as mapping. */
static uint32_t place_in_segment(struct symbolizer *s, uint32_t image_index, struct module *module,
				 const struct load_segment *segment, uint64_t *address)
{
	const struct image *image = get_image(s, image_index);
	uint64_t svma = *address - segment->file_offset + segment->svma;
	*address = svma;
	struct profile_mapping mapping = {
		.memory_start = segment->svma,
		.memory_limit = segment->svma + segment->memory_bytes,
		.file_offset = segment->file_offset,
		.filename = intern_path(s, image->path),
		.build_id = intern_build_id(s, module_get_build_id(module)),
	};
	uint64_t key = hash_mix((uintptr_t)module) ^ segment->svma;
	if (svma < mapping.memory_start || svma >= mapping.memory_limit) {
		/* In the same page as the segment, but outside: the mapping as the kernel made it.
		 */
		uint64_t before = segment->svma % PAGE_BYTES;
		mapping.memory_start -= before;
		mapping.file_offset -= before;
		mapping.memory_limit =
			(mapping.memory_limit + PAGE_BYTES - 1) & -(uint64_t)PAGE_BYTES;
		key ^= 1;
	}
	return intern_mapping(s, key, &mapping, image_index);
}

/* A file that we do not have: file offsets, and the hull of what was mapped of it. */
static uint32_t place_in_file(struct symbolizer *s, uint32_t image_index)
{
	const struct image *image = get_image(s, image_index);
	const struct profile_mapping mapping = {
		.memory_start = image->offset_low,
		.memory_limit = image->offset_high,
		.file_offset = image->offset_low,
		.filename = intern_path(s, image->path),
		.build_id = intern_build_id(s, &image->build_id),
	};
	return intern_mapping(s, hash_mix(image_index + 1), &mapping, image_index);
}

/* Run-time addresses: code that belongs to no file. */
static uint32_t place_with_name(struct symbolizer *s, uint32_t image_index, const char *name)
{
	const struct profile_mapping mapping = {
		.memory_limit = UINT64_MAX,
		.filename = profile_string(s->input->profile, name),
	};
	return intern_mapping(s, hash_mix(mapping.filename) ^ UINT64_MAX >> 1, &mapping,
			      image_index);
}

static uint32_t place_at_runtime(struct symbolizer *s, uint32_t image_index)
{
	const struct image *image = get_image(s, image_index);
	const char *name = image->kind == IMAGE_KSYMBOL ? "[bpf]"
			   : image->path[0]		? image->path
							: "//anon";
	return place_with_name(s, image_index, name);
}

static struct build_id find_kernel_build_id(const struct symbolize_input *input)
{
	if (input->source->is_live)
		return symcache_host_kernel_build_id();
	for (uint32_t i = 0; i < input->source->n_build_ids; i++) {
		const struct perf_build_id_entry *entry = &input->source->build_ids[i];
		if (strncmp(entry->filename, "[kernel.kallsyms]", 17) == 0)
			return entry->id;
	}
	return input->kernel->build_id;
}

static bool is_same_release(const struct perf_source_info *source)
{
	struct utsname here;
	return source->hostname && source->os_release && source->arch && uname(&here) == 0 &&
	       strcmp(source->hostname, here.nodename) == 0 &&
	       strcmp(source->os_release, here.release) == 0 &&
	       strcmp(source->arch, here.machine) == 0;
}

static bool has_kernel_addresses(const struct symbolize_input *input)
{
	const struct profile *profile = input->profile;
	for (uint32_t i = 0; i < profile->locations.n; i++) {
		const struct location location = location_of_profile(&profile->locations.items[i]);
		if (image_table_get(input->images, location.image)->kind == IMAGE_KERNEL)
			return true;
	}
	return false;
}

static void open_kernel(const struct symbolize_input *input)
{
	const struct kernel_space *kernel = input->kernel;
	/* perf writes the relocation symbol's address as page offset; its text may start earlier.
	 */
	const struct kernel_query query = {
		.build_id = find_kernel_build_id(input),
		.os_release = input->source->os_release,
		.is_this_host = input->source->is_live,
		.is_same_release = is_same_release(input->source),
		.text_start =
			kernel->text_page_offset ? kernel->text_page_offset : kernel->text_start,
		.relocation_symbol = kernel->relocation_symbol,
		.has_addresses = has_kernel_addresses(input),
	};
	symcache_kernel(input->cache, &query);
}

/* One mapping for text and modules: the recorded range, widened to all that was sampled. */
static uint32_t place_in_kernel(struct symbolizer *s, uint64_t address)
{
	const struct kernel_space *kernel = s->input->kernel;
	struct profile_mapping template = {
		.memory_start = kernel->has_text ? kernel->text_start : address,
		.memory_limit = kernel->has_text ? kernel->text_end : address + 1,
		.file_offset = kernel->has_text ? kernel->text_page_offset : 0,
		.filename = profile_string(s->input->profile, "[kernel.kallsyms]"),
	};
	uint64_t key = hash_mix(IMAGE_INDEX_KERNEL) ^ 3;
	if (!hash_map_get(&s->mappings, key)) {
		const struct build_id id = find_kernel_build_id(s->input);
		template.build_id = intern_build_id(s, &id);
	}
	uint32_t index = intern_mapping(s, key, &template, IMAGE_INDEX_KERNEL);
	struct profile_mapping *mapping = &s->input->profile->mappings.items[index];
	if (address < mapping->memory_start)
		mapping->memory_start = address;
	if (address >= mapping->memory_limit)
		mapping->memory_limit = address + 1;
	return index;
}

static void name_location(struct symbolizer *s, uint32_t location, const char *name)
{
	struct profile *profile = s->input->profile;
	const struct profile_function function = {
		.name = profile_string(profile, name),
		.system_name = profile_string(profile, name),
	};
	const struct profile_line line = {.function = profile_function(profile, &function)};
	profile_set_lines(profile, location, &line, 1);
}

static void set_result(struct symbolizer *s, uint32_t location)
{
	struct profile *profile = s->input->profile;
	const struct symbol_result *result = &s->result;
	struct profile_line lines[SYMBOL_FRAMES_MAX];
	for (uint32_t i = 0; i < result->n_frames; i++) {
		const struct symbol_frame *frame = &result->frames[i];
		const struct profile_function function = {
			.name = profile_string(profile, frame->name),
			.system_name = profile_string(profile, frame->linkage_name),
			.filename = profile_string(profile, frame->file ? frame->file : ""),
			.start_line = frame->start_line,
		};
		lines[i] = (struct profile_line){
			.function = profile_function(profile, &function),
			.line = frame->line,
			.column = frame->column,
		};
	}
	profile_set_lines(profile, location, lines, result->n_frames);
	profile->locations.items[location].is_folded = result->is_folded;
}

static enum symbol_reason symbolize_kernel(struct symbolizer *s, uint32_t index, uint64_t address)
{
	const char *module_name;
	symcache_resolve_kernel(s->input->cache, address, &s->result, &module_name);
	/* A BPF program has one place, whether a record told of it or kallsyms did. */
	bool is_bpf = strcmp(module_name, "bpf") == 0;
	s->input->profile->locations.items[index].mapping =
		is_bpf ? place_with_name(s, IMAGE_INDEX_KERNEL, "[bpf]")
		       : place_in_kernel(s, address);
	if (s->result.reason == SYMBOL_FOUND)
		set_result(s, index);
	else if (s->result.reason == SYMBOL_HIDDEN)
		name_location(s, index, "[kernel]"); /* one honest group, see W103 */
	return s->result.reason;
}

static enum symbol_reason symbolize_file(struct symbolizer *s, uint32_t index,
					 const struct location *location)
{
	const struct symbolize_input *input = s->input;
	uint32_t image_index = location->image;
	uint64_t address = location->address;
	struct image *image = get_image(s, image_index);
	image_open(image, input->source, input->cache);
	size_t n_segments;
	const struct load_segment *segments = module_segments(image->module, &n_segments);
	const struct load_segment *segment = find_segment(segments, n_segments, address);
	s->result.reason = SYMBOL_NO_FILE;
	if (segment) {
		uint32_t mapping =
			place_in_segment(s, image_index, image->module, segment, &address);
		input->profile->locations.items[index].mapping = mapping;
		if (location->is_return && module_is_signal_return(image->module, address + 1))
			address++; /* nothing called it: a handler returns to its first byte */
		symcache_resolve(input->cache, image->module, address, &s->result);
	} else {
		input->profile->locations.items[index].mapping = place_in_file(s, image_index);
	}
	input->profile->locations.items[index].address = address;
	if (s->result.reason == SYMBOL_FOUND)
		set_result(s, index);
	else if (image->kind == IMAGE_VDSO)
		name_location(s, index, "[vdso]");
	return s->result.reason;
}

static void set_jit_frame(struct symbolizer *s, uint32_t index, const struct jit_frame *frame)
{
	struct profile *profile = s->input->profile;
	const struct jit_name name = jit_name_split(frame->raw);
	struct profile_function function = {
		.name = profile_string_n(profile, frame->raw, name.name_bytes),
		.system_name = profile_string(profile, frame->raw),
		.filename = profile_string_n(profile, name.file ? name.file : "", name.file_bytes),
		.start_line = name.start_line,
	};
	if (frame->file)
		function.filename = profile_string(profile, frame->file);
	const struct profile_line line = {.function = profile_function(profile, &function),
					  .line = frame->line};
	profile_set_lines(profile, index, &line, 1);
}

static enum symbol_reason symbolize_location(struct symbolizer *s, uint32_t index,
					     const struct location *at);

static enum symbol_reason symbolize_jit(struct symbolizer *s, uint32_t index,
					const struct location *at)
{
	const struct jit_spot *spot = jit_table_spot(s->input->jit, (uint32_t)at->address);
	struct profile_location *location = &s->input->profile->locations.items[index];
	const struct location plain = {
		.image = spot->image, .address = spot->address, .is_return = at->is_return};
	struct jit_frame frame;
	location->address = spot->address;
	if (!jit_table_name(s->input->jit, (uint32_t)at->address, &frame))
		return symbolize_location(s, index, &plain);
	location->address = spot->vaddr;
	location->mapping = place_at_runtime(s, IMAGE_INDEX_JIT);
	set_jit_frame(s, index, &frame);
	return SYMBOL_FOUND;
}

static enum symbol_reason symbolize_location(struct symbolizer *s, uint32_t index,
					     const struct location *at)
{
	const struct location location = *at;
	const struct image *image = get_image(s, location.image);
	switch ((enum image_kind)image->kind) {
	case IMAGE_JIT:
		return symbolize_jit(s, index, &location);
	case IMAGE_KERNEL:
	case IMAGE_MODULE:
		return symbolize_kernel(s, index, location.address);
	case IMAGE_FILE:
	case IMAGE_VDSO:
		return symbolize_file(s, index, &location);
	case IMAGE_KSYMBOL:
		s->input->profile->locations.items[index].mapping =
			place_at_runtime(s, location.image);
		name_location(s, index, image->path);
		return SYMBOL_FOUND;
	case IMAGE_ANON:
		s->input->profile->locations.items[index].mapping =
			place_at_runtime(s, location.image);
		name_location(s, index, "[anon]");
		return SYMBOL_NO_FILE;
	case IMAGE_SPECIAL:
	case IMAGE_GUEST_KERNEL:
	case IMAGE_GUEST_USER:
	case IMAGE_HYPERVISOR:
	case IMAGE_UNMAPPED:
	case IMAGE_BROKEN:
		break;
	}
	s->input->profile->locations.items[index].mapping = place_at_runtime(s, location.image);
	name_location(s, index, image->path);
	return SYMBOL_NO_FILE;
}

static bool is_program(const struct image *image)
{
	return image->kind == IMAGE_FILE && !strstr(image->path, ".so");
}

static bool is_main(const struct symbolizer *s, const struct image *image)
{
	const char *main_path = s->input->main_path;
	return image->kind == IMAGE_FILE && main_path && strcmp(image->path, main_path) == 0;
}

/* Samples at the leaf, by mapping. */
static uint64_t *weigh_mappings(const struct profile *profile)
{
	uint64_t *weights = mem_zalloc(profile->mappings.n + 1, sizeof(*weights));
	for (uint32_t i = 0; i < profile->samples.n; i++) {
		uint32_t stack = profile->samples.items[i].stack;
		if (!stack)
			continue;
		uint32_t location = profile->stacks.items[stack].location;
		weights[profile->locations.items[location].mapping] +=
			(uint64_t)profile_values(profile, i)[0];
	}
	return weights;
}

/* The given program, else the one with the most samples at the leaf, else a library. */
static uint32_t find_main_mapping(const struct symbolizer *s)
{
	const struct profile *profile = s->input->profile;
	uint64_t *weights = weigh_mappings(profile);
	uint32_t best = PROFILE_NONE;
	bool is_best_program = false;
	for (uint32_t m = 0; m < profile->mappings.n; m++) {
		const struct image *image = get_image(s, s->mapping_images[m]);
		if (image->kind != IMAGE_FILE)
			continue;
		if (is_main(s, image)) {
			best = m;
			break;
		}
		if (best == PROFILE_NONE || (is_program(image) && !is_best_program) ||
		    (is_program(image) == is_best_program && weights[m] > weights[best])) {
			best = m;
			is_best_program = is_program(image);
		}
	}
	mem_free(weights);
	return best;
}

/* Of what was mapped: the given program, else the only one there is; NO_IMAGE otherwise. */
static uint32_t find_unsampled_program(const struct symbolizer *s)
{
	uint32_t found = NO_IMAGE;
	size_t n_programs = 0;
	for (uint32_t i = 0; i < s->input->images->n; i++) {
		const struct image *image = get_image(s, i);
		if (is_main(s, image))
			return i;
		if (!is_program(image) || image->canonical != i)
			continue;
		found = i;
		n_programs++;
	}
	return n_programs == 1 ? found : NO_IMAGE;
}

/* As if its first executable segment had a sample. */
static uint32_t place_program(struct symbolizer *s, uint32_t image_index)
{
	struct image *image = get_image(s, image_index);
	size_t n = 0;
	image_open(image, s->input->source, s->input->cache);
	const struct load_segment *segments =
		image->module ? module_segments(image->module, &n) : NULL;
	for (size_t i = 0; i < n; i++) {
		uint64_t address = segments[i].file_offset;
		if (segments[i].is_executable)
			return place_in_segment(s, image_index, image->module, &segments[i],
						&address);
	}
	return place_in_file(s, image_index);
}

/*
 * pprof takes the first mapping for the main program, so that one comes first, and also when all of
 * its samples lie in libraries or the kernel (FR-88).
 */
static void choose_main_mapping(struct symbolizer *s)
{
	struct profile *profile = s->input->profile;
	uint32_t best = find_main_mapping(s);
	const struct image *image =
		best == PROFILE_NONE ? NULL : get_image(s, s->mapping_images[best]);
	bool is_wanted = image && (s->input->main_path ? is_main(s, image) : is_program(image));
	uint32_t program = is_wanted || !profile->samples.n ? NO_IMAGE : find_unsampled_program(s);
	if (program != NO_IMAGE &&
	    (!image || !is_program(image) || is_main(s, get_image(s, program))))
		best = place_program(s, program);
	if (best != PROFILE_NONE)
		profile_set_main_mapping(profile, best);
}

static bool is_of_file(const struct image *image)
{
	return image->kind == IMAGE_FILE || image->kind == IMAGE_VDSO;
}

/* Modules of all locations, each once, in the order of the locations. */
static void prepare_modules(struct symbolizer *s)
{
	const struct symbolize_input *input = s->input;
	struct module **modules = NULL;
	size_t n = 0, capacity = 0;
	struct hash_map seen;
	hash_map_init(&seen);
	const struct profile *profile = input->profile;
	for (uint32_t i = 0; i < profile->locations.n; i++) {
		const struct location location = location_of_profile(&profile->locations.items[i]);
		struct image *image = get_image(s, location.image);
		if (!is_of_file(image))
			continue;
		image_open(image, input->source, input->cache);
		bool is_new;
		hash_map_put(&seen, (uintptr_t)image->module, &is_new);
		if (!is_new)
			continue;
		if (n == capacity) {
			capacity = capacity ? 2 * capacity : 64;
			modules = mem_realloc(modules, capacity, sizeof(struct module *));
		}
		modules[n++] = image->module;
	}
	symcache_prepare(input->cache, modules, n, input->progress, input->progress_context);
	hash_map_fini(&seen);
	mem_free(modules);
}

static bool is_same_place(const struct profile *profile, uint32_t a, uint32_t b)
{
	const struct profile_location *x = &profile->locations.items[a];
	const struct profile_location *y = &profile->locations.items[b];
	if (x->address != y->address || x->mapping != y->mapping || x->n_lines != y->n_lines)
		return false;
	return x->first_line == y->first_line ||
	       memcmp(&profile->lines.items[x->first_line], &profile->lines.items[y->first_line],
		      x->n_lines * sizeof(struct profile_line)) == 0;
}

/* One code seen at several moments, or under one name in several processes, is one location. */
static void join_jit(struct symbolizer *s, uint32_t *to, const bool *is_jit)
{
	struct profile *profile = s->input->profile;
	uint32_t n = profile->locations.n, n_joined = 0;
	uint32_t *older = mem_zalloc((size_t)n + 1, sizeof(*older)); /* + 1, of the same hash */
	struct hash_map newest;
	hash_map_init(&newest);
	for (uint32_t i = 0; i < n; i++) {
		to[i] = i;
		const struct profile_location *location = &profile->locations.items[i];
		if (!is_jit[i])
			continue;
		uint64_t *last = hash_map_put(&newest, location->address, NULL);
		uint32_t alike = (uint32_t)*last;
		while (alike && !is_same_place(profile, alike - 1, i))
			alike = older[alike - 1];
		if (alike) {
			to[i] = alike - 1;
			n_joined++;
			continue;
		}
		older[i] = (uint32_t)*last;
		*last = i + 1;
	}
	hash_map_fini(&newest);
	mem_free(older);
	if (n_joined)
		profile_join_locations(profile, to);
}

/* Names all; how many of them were spots of JIT code, told in is_jit. */
static uint32_t symbolize_all(struct symbolizer *s, uint64_t frames_out[SYMBOL_REASON_N],
			      bool *is_jit)
{
	const struct symbolize_input *input = s->input;
	uint32_t n = input->profile->locations.n, n_jit = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct location location =
			location_of_profile(&input->profile->locations.items[i]);
		is_jit[i] = location.image == IMAGE_INDEX_JIT;
		n_jit += is_jit[i];
		frames_out[symbolize_location(s, i, &location)]++;
		if (input->progress && i % 1024 == 0)
			input->progress(input->progress_context, i, n);
	}
	return n_jit;
}

void symbolize(const struct symbolize_input *input, uint64_t frames_out[SYMBOL_REASON_N])
{
	struct symbolizer *s = mem_zalloc(1, sizeof(*s));
	s->input = input;
	hash_map_init(&s->mappings);
	open_kernel(input);
	prepare_modules(s);
	jit_table_resolve(input->jit);
	size_t n = input->profile->locations.n;
	bool *is_jit = mem_zalloc(n + 1, sizeof(*is_jit));
	if (symbolize_all(s, frames_out, is_jit)) {
		uint32_t *to = mem_alloc(n * sizeof(*to));
		join_jit(s, to, is_jit);
		mem_free(to);
	}
	mem_free(is_jit);
	choose_main_mapping(s);
	profile_set_symbol_flags(input->profile);
	hash_map_fini(&s->mappings);
	mem_free(s->mapping_images);
	mem_free(s);
}
