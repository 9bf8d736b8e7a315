/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generated code unpacks the message; here its tables become those of a profile. Every index is
 * checked against its table once, when the element that holds it is read.
 */
#include "proto/otlp_read.h"

#include <proto/otlp_collector_profiles.pb-c.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"

typedef Opentelemetry__Proto__Profiles__V1development__Profile otlp_profile;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary otlp_dictionary;
typedef Opentelemetry__Proto__Profiles__V1development__Mapping otlp_mapping;
typedef Opentelemetry__Proto__Profiles__V1development__Location otlp_location;
typedef Opentelemetry__Proto__Profiles__V1development__Function otlp_function;
typedef Opentelemetry__Proto__Profiles__V1development__Stack otlp_stack;
typedef Opentelemetry__Proto__Profiles__V1development__Sample otlp_sample;
typedef Opentelemetry__Proto__Profiles__V1development__ValueType otlp_value_type;
typedef Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit otlp_key_value;
typedef Opentelemetry__Proto__Profiles__V1development__ScopeProfiles otlp_scope_profiles;
typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
	otlp_request;
typedef Opentelemetry__Proto__Common__V1__AnyValue otlp_any;
#define ANY_IS(any, kind)                                                                          \
	((any) && (any)->value_case == OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##kind)

enum { JOINED_COLUMNS_MAX = 8 /* so that rows of all columns stay in proportion */ };

struct reader {
	const otlp_dictionary *dictionary;
	struct otlp_reading *out;
	struct profile *profile;
	uint32_t *stacks; /* position in the table → node */
	struct profile_label *labels;
	uint32_t *path;
};

static struct error *damaged(const char *what) MUST_USE;
static struct error *damaged(const char *what)
{
	return error_new(ERROR_BAD_DATA, "OTLP request: %s", what);
}

static bool is_in(int32_t index, size_t n)
{
	return index >= 0 && (size_t)index < n;
}

static struct error *get_string(const struct reader *r, int32_t index, uint32_t *out)
{
	if (!is_in(index, r->dictionary->n_string_table))
		return damaged("string index past its table");
	*out = profile_string(r->profile, r->dictionary->string_table[index]);
	return NULL;
}

/* The attribute at an index of a list, and its key. */
static struct error *get_attribute(const struct reader *r, int32_t index,
				   const otlp_key_value **out, const char **key_out)
{
	if (!is_in(index, r->dictionary->n_attribute_table))
		return damaged("attribute index past its table");
	const otlp_key_value *attribute = r->dictionary->attribute_table[index];
	if (!is_in(attribute->key_strindex, r->dictionary->n_string_table))
		return damaged("string index past its table");
	*out = attribute;
	*key_out = r->dictionary->string_table[attribute->key_strindex];
	return NULL;
}

static struct error *read_mapping_attribute(struct reader *r, const otlp_key_value *attribute,
					    const char *key, struct profile_mapping *mapping)
{
	const struct {
		bool *flag;
		const char *key;
	} flags[] = {
		{&mapping->has_functions, "pprof.mapping.has_functions"},
		{&mapping->has_filenames, "pprof.mapping.has_filenames"},
		{&mapping->has_line_numbers, "pprof.mapping.has_line_numbers"},
		{&mapping->has_inline_frames, "pprof.mapping.has_inline_frames"},
	};
	if (!strcmp(key, "process.executable.build_id.gnu") &&
	    ANY_IS(attribute->value, STRING_VALUE))
		mapping->build_id = profile_string(r->profile, attribute->value->string_value);
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		if (!strcmp(key, flags[i].key) && ANY_IS(attribute->value, BOOL_VALUE))
			*flags[i].flag = attribute->value->bool_value;
	}
	return NULL;
}

