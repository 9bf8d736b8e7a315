/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of a part, its own dense indices, and what a sample costs in encoded bytes. */
#include "proto/profile_copy.h"

#include "base/mem.h"
#include "proto/protobuf_wire.h"

void profile_copy_init(struct profile_copy *copy, const struct profile *from)
{
	*copy = (struct profile_copy){
		.from = from,
		.strings = mem_zalloc(from->strings.n, sizeof(*copy->strings)),
		.mappings = mem_zalloc(from->mappings.n, sizeof(*copy->mappings)),
		.functions = mem_zalloc(from->functions.n, sizeof(*copy->functions)),
		.locations = mem_zalloc(from->locations.n, sizeof(*copy->locations)),
		.stacks = mem_zalloc(from->stacks.n, sizeof(*copy->stacks)),
	};
}

void profile_copy_fini(struct profile_copy *copy)
{
	profile_free(copy->to);
	mem_free(copy->strings);
	mem_free(copy->mappings);
	mem_free(copy->functions);
	mem_free(copy->locations);
	mem_free(copy->stacks);
	mem_free(copy->labels);
	mem_free(copy->lines);
	mem_free(copy->path);
	*copy = (struct profile_copy){0};
}

static inline bool is_copied(const struct profile_copy *copy, const struct profile_copy_entry *map,
			     uint32_t index)
{
	return map[index].generation == copy->generation;
}

static inline uint32_t note(const struct profile_copy *copy, struct profile_copy_entry *entry,
			    uint32_t index)
{
	*entry = (struct profile_copy_entry){.generation = copy->generation, .index = index};
	return index;
}

static uint32_t copy_string(struct profile_copy *copy, uint32_t string)
{
	if (is_copied(copy, copy->strings, string))
		return copy->strings[string].index;
	const struct intern_entry *entry = &copy->from->strings.entries[string];
	return note(copy, &copy->strings[string],
		    profile_string_n(copy->to, entry->text, entry->size));
}

static bool is_same_mapping(const struct profile_mapping *a, const struct profile_mapping *b)
{
	return a->memory_start == b->memory_start && a->memory_limit == b->memory_limit &&
	       a->file_offset == b->file_offset && a->filename == b->filename &&
	       a->build_id == b->build_id && a->has_functions == b->has_functions &&
	       a->has_filenames == b->has_filenames && a->has_line_numbers == b->has_line_numbers &&
	       a->has_inline_frames == b->has_inline_frames;
}

/* The target's, made when it has none. */
static uint32_t find_mapping(struct profile_copy *copy, const struct profile_mapping *own)
{
	if (!copy->index)
		return profile_add_mapping(copy->to, own);
	uint64_t key = hash_mix(own->memory_start ^
				hash_mix(own->file_offset ^ (uint64_t)own->filename << 32));
	uint64_t *known = hash_map_get(&copy->index->mappings, key);
	if (known && is_same_mapping(&copy->to->mappings.items[*known], own))
		return (uint32_t)*known;
	uint32_t index = profile_add_mapping(copy->to, own);
	*hash_map_put(&copy->index->mappings, key, NULL) = index;
	return index;
}

static uint32_t copy_mapping(struct profile_copy *copy, uint32_t mapping)
{
	if (mapping == PROFILE_NONE)
		return PROFILE_NONE;
	if (is_copied(copy, copy->mappings, mapping))
		return copy->mappings[mapping].index;
	struct profile_mapping own = copy->from->mappings.items[mapping];
	own.filename = copy_string(copy, own.filename);
	own.build_id = copy_string(copy, own.build_id);
	return note(copy, &copy->mappings[mapping], find_mapping(copy, &own));
}

static uint32_t copy_function(struct profile_copy *copy, uint32_t function)
{
	if (is_copied(copy, copy->functions, function))
		return copy->functions[function].index;
	struct profile_function own = copy->from->functions.items[function];
	own.name = copy_string(copy, own.name);
	own.system_name = copy_string(copy, own.system_name);
	own.filename = copy_string(copy, own.filename);
	return note(copy, &copy->functions[function], profile_function(copy->to, &own));
}

