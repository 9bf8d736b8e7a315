/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples first: they number the stacks they use, stacks number locations, and so on, so that each
 * table holds what is used, in the order of first use. Strings and attributes are interned by their
 * bytes; index 0 of an intern is the empty string, and an empty message is the zero value.
 */
#include "proto/otlp_encode.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/mem.h"
#include "proto/otlp_field.h"
#include "proto/protobuf_writer.h"

/* Elements of the profile to positions in a table; 0 is the zero value. */
struct numbering {
	uint32_t *position_of;
	uint32_t *elements; /* [position - 1] */
	uint32_t n;
};

struct encoder {
	const struct profile *profile;
	size_t max_bytes;
	struct arena arena;
	struct intern strings, attributes;
	uint32_t *string_of; /* of the profile's strings */
	struct numbering stacks, locations, functions, mappings;
	struct buf profiles, dictionary;
	struct buf body, part, value; /* scratch of one message, of one within it, of an AnyValue */
	struct error *err;
};

static void numbering_init(struct numbering *numbering, uint32_t n)
{
	numbering->position_of = mem_zalloc(n, sizeof(uint32_t));
	numbering->elements = mem_zalloc(n, sizeof(uint32_t));
	numbering->n = 0;
}

static void numbering_fini(struct numbering *numbering)
{
	mem_free(numbering->position_of);
	mem_free(numbering->elements);
}

static uint32_t number(struct numbering *numbering, uint32_t element)
{
	uint32_t *position = &numbering->position_of[element];
	if (!*position) {
		numbering->elements[numbering->n++] = element;
		*position = numbering->n;
	}
	return *position;
}

static void encoder_init(struct encoder *e, const struct profile *profile, size_t max_bytes)
{
	*e = (struct encoder){.profile = profile, .max_bytes = max_bytes};
	arena_init(&e->arena, 0);
	intern_init(&e->strings, &e->arena);
	intern_init(&e->attributes, &e->arena);
	e->string_of = mem_zalloc(profile->strings.n, sizeof(*e->string_of));
	numbering_init(&e->stacks, profile->stacks.n);
	numbering_init(&e->locations, profile->locations.n);
	numbering_init(&e->functions, profile->functions.n);
	numbering_init(&e->mappings, profile->mappings.n);
	struct buf *const bufs[] = {&e->profiles, &e->dictionary, &e->body, &e->part, &e->value};
	for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
		buf_init(bufs[i], max_bytes);
}

static void encoder_fini(struct encoder *e)
{
	struct buf *const bufs[] = {&e->profiles, &e->dictionary, &e->body, &e->part, &e->value};
	for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
		buf_fini(bufs[i]);
	numbering_fini(&e->stacks);
	numbering_fini(&e->locations);
	numbering_fini(&e->functions);
	numbering_fini(&e->mappings);
	mem_free(e->string_of);
	intern_fini(&e->strings);
	intern_fini(&e->attributes);
	arena_fini(&e->arena);
	error_free(e->err);
}

/* Ends w; the first error of the encoder is kept. */
static void end(struct encoder *e, struct protobuf_writer *w)
{
	struct error *err = protobuf_writer_end(w);
	if (e->err)
		error_free(err);
	else
		e->err = err;
}

static struct protobuf_writer begin(struct buf *buf)
{
	buf_clear(buf);
	return protobuf_writer_make(buf);
}

/* Appends buf's content as a field of out. */
static void put(struct encoder *e, struct buf *out, uint32_t field, const struct buf *buf)
{
	struct protobuf_writer w = protobuf_writer_make(out);
	protobuf_writer_bytes(&w, field, buf->data, buf->size);
	end(e, &w);
}

static uint32_t string(struct encoder *e, uint32_t profile_string)
{
	if (profile_string && !e->string_of[profile_string]) {
		const struct intern_entry *entry = &e->profile->strings.entries[profile_string];
		e->string_of[profile_string] = intern_bytes(&e->strings, entry->text, entry->size);
	}
	return e->string_of[profile_string];
}

/* Attributes. Each leaves its AnyValue in e->value, then add_attribute interns it. */