static struct error *read_mappings(struct reader *r)
{
	for (size_t i = 1; i < r->dictionary->n_mapping_table; i++) {
		const otlp_mapping *from = r->dictionary->mapping_table[i];
		struct profile_mapping mapping = {.memory_start = from->memory_start,
						  .memory_limit = from->memory_limit,
						  .file_offset = from->file_offset};
		struct error *err = get_string(r, from->filename_strindex, &mapping.filename);
		for (size_t k = 0; !err && k < from->n_attribute_indices; k++) {
			const otlp_key_value *attribute;
			const char *key;
			err = get_attribute(r, from->attribute_indices[k], &attribute, &key);
			if (!err)
				err = read_mapping_attribute(r, attribute, key, &mapping);
		}
		if (err)
			return err;
		(void)profile_add_mapping(r->profile, &mapping);
	}
	return NULL;
}

/* functions: position in the table → index. */
static struct error *read_functions(struct reader *r, uint32_t *functions)
{
	for (size_t i = 0; i < r->dictionary->n_function_table; i++) {
		const otlp_function *from = r->dictionary->function_table[i];
		struct profile_function function = {.start_line = from->start_line};
		struct error *err = get_string(r, from->name_strindex, &function.name);
		if (!err)
			err = get_string(r, from->system_name_strindex, &function.system_name);
		if (!err)
			err = get_string(r, from->filename_strindex, &function.filename);
		if (err)
			return err;
		functions[i] = profile_function(r->profile, &function);
	}
	return NULL;
}

static struct error *read_lines(struct reader *r, const otlp_location *from,
				const uint32_t *functions, uint32_t location)
{
	CLEANUP(cleanup_mem)
	struct profile_line *lines = mem_zalloc(from->n_lines, sizeof(*lines));
	for (size_t i = 0; i < from->n_lines; i++) {
		int32_t function = from->lines[i]->function_index;
		if (!is_in(function, r->dictionary->n_function_table))
			return damaged("function index past its table");
		lines[i] = (struct profile_line){.function = functions[function],
						 .line = from->lines[i]->line,
						 .column = (uint32_t)from->lines[i]->column};
	}
	profile_set_lines(r->profile, location, lines, (uint32_t)from->n_lines);
	return NULL;
}

static struct error *read_locations(struct reader *r, const uint32_t *functions)
{
	for (size_t i = 1; i < r->dictionary->n_location_table; i++) {
		const otlp_location *from = r->dictionary->location_table[i];
		if (!is_in(from->mapping_index, r->dictionary->n_mapping_table))
			return damaged("mapping index past its table");
		uint32_t mapping =
			from->mapping_index ? (uint32_t)from->mapping_index - 1 : PROFILE_NONE;
		uint32_t location = profile_add_location(r->profile, mapping, from->address);
		struct error *err = read_lines(r, from, functions, location);
		for (size_t k = 0; !err && k < from->n_attribute_indices; k++) {
			const otlp_key_value *attribute;
			const char *key;
			err = get_attribute(r, from->attribute_indices[k], &attribute, &key);
			if (!err && !strcmp(key, "pprof.location.is_folded"))
				r->profile->locations.items[location].is_folded = true;
		}
		if (err)
			return err;
	}
	return NULL;
}

/* Locations count from 0 in a profile, from 1 behind the zero value in the table. */
static struct error *read_stacks(struct reader *r)
{
	r->stacks = mem_zalloc(r->dictionary->n_stack_table, sizeof(*r->stacks));
	for (size_t i = 0; i < r->dictionary->n_stack_table; i++) {
		const otlp_stack *from = r->dictionary->stack_table[i];
		r->path = mem_realloc(r->path, from->n_location_indices + 1, sizeof(*r->path));
		for (size_t k = 0; k < from->n_location_indices; k++) {
			int32_t location = from->location_indices[k];
			if (location == 0 || !is_in(location, r->dictionary->n_location_table))
				return damaged("location index past its table");
			r->path[k] = (uint32_t)location - 1;
		}
		r->stacks[i] =
			profile_stack(r->profile, r->path, (uint32_t)from->n_location_indices);
	}
	return NULL;
}