static void copy_lines(struct profile_copy *copy, const struct profile_location *old)
{
	if (old->n_lines > copy->lines_capacity) {
		copy->lines_capacity = old->n_lines;
		copy->lines = mem_realloc(copy->lines, old->n_lines, sizeof(*copy->lines));
	}
	for (uint32_t i = 0; i < old->n_lines; i++) {
		copy->lines[i] = copy->from->lines.items[old->first_line + i];
		copy->lines[i].function = copy_function(copy, copy->lines[i].function);
	}
}

static bool has_these_lines(const struct profile_copy *copy, uint32_t location, uint32_t n)
{
	const struct profile_location *known = &copy->to->locations.items[location];
	if (known->n_lines != n)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct profile_line *a = &copy->to->lines.items[known->first_line + i];
		const struct profile_line *b = &copy->lines[i];
		if (a->function != b->function || a->line != b->line || a->column != b->column)
			return false;
	}
	return true;
}

static uint32_t add_location(struct profile_copy *copy, const struct profile_location *old,
			     uint32_t mapping)
{
	uint32_t index = profile_add_location(copy->to, mapping, old->address);
	copy->to->locations.items[index].is_folded = old->is_folded;
	profile_set_lines(copy->to, index, copy->lines, old->n_lines);
	return index;
}

/* The target's with copy->lines, made when it has none. */
static uint32_t find_location(struct profile_copy *copy, const struct profile_location *old,
			      uint32_t mapping)
{
	if (!copy->index)
		return add_location(copy, old, mapping);
	uint64_t function = old->n_lines ? copy->lines[0].function : PROFILE_NONE;
	uint64_t key = hash_mix(old->address ^ hash_mix((uint64_t)mapping << 32 ^ function));
	uint64_t *known = hash_map_get(&copy->index->locations, key);
	if (known) {
		const struct profile_location *own = &copy->to->locations.items[*known];
		if (own->mapping == mapping && own->address == old->address &&
		    has_these_lines(copy, (uint32_t)*known, old->n_lines))
			return (uint32_t)*known;
	}
	uint32_t index = add_location(copy, old, mapping);
	*hash_map_put(&copy->index->locations, key, NULL) = index;
	return index;
}

static uint32_t copy_location(struct profile_copy *copy, uint32_t location)
{
	if (is_copied(copy, copy->locations, location))
		return copy->locations[location].index;
	const struct profile_location *old = &copy->from->locations.items[location];
	uint32_t mapping = copy_mapping(copy, old->mapping);
	copy_lines(copy, old);
	return note(copy, &copy->locations[location], find_location(copy, old, mapping));
}

static uint32_t copy_stack(struct profile_copy *copy, uint32_t stack)
{
	const struct profile_stack_node *nodes = copy->from->stacks.items;
	uint32_t n = 0;
	uint32_t node = stack;
	for (; node && !is_copied(copy, copy->stacks, node); node = nodes[node].parent) {
		if (n == copy->path_capacity) {
			copy->path_capacity = n ? n * 2 : 64;
			copy->path =
				mem_realloc(copy->path, copy->path_capacity, sizeof(*copy->path));
		}
		copy->path[n++] = node;
	}
	uint32_t own = node ? copy->stacks[node].index : 0;
	while (n--) {
		uint32_t location = copy_location(copy, nodes[copy->path[n]].location);
		own = profile_stack_push(copy->to, own, location);
		note(copy, &copy->stacks[copy->path[n]], own);
	}
	return own;
}

static bool is_among(uint32_t key, const uint32_t *keys, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (keys[i] == key)
			return true;
	}
	return false;
}