static uint32_t add_attribute(struct encoder *e, uint32_t key, uint32_t unit)
{
	struct protobuf_writer w = begin(&e->part);
	protobuf_writer_number(&w, OTLP_ATTRIBUTE_KEY, key);
	protobuf_writer_bytes(&w, OTLP_ATTRIBUTE_VALUE, e->value.data, e->value.size);
	protobuf_writer_number(&w, OTLP_ATTRIBUTE_UNIT, unit);
	end(e, &w);
	return intern_bytes(&e->attributes, (const char *)e->part.data, e->part.size);
}

static void make_text(struct encoder *e, const char *text, size_t n)
{
	struct protobuf_writer w = begin(&e->value);
	protobuf_writer_bytes(&w, OTLP_ANY_STRING, text, n);
	end(e, &w);
}

static uint32_t text_attribute(struct encoder *e, const char *key, const char *text)
{
	make_text(e, text, strlen(text));
	return add_attribute(e, intern_string(&e->strings, key), 0);
}

static uint32_t true_attribute(struct encoder *e, const char *key)
{
	struct protobuf_writer w = begin(&e->value);
	protobuf_writer_number_set(&w, OTLP_ANY_BOOL, 1);
	end(e, &w);
	return add_attribute(e, intern_string(&e->strings, key), 0);
}

static uint32_t label_attribute(struct encoder *e, const struct profile_label *label)
{
	const struct intern_entry *text = &e->profile->strings.entries[label->str];
	if (!label->is_number) {
		make_text(e, text->text, text->size);
		return add_attribute(e, string(e, label->key), 0);
	}
	struct protobuf_writer w = begin(&e->value);
	protobuf_writer_number_set(&w, OTLP_ANY_INT, (uint64_t)label->num);
	end(e, &w);
	/* A unit like the key is what pprof puts where there is none. */
	uint32_t unit = label->unit == label->key ? 0 : string(e, label->unit);
	return add_attribute(e, string(e, label->key), unit);
}

/* Attribute indices, at most this many for what is not a label set. */
struct attribute_list {
	uint32_t items[8];
	uint32_t n;
};

static void put_packed(struct protobuf_writer *w, uint32_t field, const uint32_t *items, uint32_t n)
{
	size_t bytes = 0;
	for (uint32_t i = 0; i < n; i++)
		bytes += protobuf_wire_varint_bytes(items[i]);
	if (!n)
		return;
	protobuf_writer_header(w, field, bytes);
	for (uint32_t i = 0; i < n; i++)
		protobuf_writer_varint(w, items[i]);
}

/* The tables, each after those that refer to it. */

static void put_stacks(struct encoder *e)
{
	const struct profile_stack_node *nodes = e->profile->stacks.items;
	buf_clear(&e->body);
	put(e, &e->dictionary, OTLP_DICTIONARY_STACKS, &e->body);
	for (uint32_t i = 0; i < e->stacks.n && !e->err; i++) {
		struct protobuf_writer w = begin(&e->part);
		for (uint32_t node = e->stacks.elements[i]; node; node = nodes[node].parent)
			protobuf_writer_varint(&w, number(&e->locations, nodes[node].location));
		end(e, &w);
		w = begin(&e->body);
		protobuf_writer_bytes(&w, OTLP_STACK_LOCATIONS, e->part.data, e->part.size);
		end(e, &w);
		put(e, &e->dictionary, OTLP_DICTIONARY_STACKS, &e->body);
	}
}

static bool is_kernel(const struct encoder *e, const struct profile_mapping *mapping)
{
	const char *name = profile_text(e->profile, mapping->filename);
	return !strncmp(name, "[kernel", strlen("[kernel")) ||
	       !strncmp(name, "[guest.kernel", strlen("[guest.kernel"));
}

static void list_location_attributes(struct encoder *e, const struct profile_location *location,
				     struct attribute_list *list)
{
	if (location->is_folded)
		list->items[list->n++] = true_attribute(e, "pprof.location.is_folded");
	if (location->mapping == PROFILE_NONE)
		return;
	const struct profile_mapping *mapping = &e->profile->mappings.items[location->mapping];
	if (is_kernel(e, mapping))
		list->items[list->n++] = text_attribute(e, "profile.frame.type", "kernel");
	else if (mapping->build_id)
		list->items[list->n++] = text_attribute(e, "profile.frame.type", "native");
}