static struct error *read_label(struct reader *r, int32_t index, struct profile_label *out)
{
	const otlp_key_value *attribute;
	const char *key;
	struct error *err = get_attribute(r, index, &attribute, &key);
	if (err)
		return err;
	*out = (struct profile_label){.key = profile_string(r->profile, key)};
	if (ANY_IS(attribute->value, STRING_VALUE)) {
		out->str = profile_string(r->profile, attribute->value->string_value);
		return NULL;
	}
	if (!ANY_IS(attribute->value, INT_VALUE))
		return damaged("an attribute of a sample is neither text nor number");
	out->is_number = true;
	out->num = attribute->value->int_value;
	return get_string(r, attribute->unit_strindex, &out->unit);
}

static struct error *read_sample(struct reader *r, const otlp_sample *from, uint32_t column)
{
	if (!is_in(from->stack_index, r->dictionary->n_stack_table))
		return damaged("stack index past its table");
	if (from->n_values != 1)
		return damaged("a sample has not one value");
	if (from->n_attribute_indices > OTLP_READ_MAX_ATTRIBUTES)
		return error_new(ERROR_LIMIT, "OTLP request: a sample has %zu attributes",
				 from->n_attribute_indices);
	for (size_t i = 0; i < from->n_attribute_indices; i++) {
		struct error *err = read_label(r, from->attribute_indices[i], &r->labels[i]);
		if (err)
			return err;
	}
	uint32_t set =
		profile_label_set(r->profile, r->labels, (uint32_t)from->n_attribute_indices);
	uint32_t row = profile_add_row(r->profile, r->stacks[from->stack_index], set, column);
	profile_add_values(profile_values(r->profile, row), from->values, 1);
	return NULL;
}

static struct error *read_value_type(const struct reader *r, const otlp_value_type *from,
				     struct profile_value_type *out)
{
	if (!from)
		return damaged("a profile has no type");
	struct error *err = get_string(r, from->type_strindex, &out->type);
	return err ? err : get_string(r, from->unit_strindex, &out->unit);
}

/* What only pprof knows, from attributes of the Profile. */
static struct error *read_profile_attributes(struct reader *r, const otlp_profile *from)
{
	struct profile *profile = r->profile;
	const struct {
		uint32_t *string;
		const char *key;
	} texts[] = {
		{&profile->drop_frames, "pprof.profile.drop_frames"},
		{&profile->keep_frames, "pprof.profile.keep_frames"},
		{&profile->doc_url, "pprof.profile.doc_url"},
	};
	for (size_t i = 0; i < from->n_attribute_indices; i++) {
		const otlp_key_value *attribute;
		const char *key;
		struct error *err = get_attribute(r, from->attribute_indices[i], &attribute, &key);
		if (err)
			return err;
		for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
			if (!strcmp(key, texts[k].key) && ANY_IS(attribute->value, STRING_VALUE))
				*texts[k].string =
					profile_string(profile, attribute->value->string_value);
		}
		if (strcmp(key, "pprof.profile.comment") != 0 ||
		    !ANY_IS(attribute->value, ARRAY_VALUE))
			continue;
		for (size_t k = 0; k < attribute->value->array_value->n_values; k++) {
			const otlp_any *text = attribute->value->array_value->values[k];
			if (ANY_IS(text, STRING_VALUE))
				profile_add_comment(profile, text->string_value);
		}
	}
	return NULL;
}

static struct error *read_profile(struct reader *r, const otlp_profile *from, uint32_t column)
{
	struct profile_value_type type;
	struct error *err = read_value_type(r, from->sample_type, &type);
	if (err)
		return err;
	profile_add_sample_type(r->profile, profile_text(r->profile, type.type),
				profile_text(r->profile, type.unit));
	if (!column) {
		err = read_value_type(r, from->period_type, &r->profile->period_type);
		if (!err)
			err = read_profile_attributes(r, from);
		r->profile->period = from->period;
		r->profile->time_nanos = (int64_t)from->time_unix_nano;
		r->profile->duration_nanos = (int64_t)from->duration_nano;
	}
	for (size_t i = 0; !err && i < from->n_samples; i++)
		err = read_sample(r, from->samples[i], column);
	return err;
}