static uint32_t copy_labels(struct profile_copy *copy, uint32_t label_set,
			    const uint32_t *dropped_keys, uint32_t n_dropped)
{
	struct profile_label_set set = copy->from->label_sets.items[label_set];
	if (set.n > copy->labels_capacity) {
		copy->labels_capacity = set.n;
		copy->labels = mem_realloc(copy->labels, set.n, sizeof(*copy->labels));
	}
	uint32_t n = 0;
	for (uint32_t i = 0; i < set.n; i++) {
		struct profile_label label = profile_label_at(copy->from, set.first + i);
		if (is_among(label.key, dropped_keys, n_dropped))
			continue;
		label.key = copy_string(copy, label.key);
		label.str = copy_string(copy, label.str);
		label.unit = copy_string(copy, label.unit);
		copy->labels[n++] = label;
	}
	return profile_label_set(copy->to, copy->labels, n);
}

void profile_copy_begin(struct profile_copy *copy)
{
	const struct profile *from = copy->from;
	struct profile *to = profile_new();
	profile_free(copy->to);
	copy->to = to;
	copy->generation++;
	uint32_t n_columns = copy->n_columns ? copy->n_columns : from->sample_types.n;
	for (uint32_t i = 0; i < n_columns; i++) {
		struct profile_value_type type = from->sample_types.items[copy->first_column + i];
		profile_add_sample_type(to, profile_text(from, type.type),
					profile_text(from, type.unit));
	}
	profile_set_row_width(to, copy->n_columns ? 0 : from->row_width);
	to->period_type.type = copy_string(copy, from->period_type.type);
	to->period_type.unit = copy_string(copy, from->period_type.unit);
	to->period = from->period;
	to->time_nanos = from->time_nanos;
	to->duration_nanos = from->duration_nanos;
	to->default_sample_type = copy_string(copy, from->default_sample_type);
	to->doc_url = copy_string(copy, from->doc_url);
	to->drop_frames = copy_string(copy, from->drop_frames);
	to->keep_frames = copy_string(copy, from->keep_frames);
	for (uint32_t i = 0; i < from->comments.n; i++)
		profile_add_comment(to, profile_text(from, from->comments.items[i]));
	if (from->mappings.n)
		(void)copy_mapping(copy, 0);
}

void profile_copy_continue(struct profile_copy *copy, struct profile *target)
{
	profile_free(copy->to);
	copy->to = target;
	copy->generation++;
}

void profile_copy_sample(struct profile_copy *copy, uint32_t sample, const uint32_t *dropped_keys,
			 uint32_t n_dropped)
{
	struct profile_sample old = copy->from->samples.items[sample];
	uint32_t stack = copy_stack(copy, old.stack);
	uint32_t labels = copy_labels(copy, old.label_set, dropped_keys, n_dropped);
	if (copy->n_columns) {
		int64_t *values =
			profile_values(copy->to, profile_add_row(copy->to, stack, labels, 0));
		for (uint32_t i = 0; i < copy->n_columns; i++) {
			int64_t value = profile_value(copy->from, sample, copy->first_column + i);
			profile_add_values(&values[i], &value, 1);
		}
		return;
	}
	uint32_t first_column = profile_first_column(copy->from, sample);
	uint32_t row = profile_add_row(copy->to, stack, labels, first_column);
	profile_add_values(profile_values(copy->to, row), profile_values(copy->from, sample),
			   profile_row_width(copy->from));
}

/* Bytes of a length-delimited field. */
static uint64_t message_bytes(uint64_t body)
{
	return 1 + protobuf_wire_varint_bytes(body) + body;
}

static uint64_t number_bytes(uint64_t value)
{
	return 1 + protobuf_wire_varint_bytes(value);
}

static uint64_t string_cost(const struct profile_copy *copy, uint32_t string)
{
	if (is_copied(copy, copy->strings, string))
		return 0;
	return message_bytes(copy->from->strings.entries[string].size);
}

/* Bytes of a field that holds an index into an array that is about to have n elements more. */
static uint64_t index_bytes(uint64_t n)
{
	return number_bytes(n + 1);
}