static void put_location(struct encoder *e, const struct profile_location *location)
{
	const struct profile *profile = e->profile;
	struct attribute_list list = {0};
	list_location_attributes(e, location, &list);
	struct protobuf_writer w = begin(&e->body);
	if (location->mapping != PROFILE_NONE)
		protobuf_writer_number(&w, OTLP_LOCATION_MAPPING,
				       number(&e->mappings, location->mapping));
	protobuf_writer_number(&w, OTLP_LOCATION_ADDRESS, location->address);
	end(e, &w);
	for (uint32_t i = 0; i < location->n_lines; i++) {
		const struct profile_line *line = &profile->lines.items[location->first_line + i];
		w = begin(&e->part);
		protobuf_writer_number(&w, OTLP_LINE_FUNCTION,
				       number(&e->functions, line->function));
		protobuf_writer_number(&w, OTLP_LINE_LINE, (uint64_t)line->line);
		protobuf_writer_number(&w, OTLP_LINE_COLUMN, line->column);
		end(e, &w);
		put(e, &e->body, OTLP_LOCATION_LINES, &e->part);
	}
	w = protobuf_writer_make(&e->body);
	put_packed(&w, OTLP_LOCATION_ATTRIBUTES, list.items, list.n);
	end(e, &w);
}

static void put_locations(struct encoder *e)
{
	buf_clear(&e->body);
	put(e, &e->dictionary, OTLP_DICTIONARY_LOCATIONS, &e->body);
	for (uint32_t i = 0; i < e->locations.n && !e->err; i++) {
		put_location(e, &e->profile->locations.items[e->locations.elements[i]]);
		put(e, &e->dictionary, OTLP_DICTIONARY_LOCATIONS, &e->body);
	}
}

static void put_functions(struct encoder *e)
{
	buf_clear(&e->body);
	put(e, &e->dictionary, OTLP_DICTIONARY_FUNCTIONS, &e->body);
	for (uint32_t i = 0; i < e->functions.n && !e->err; i++) {
		const struct profile_function *function =
			&e->profile->functions.items[e->functions.elements[i]];
		struct protobuf_writer w = begin(&e->body);
		protobuf_writer_number(&w, OTLP_FUNCTION_NAME, string(e, function->name));
		protobuf_writer_number(&w, OTLP_FUNCTION_SYSTEM_NAME,
				       string(e, function->system_name));
		protobuf_writer_number(&w, OTLP_FUNCTION_FILENAME, string(e, function->filename));
		protobuf_writer_number(&w, OTLP_FUNCTION_START_LINE,
				       (uint64_t)function->start_line);
		end(e, &w);
		put(e, &e->dictionary, OTLP_DICTIONARY_FUNCTIONS, &e->body);
	}
}

static void put_mapping(struct encoder *e, const struct profile_mapping *mapping)
{
	const struct {
		bool is_set;
		const char *key;
	} flags[] = {
		{mapping->has_functions, "pprof.mapping.has_functions"},
		{mapping->has_filenames, "pprof.mapping.has_filenames"},
		{mapping->has_line_numbers, "pprof.mapping.has_line_numbers"},
		{mapping->has_inline_frames, "pprof.mapping.has_inline_frames"},
	};
	struct attribute_list list = {0};
	if (mapping->build_id)
		list.items[list.n++] = text_attribute(e, "process.executable.build_id.gnu",
						      profile_text(e->profile, mapping->build_id));
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		if (flags[i].is_set)
			list.items[list.n++] = true_attribute(e, flags[i].key);
	}
	struct protobuf_writer w = begin(&e->body);
	if (mapping->memory_start < mapping->memory_limit) { /* else both are to be 0 */
		protobuf_writer_number(&w, OTLP_MAPPING_START, mapping->memory_start);
		protobuf_writer_number(&w, OTLP_MAPPING_LIMIT, mapping->memory_limit);
	}
	protobuf_writer_number(&w, OTLP_MAPPING_FILE_OFFSET, mapping->file_offset);
	protobuf_writer_number(&w, OTLP_MAPPING_FILENAME, string(e, mapping->filename));
	put_packed(&w, OTLP_MAPPING_ATTRIBUTES, list.items, list.n);
	end(e, &w);
}