static void read_scope(struct reader *r, const otlp_scope_profiles *from)
{
	r->out->scope_name = "";
	if (!from->scope)
		return;
	r->out->scope_name =
		arena_copy_string(&r->out->arena, from->scope->name, strlen(from->scope->name));
	for (size_t i = 0; i < from->scope->n_attributes; i++) {
		const Opentelemetry__Proto__Common__V1__KeyValue *attribute =
			from->scope->attributes[i];
		if (!strcmp(attribute->key, "pprof.scope.default_sample_type") &&
		    ANY_IS(attribute->value, STRING_VALUE))
			r->profile->default_sample_type =
				profile_string(r->profile, attribute->value->string_value);
	}
}

static void read_resource(struct reader *r,
			  const Opentelemetry__Proto__Resource__V1__Resource *from)
{
	struct otlp_reading *out = r->out;
	size_t n = from ? from->n_attributes : 0;
	out->resource = arena_alloc(&out->arena, (n + 1) * sizeof(*out->resource));
	for (size_t i = 0; i < n; i++) {
		const char *key = from->attributes[i]->key;
		const otlp_any *value = from->attributes[i]->value;
		if (!ANY_IS(value, STRING_VALUE))
			continue;
		out->resource[out->n_resource++] =
			(struct otlp_attribute){arena_copy_string(&out->arena, key, strlen(key)),
						arena_copy_string(&out->arena, value->string_value,
								  strlen(value->string_value))};
	}
}

static struct error *read_dictionary(struct reader *r)
{
	CLEANUP(cleanup_mem)
	uint32_t *functions = mem_zalloc(r->dictionary->n_function_table, sizeof(*functions));
	struct error *err = read_mappings(r);
	if (!err)
		err = read_functions(r, functions);
	if (!err)
		err = read_locations(r, functions);
	return err ? err : read_stacks(r);
}

static struct error *read_request(struct reader *r, const otlp_request *request)
{
	if (request->n_resource_profiles != 1 ||
	    request->resource_profiles[0]->n_scope_profiles != 1 || !request->dictionary)
		return damaged("not one resource, one scope and a dictionary");
	const otlp_scope_profiles *scope = request->resource_profiles[0]->scope_profiles[0];
	if (scope->n_profiles > OTLP_READ_MAX_PROFILES)
		return error_new(ERROR_LIMIT, "OTLP request: %zu profiles are more than %d",
				 scope->n_profiles, OTLP_READ_MAX_PROFILES);
	r->dictionary = request->dictionary;
	read_resource(r, request->resource_profiles[0]->resource);
	read_scope(r, scope);
	struct error *err = read_dictionary(r);
	for (size_t i = 0; !err && i < scope->n_profiles; i++)
		err = read_profile(r, scope->profiles[i], (uint32_t)i);
	return err;
}

struct error *otlp_read(const void *bytes, size_t n, struct otlp_reading *out)
{
	*out = (struct otlp_reading){0};
	arena_init(&out->arena, 0);
	otlp_request *request =
		opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
			NULL, n, bytes);
	if (!request)
		return damaged("it does not parse");
	struct reader r = {.out = out, .profile = profile_new()};
	r.labels = mem_zalloc(OTLP_READ_MAX_ATTRIBUTES, sizeof(*r.labels));
	profile_set_row_width(r.profile, 1);
	struct error *err = read_request(&r, request);
	opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
		request, NULL);
	mem_free(r.labels);
	mem_free(r.stacks);
	mem_free(r.path);
	if (!err && r.profile->sample_types.n && r.profile->sample_types.n <= JOINED_COLUMNS_MAX)
		profile_join_rows(r.profile);
	out->profile = r.profile;
	return err;
}

void otlp_reading_fini(struct otlp_reading *reading)
{
	profile_free(reading->profile);
	arena_fini(&reading->arena);
	*reading = (struct otlp_reading){0};
}