static uint64_t mapping_cost(const struct profile_copy *copy, uint32_t mapping)
{
	if (mapping == PROFILE_NONE || is_copied(copy, copy->mappings, mapping))
		return 0;
	const struct profile_mapping *old = &copy->from->mappings.items[mapping];
	uint64_t string = index_bytes(copy->from->strings.n);
	uint64_t body = index_bytes(copy->from->mappings.n) + number_bytes(old->memory_start) +
			number_bytes(old->memory_limit) + number_bytes(old->file_offset) +
			2 * string + 4 * number_bytes(1);
	return message_bytes(body) + string_cost(copy, old->filename) +
	       string_cost(copy, old->build_id);
}

static uint64_t function_cost(const struct profile_copy *copy, uint32_t function)
{
	if (is_copied(copy, copy->functions, function))
		return 0;
	const struct profile_function *old = &copy->from->functions.items[function];
	uint64_t string = index_bytes(copy->from->strings.n);
	uint64_t body = index_bytes(copy->from->functions.n) + 3 * string +
			number_bytes((uint64_t)old->start_line);
	return message_bytes(body) + string_cost(copy, old->name) +
	       string_cost(copy, old->system_name) + string_cost(copy, old->filename);
}

static uint64_t location_cost(const struct profile_copy *copy, uint32_t location)
{
	if (is_copied(copy, copy->locations, location))
		return 0;
	const struct profile *from = copy->from;
	const struct profile_location *old = &from->locations.items[location];
	uint64_t body = index_bytes(from->locations.n) + index_bytes(from->mappings.n) +
			number_bytes(old->address) + number_bytes(1);
	uint64_t others = mapping_cost(copy, old->mapping);
	for (uint32_t i = 0; i < old->n_lines; i++) {
		const struct profile_line *line = &from->lines.items[old->first_line + i];
		body += message_bytes(index_bytes(from->functions.n) +
				      number_bytes((uint64_t)line->line) +
				      number_bytes(line->column));
		others += function_cost(copy, line->function);
	}
	return message_bytes(body) + others;
}

static uint64_t labels_cost(const struct profile_copy *copy, uint32_t label_set, uint64_t *others)
{
	struct profile_label_set set = copy->from->label_sets.items[label_set];
	uint64_t string = index_bytes(copy->from->strings.n);
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < set.n; i++) {
		const struct profile_label label = profile_label_at(copy->from, set.first + i);
		uint64_t num = label.is_number ? number_bytes((uint64_t)label.num) : 0;
		bytes += message_bytes(2 * string + num);
		*others += string_cost(copy, label.key) + string_cost(copy, label.str) +
			   string_cost(copy, label.unit);
	}
	return bytes;
}

uint64_t profile_copy_cost(const struct profile_copy *copy, uint32_t sample)
{
	const struct profile *from = copy->from;
	struct profile_sample old = from->samples.items[sample];
	uint64_t others = 0;
	uint64_t stack = 0;
	uint64_t new_id = protobuf_wire_varint_bytes((uint64_t)from->locations.n + 1);
	for (uint32_t node = old.stack; node; node = from->stacks.items[node].parent) {
		uint32_t location = from->stacks.items[node].location;
		if (is_copied(copy, copy->locations, location)) {
			uint64_t id = (uint64_t)copy->locations[location].index + 1;
			stack += protobuf_wire_varint_bytes(id);
		} else {
			stack += new_id;
			others += location_cost(copy, location);
		}
	}
	uint64_t row = from->sample_types.n - profile_row_width(from);
	for (uint32_t i = 0; i < profile_row_width(from); i++)
		row += protobuf_wire_varint_bytes((uint64_t)profile_values(from, sample)[i]);
	uint64_t labels = labels_cost(copy, old.label_set, &others);
	return message_bytes(message_bytes(stack) + message_bytes(row) + labels) + others;
}

struct profile *profile_copy_end(struct profile_copy *copy)
{
	struct profile *part = copy->to;
	copy->to = NULL;
	return part;
}