static void put_mappings(struct encoder *e)
{
	buf_clear(&e->body);
	put(e, &e->dictionary, OTLP_DICTIONARY_MAPPINGS, &e->body);
	for (uint32_t i = 0; i < e->mappings.n && !e->err; i++) {
		put_mapping(e, &e->profile->mappings.items[e->mappings.elements[i]]);
		put(e, &e->dictionary, OTLP_DICTIONARY_MAPPINGS, &e->body);
	}
}

static void put_interned(struct encoder *e, uint32_t field, const struct intern *intern)
{
	struct protobuf_writer w = protobuf_writer_make(&e->dictionary);
	for (uint32_t i = 0; i < intern->n && !w.err; i++)
		protobuf_writer_bytes(&w, field, intern->entries[i].text, intern->entries[i].size);
	end(e, &w);
}

static void put_dictionary(struct encoder *e)
{
	put_stacks(e);
	put_locations(e);
	put_functions(e);
	put_mappings(e);
	buf_clear(&e->body);
	put(e, &e->dictionary, OTLP_DICTIONARY_LINKS, &e->body);
	put_interned(e, OTLP_DICTIONARY_ATTRIBUTES, &e->attributes);
	put_interned(e, OTLP_DICTIONARY_STRINGS, &e->strings);
}

/* The attribute indices of each label set, encoded when first used. */
struct set_attributes {
	uint32_t *first; /* [label set]: position in items + 1 */
	uint32_t *items;
	uint32_t n;
};

static const uint32_t *list_set_attributes(struct encoder *e, struct set_attributes *sets,
					   uint32_t label_set)
{
	const struct profile_label_set set = e->profile->label_sets.items[label_set];
	if (!sets->first[label_set]) {
		sets->first[label_set] = sets->n + 1;
		for (uint32_t i = 0; i < set.n; i++) {
			const struct profile_label label =
				profile_label_at(e->profile, set.first + i);
			sets->items[sets->n++] = label_attribute(e, &label);
		}
	}
	return sets->items + sets->first[label_set] - 1;
}

/* Whether the column has any sample. */
static bool put_samples(struct encoder *e, struct set_attributes *sets, uint32_t column,
			struct buf *out)
{
	const struct profile *profile = e->profile;
	bool has_samples = false;
	for (uint32_t i = 0; i < profile->samples.n && !e->err; i++) {
		const struct profile_sample *sample = &profile->samples.items[i];
		int64_t value = profile_value(profile, i, column);
		if (!value)
			continue;
		has_samples = true;
		const uint32_t *attributes = list_set_attributes(e, sets, sample->label_set);
		struct protobuf_writer w = begin(&e->body);
		if (sample->stack)
			protobuf_writer_number(&w, OTLP_SAMPLE_STACK,
					       number(&e->stacks, sample->stack));
		put_packed(&w, OTLP_SAMPLE_ATTRIBUTES, attributes,
			   profile->label_sets.items[sample->label_set].n);
		protobuf_writer_header(&w, OTLP_SAMPLE_VALUES,
				       protobuf_wire_varint_bytes((uint64_t)value));
		protobuf_writer_varint(&w, (uint64_t)value);
		end(e, &w);
		put(e, out, OTLP_PROFILE_SAMPLES, &e->body);
	}
	return has_samples;
}

static void put_value_type(struct encoder *e, uint32_t field, struct profile_value_type type,
			   struct buf *out)
{
	struct protobuf_writer w = begin(&e->body);
	protobuf_writer_number(&w, OTLP_VALUE_TYPE_TYPE, string(e, type.type));
	protobuf_writer_number(&w, OTLP_VALUE_TYPE_UNIT, string(e, type.unit));
	end(e, &w);
	put(e, out, field, &e->body);
}

/* An array of texts, as an AnyValue in e->value. */
static void make_comments(struct encoder *e)
{
	const struct profile *profile = e->profile;
	buf_clear(&e->body);
	for (uint32_t i = 0; i < profile->comments.n; i++) {
		const struct intern_entry *text =
			&profile->strings.entries[profile->comments.items[i]];
		make_text(e, text->text, text->size);
		put(e, &e->body, OTLP_ARRAY_VALUES, &e->value);
	}
	struct protobuf_writer w = begin(&e->value);
	protobuf_writer_bytes(&w, OTLP_ANY_ARRAY, e->body.data, e->body.size);
	end(e, &w);
}

static void list_profile_attributes(struct encoder *e, struct attribute_list *list)
{
	const struct profile *profile = e->profile;
	const struct {
		uint32_t string;
		const char *key;
	} texts[] = {
		{profile->drop_frames, "pprof.profile.drop_frames"},
		{profile->keep_frames, "pprof.profile.keep_frames"},
		{profile->doc_url, "pprof.profile.doc_url"},
	};
	if (profile->comments.n) {
		make_comments(e);
		uint32_t key = intern_string(&e->strings, "pprof.profile.comment");
		list->items[list->n++] = add_attribute(e, key, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (texts[i].string)
			list->items[list->n++] = text_attribute(
				e, texts[i].key, profile_text(profile, texts[i].string));
	}
}

/* Appends a Profile for the column to e->profiles, unless it has no samples. */
static bool put_profile(struct encoder *e, struct set_attributes *sets, uint32_t column)
{
	const struct profile *profile = e->profile;
	CLEANUP(buf_fini) struct buf out;
	buf_init(&out, e->max_bytes);
	put_value_type(e, OTLP_PROFILE_SAMPLE_TYPE, profile->sample_types.items[column], &out);
	if (!put_samples(e, sets, column, &out))
		return false;
	struct attribute_list list = {0};
	list_profile_attributes(e, &list);
	struct protobuf_writer w = protobuf_writer_make(&out);
	protobuf_writer_fixed64(&w, OTLP_PROFILE_TIME_UNIX_NANO, (uint64_t)profile->time_nanos);
	protobuf_writer_number(&w, OTLP_PROFILE_DURATION_NANO, (uint64_t)profile->duration_nanos);
	end(e, &w);
	put_value_type(e, OTLP_PROFILE_PERIOD_TYPE, profile->period_type, &out);
	w = protobuf_writer_make(&out);
	protobuf_writer_number(&w, OTLP_PROFILE_PERIOD, (uint64_t)profile->period);
	put_packed(&w, OTLP_PROFILE_ATTRIBUTES, list.items, list.n);
	end(e, &w);
	put(e, &e->profiles, OTLP_SCOPE_PROFILES_PROFILES, &out);
	return true;
}

/* A KeyValue with the AnyValue in e->value, as a field of out. */
static void put_key_value(struct encoder *e, uint32_t field, const char *key, struct buf *out)
{
	struct protobuf_writer w = begin(&e->part);
	protobuf_writer_text(&w, OTLP_KEY_VALUE_KEY, key);
	protobuf_writer_bytes(&w, OTLP_KEY_VALUE_VALUE, e->value.data, e->value.size);
	end(e, &w);
	put(e, out, field, &e->part);
}

/* sample_type_order: of each Profile, the column it was. */
static void make_scope(struct encoder *e, const char *name, const uint32_t *columns, uint32_t n,
		       struct buf *out)
{
	struct protobuf_writer w = protobuf_writer_make(out);
	protobuf_writer_text(&w, OTLP_SCOPE_NAME, name);
	end(e, &w);
	const struct profile *profile = e->profile;
	if (profile->default_sample_type) {
		const char *text = profile_text(profile, profile->default_sample_type);
		make_text(e, text, strlen(text));
		put_key_value(e, OTLP_SCOPE_ATTRIBUTES, "pprof.scope.default_sample_type", out);
	}
	buf_clear(&e->body);
	for (uint32_t i = 0; i < n; i++) {
		w = begin(&e->value);
		protobuf_writer_number_set(&w, OTLP_ANY_INT, columns[i]);
		end(e, &w);
		put(e, &e->body, OTLP_ARRAY_VALUES, &e->value);
	}
	w = begin(&e->value);
	protobuf_writer_bytes(&w, OTLP_ANY_ARRAY, e->body.data, e->body.size);
	end(e, &w);
	put_key_value(e, OTLP_SCOPE_ATTRIBUTES, "pprof.scope.sample_type_order", out);
}

static void make_resource(struct encoder *e, const struct otlp_encode_options *options,
			  struct buf *out)
{
	for (size_t i = 0; i < options->n_resource; i++) {
		make_text(e, options->resource[i].value, strlen(options->resource[i].value));
		put_key_value(e, OTLP_RESOURCE_ATTRIBUTES, options->resource[i].key, out);
	}
}

/* The request around what was made; resource and scope stand there even when they are empty. */
static void put_request(struct encoder *e, const struct buf *resource, const struct buf *scope,
			struct buf *out)
{
	size_t scope_profiles =
		protobuf_writer_field_bytes(OTLP_SCOPE_PROFILES_SCOPE, scope->size) +
		e->profiles.size;
	size_t resource_profiles =
		protobuf_writer_field_bytes(OTLP_RESOURCE_PROFILES_RESOURCE, resource->size) +
		protobuf_writer_field_bytes(OTLP_RESOURCE_PROFILES_SCOPE_PROFILES, scope_profiles);
	struct protobuf_writer w = protobuf_writer_make(out);
	protobuf_writer_header(&w, OTLP_REQUEST_RESOURCE_PROFILES, resource_profiles);
	protobuf_writer_bytes(&w, OTLP_RESOURCE_PROFILES_RESOURCE, resource->data, resource->size);
	protobuf_writer_header(&w, OTLP_RESOURCE_PROFILES_SCOPE_PROFILES, scope_profiles);
	protobuf_writer_bytes(&w, OTLP_SCOPE_PROFILES_SCOPE, scope->data, scope->size);
	protobuf_writer_raw(&w, e->profiles.data, e->profiles.size);
	protobuf_writer_bytes(&w, OTLP_REQUEST_DICTIONARY, e->dictionary.data, e->dictionary.size);
	end(e, &w);
}

/* Positions in labels are 32 bits wide, so this is too. */
static uint32_t count_labels(const struct profile *profile)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < profile->label_sets.n; i++)
		n += profile->label_sets.items[i].n;
	return n;
}

struct error *otlp_encode(const struct profile *profile, const struct otlp_encode_options *options,
			  struct buf *out, uint32_t *n_profiles_out)
{
	CLEANUP(encoder_fini) struct encoder e;
	encoder_init(&e, profile, out->max_bytes);
	CLEANUP(cleanup_mem)
	uint32_t *first = mem_zalloc(profile->label_sets.n, sizeof(*first));
	CLEANUP(cleanup_mem) uint32_t *items = mem_zalloc(count_labels(profile), sizeof(*items));
	CLEANUP(cleanup_mem)
	uint32_t *columns = mem_zalloc(profile->sample_types.n, sizeof(*columns));
	struct set_attributes sets = {.first = first, .items = items};
	uint32_t n_profiles = 0;
	for (uint32_t column = 0; column < profile->sample_types.n && !e.err; column++) {
		if (put_profile(&e, &sets, column))
			columns[n_profiles++] = column;
	}
	*n_profiles_out = e.err ? 0 : n_profiles;
	if (!*n_profiles_out)
		return TAKE(e.err);
	CLEANUP(buf_fini) struct buf resource;
	CLEANUP(buf_fini) struct buf scope;
	buf_init(&resource, out->max_bytes);
	buf_init(&scope, out->max_bytes);
	make_resource(&e, options, &resource);
	make_scope(&e, options->scope_name, columns, n_profiles, &scope);
	put_dictionary(&e);
	put_request(&e, &resource, &scope, out);
	return TAKE(e.err);
}
