/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pprof reader. The message is walked five times, because a file may have its parts in any
 * order and each part refers to others: counts, strings, scalars with mappings and functions,
 * locations, samples. A walk only jumps over what is not its own.
 *
 * Top-level fields nest two levels deep at most, each level has its own loop, so nothing recurses.
 */
#include "proto/pprof_read.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/mem.h"
#include "proto/foreign_profile.h"
#include "proto/gunzip.h"
#include "proto/id_map.h"
#include "proto/pprof_field.h"
#include "proto/protobuf_wire.h"

enum {
	MAX_STACK_DEPTH = 1 << 19,
	MAX_STRING_BYTES = 4 << 20,
	MAX_LABELS = 4096, /* of one sample */
	MAX_LINES = 65536, /* of one location */
	MAX_SAMPLE_TYPES = 1 << 16,
	MEMORY_RATIO = 4,
	MEMORY_FREE_BYTES = 48 << 20,
	MEMORY_CHECK_INTERVAL = 4096, /* elements: strings, messages, frames */
	BYTES_PER_ELEMENT = 64,
};

/* One field of a message. */
struct field {
	uint64_t number;
	uint64_t value;	   /* varints */
	struct cursor sub; /* length-delimited */
	uint64_t position;
	enum protobuf_wire_type type;
};

struct numbers {
	uint64_t *items;
	uint32_t n;
	uint32_t capacity;
};

struct reader {
	struct profile *profile;
	const uint8_t *bytes;
	size_t size;
	uint64_t max_memory_bytes;
	struct pprof_read_counts counts;
	uint32_t *strings; /* the file's index → the profile's */
	struct id_map mappings;
	struct id_map functions;
	struct id_map locations;
	/* Scratch of the message at hand. */
	struct numbers location_ids;
	struct numbers values;
	struct profile_label *labels;
	struct profile_line *lines;
	uint32_t n_labels, labels_capacity;
	uint32_t n_lines, lines_capacity;
	uint32_t *stack;
	uint32_t stack_capacity;
	bool has_time;
	uint64_t n_unchecked;
};

static struct error *damaged(uint64_t position, const char *what) MUST_USE;
static struct error *damaged(uint64_t position, const char *what)
{
	return error_number(error_new(ERROR_BAD_DATA, "damaged pprof: %s at byte %llu", what,
				      (unsigned long long)position),
			    611);
}

static struct error *over_limit(uint64_t position, const char *what) MUST_USE;
static struct error *over_limit(uint64_t position, const char *what)
{
	return error_number(error_new(ERROR_LIMIT, "pprof: %s at byte %llu", what,
				      (unsigned long long)position),
			    611);
}

/* The next field of a message, whole; the cursor must not be at its end. */
static inline struct error *next_field(struct cursor *c, struct field *out)
{
	out->position = cursor_position(c);
	uint64_t tag = protobuf_wire_get(c);
	out->number = tag >> 3;
	out->type = (enum protobuf_wire_type)(tag & 7);
	if (out->type == PROTOBUF_WIRE_VARINT) {
		out->value = protobuf_wire_get(c);
	} else if (out->type == PROTOBUF_WIRE_BYTES) {
		uint64_t n = protobuf_wire_get(c);
		if (n > cursor_left(c))
			return damaged(out->position, "field runs past its message");
		out->sub = cursor_sub(c, (size_t)n);
	} else if (out->type == PROTOBUF_WIRE_FIXED64) {
		cursor_skip(c, 8);
	} else if (out->type == PROTOBUF_WIRE_FIXED32) {
		cursor_skip(c, 4);
	} else {
		return damaged(out->position, "group or unknown wire type");
	}
	if (UNLIKELY(!cursor_is_ok(c)))
		return damaged(out->position, "field cut short");
	if (UNLIKELY(!out->number || out->number > UINT32_MAX >> 3))
		return damaged(out->position, "field number out of range");
	return NULL;
}

static struct error *expect_type(const struct field *field, enum protobuf_wire_type type)
{
	if (LIKELY(field->type == type))
		return NULL;
	return damaged(field->position, "known field with the wrong wire type");
}

/* A varint field. */
static struct error *get_number(const struct field *field, uint64_t *out)
{
	struct error *err = expect_type(field, PROTOBUF_WIRE_VARINT);
	if (!err)
		*out = field->value;
	return err;
}

/* A varint field that is an index into the string table. */
static struct error *get_string(const struct reader *r, const struct field *field, uint32_t *out)
{
	struct error *err = expect_type(field, PROTOBUF_WIRE_VARINT);
	if (err)
		return err;
	if (field->value >= r->counts.strings)
		return damaged(field->position, "string index past the string table");
	*out = r->strings[field->value];
	return NULL;
}

static struct error *get_bool(const struct field *field, bool *out)
{
	struct error *err = expect_type(field, PROTOBUF_WIRE_VARINT);
	if (!err)
		*out = field->value != 0;
	return err;
}

static void *grown(void *items, uint32_t *capacity, size_t element_bytes)
{
	*capacity = *capacity ? *capacity * 2 : 16;
	return mem_realloc(items, *capacity, element_bytes);
}

static struct error *add_number(struct numbers *numbers, uint64_t value, uint32_t max,
				uint64_t position)
{
	if (numbers->n == max)
		return over_limit(position, "sample with too many elements");
	if (numbers->n == numbers->capacity)
		numbers->items = grown(numbers->items, &numbers->capacity, sizeof(*numbers->items));
	numbers->items[numbers->n++] = value;
	return NULL;
}

/* A repeated number, packed or not. */
static struct error *get_numbers(const struct field *field, struct numbers *numbers, uint32_t max)
{
	if (field->type == PROTOBUF_WIRE_VARINT)
		return add_number(numbers, field->value, max, field->position);
	struct error *err = expect_type(field, PROTOBUF_WIRE_BYTES);
	if (err)
		return err;
	struct cursor c = field->sub;
	while (cursor_left(&c)) {
		uint64_t value = protobuf_wire_get(&c);
		if (!cursor_is_ok(&c))
			return damaged(field->position, "packed numbers cut short");
		err = add_number(numbers, value, max, field->position);
		if (err)
			return err;
	}
	return NULL;
}

/* Once in a while: is what we hold still in proportion to the file? */
static struct error *check_memory(struct reader *r, uint64_t n_elements, uint64_t position)
{
	r->n_unchecked += n_elements;
	if (LIKELY(r->n_unchecked < MEMORY_CHECK_INTERVAL))
		return NULL;
	r->n_unchecked = 0;
	if (profile_memory_bytes(r->profile) <= r->max_memory_bytes)
		return NULL;
	return over_limit(position, "content out of proportion to its size");
}

typedef struct error *(*field_fn)(struct reader *r, const struct field *field);

static struct error *walk(struct reader *r, field_fn visit)
{
	struct cursor c = cursor_make(r->bytes, r->size, false);
	while (cursor_left(&c)) {
		struct field field;
		struct error *err = next_field(&c, &field);
		if (!err)
			err = visit(r, &field);
		if (err)
			return err;
	}
	return NULL;
}

/* First walk: how much there is of what. */

static struct error *count_field(struct reader *r, const struct field *field)
{
	static const uint8_t counted[] = {
		[PPROF_PROFILE_SAMPLE] = 1,	  [PPROF_PROFILE_MAPPING] = 1,
		[PPROF_PROFILE_LOCATION] = 1,	  [PPROF_PROFILE_FUNCTION] = 1,
		[PPROF_PROFILE_STRING_TABLE] = 1,
	};
	if (field->number >= sizeof(counted) || !counted[field->number])
		return NULL;
	struct error *err = expect_type(field, PROTOBUF_WIRE_BYTES);
	if (err)
		return err;
	r->counts.samples += field->number == PPROF_PROFILE_SAMPLE;
	r->counts.mappings += field->number == PPROF_PROFILE_MAPPING;
	r->counts.locations += field->number == PPROF_PROFILE_LOCATION;
	r->counts.functions += field->number == PPROF_PROFILE_FUNCTION;
	if (field->number == PPROF_PROFILE_STRING_TABLE && !r->counts.strings++ &&
	    cursor_left(&field->sub))
		return error_number(error_new(ERROR_BAD_DATA, "not a pprof profile: "
							      "string 0 is not empty"),
				    610);
	return NULL;
}

/* Second walk: strings. */

static struct error *read_string(struct reader *r, const struct field *field)
{
	if (field->number != PPROF_PROFILE_STRING_TABLE)
		return NULL;
	size_t size = cursor_left(&field->sub);
	if (size > MAX_STRING_BYTES)
		return over_limit(field->position, "string too long");
	r->strings[r->counts.strings++] =
		profile_string_n(r->profile, (const char *)field->sub.next, size);
	return check_memory(r, 1 + size / BYTES_PER_ELEMENT, field->position);
}

/* Third walk: scalars, mappings and functions. */

static struct error *read_value_type(const struct reader *r, const struct field *message,
				     struct profile_value_type *out)
{
	struct error *err = expect_type(message, PROTOBUF_WIRE_BYTES);
	struct cursor c = message->sub;
	*out = (struct profile_value_type){0};
	while (!err && cursor_left(&c)) {
		struct field field;
		err = next_field(&c, &field);
		if (!err && field.number == PPROF_VALUE_TYPE_TYPE)
			err = get_string(r, &field, &out->type);
		else if (!err && field.number == PPROF_VALUE_TYPE_UNIT)
			err = get_string(r, &field, &out->unit);
	}
	return err;
}

static struct error *read_sample_type(struct reader *r, const struct field *message)
{
	struct profile_value_type type;
	struct error *err = read_value_type(r, message, &type);
	if (err)
		return err;
	if (r->profile->sample_types.n == MAX_SAMPLE_TYPES)
		return over_limit(message->position, "too many sample types");
	profile_add_sample_type(r->profile, profile_text(r->profile, type.type),
				profile_text(r->profile, type.unit));
	return NULL;
}

static struct error *read_mapping_field(const struct reader *r, const struct field *field,
					uint64_t *id, void *out)
{
	struct profile_mapping *mapping = out;
	switch (field->number) {
	case PPROF_MAPPING_ID:
		return get_number(field, id);
	case PPROF_MAPPING_MEMORY_START:
		return get_number(field, &mapping->memory_start);
	case PPROF_MAPPING_MEMORY_LIMIT:
		return get_number(field, &mapping->memory_limit);
	case PPROF_MAPPING_FILE_OFFSET:
		return get_number(field, &mapping->file_offset);
	case PPROF_MAPPING_FILENAME:
		return get_string(r, field, &mapping->filename);
	case PPROF_MAPPING_BUILD_ID:
		return get_string(r, field, &mapping->build_id);
	case PPROF_MAPPING_HAS_FUNCTIONS:
		return get_bool(field, &mapping->has_functions);
	case PPROF_MAPPING_HAS_FILENAMES:
		return get_bool(field, &mapping->has_filenames);
	case PPROF_MAPPING_HAS_LINE_NUMBERS:
		return get_bool(field, &mapping->has_line_numbers);
	case PPROF_MAPPING_HAS_INLINE_FRAMES:
		return get_bool(field, &mapping->has_inline_frames);
	default:
		return NULL;
	}
}

/* Every field of a message, each with what the caller makes of it. */
typedef struct error *(*read_field_fn)(const struct reader *r, const struct field *field,
				       uint64_t *id, void *out);

static struct error *read_fields(const struct reader *r, const struct field *message,
				 read_field_fn read, uint64_t *id, void *out)
{
	struct cursor c = message->sub;
	struct error *err = NULL;
	while (!err && cursor_left(&c)) {
		struct field field;
		err = next_field(&c, &field);
		if (!err)
			err = read(r, &field, id, out);
	}
	return err;
}

static struct error *read_mapping(struct reader *r, const struct field *message)
{
	struct profile_mapping mapping = {0};
	uint64_t id = 0;
	struct error *err = read_fields(r, message, read_mapping_field, &id, &mapping);
	if (err)
		return err;
	if (!id)
		return damaged(message->position, "mapping with id 0");
	if (!id_map_add(&r->mappings, id, profile_add_mapping(r->profile, &mapping)))
		return damaged(message->position, "second mapping with the same id");
	return check_memory(r, 1, message->position);
}

static struct error *read_function_field(const struct reader *r, const struct field *field,
					 uint64_t *id, void *out)
{
	struct profile_function *function = out;
	uint64_t number = 0;
	struct error *err = NULL;
	switch (field->number) {
	case PPROF_FUNCTION_ID:
		return get_number(field, id);
	case PPROF_FUNCTION_NAME:
		return get_string(r, field, &function->name);
	case PPROF_FUNCTION_SYSTEM_NAME:
		return get_string(r, field, &function->system_name);
	case PPROF_FUNCTION_FILENAME:
		return get_string(r, field, &function->filename);
	case PPROF_FUNCTION_START_LINE:
		err = get_number(field, &number);
		function->start_line = (int64_t)number;
		return err;
	default:
		return NULL;
	}
}

static struct error *read_function(struct reader *r, const struct field *message)
{
	struct profile_function function = {0};
	uint64_t id = 0;
	struct error *err = read_fields(r, message, read_function_field, &id, &function);
	if (err)
		return err;
	if (!id)
		return damaged(message->position, "function with id 0");
	if (!id_map_add(&r->functions, id, profile_function(r->profile, &function)))
		return damaged(message->position, "second function with the same id");
	return check_memory(r, 1, message->position);
}

static struct error *read_comments(struct reader *r, const struct field *field)
{
	struct numbers comments = {0};
	struct error *err = get_numbers(field, &comments, MAX_STACK_DEPTH);
	for (uint32_t i = 0; i < comments.n && !err; i++) {
		if (comments.items[i] >= r->counts.strings)
			err = damaged(field->position, "string index past the string table");
		else
			profile_add_comment(
				r->profile,
				profile_text(r->profile, r->strings[comments.items[i]]));
	}
	mem_free(comments.items);
	return err ? err : check_memory(r, comments.n, field->position);
}

static struct error *read_time(struct reader *r, const struct field *field)
{
	/* Two profiles one behind the other make one valid message, but not one profile. */
	if (r->has_time && r->profile->time_nanos)
		return damaged(field->position, "two profiles in one file: a second time");
	r->has_time = true;
	uint64_t number = 0;
	struct error *err = get_number(field, &number);
	r->profile->time_nanos = (int64_t)number;
	return err;
}

static struct error *read_top(struct reader *r, const struct field *field)
{
	struct profile *profile = r->profile;
	uint64_t number = 0;
	struct error *err = NULL;
	switch (field->number) {
	case PPROF_PROFILE_SAMPLE_TYPE:
		return read_sample_type(r, field);
	case PPROF_PROFILE_MAPPING:
		return read_mapping(r, field);
	case PPROF_PROFILE_FUNCTION:
		return read_function(r, field);
	case PPROF_PROFILE_DROP_FRAMES:
		return get_string(r, field, &profile->drop_frames);
	case PPROF_PROFILE_KEEP_FRAMES:
		return get_string(r, field, &profile->keep_frames);
	case PPROF_PROFILE_TIME_NANOS:
		return read_time(r, field);
	case PPROF_PROFILE_DURATION_NANOS:
		err = get_number(field, &number);
		profile->duration_nanos = (int64_t)number;
		return err;
	case PPROF_PROFILE_PERIOD_TYPE:
		return read_value_type(r, field, &profile->period_type);
	case PPROF_PROFILE_PERIOD:
		err = get_number(field, &number);
		profile->period = (int64_t)number;
		return err;
	case PPROF_PROFILE_COMMENT:
		return read_comments(r, field);
	case PPROF_PROFILE_DEFAULT_SAMPLE_TYPE:
		return get_string(r, field, &profile->default_sample_type);
	case PPROF_PROFILE_DOC_URL:
		return get_string(r, field, &profile->doc_url);
	default:
		return NULL;
	}
}

/* Fourth walk: locations. */

static struct error *read_line(struct reader *r, const struct field *message)
{
	struct error *err = expect_type(message, PROTOBUF_WIRE_BYTES);
	uint64_t function_id = 0;
	uint64_t line = 0;
	uint64_t column = 0;
	struct cursor c = message->sub;
	while (!err && cursor_left(&c)) {
		struct field field;
		err = next_field(&c, &field);
		if (!err && field.number == PPROF_LINE_FUNCTION_ID)
			err = get_number(&field, &function_id);
		else if (!err && field.number == PPROF_LINE_LINE)
			err = get_number(&field, &line);
		else if (!err && field.number == PPROF_LINE_COLUMN)
			err = get_number(&field, &column);
	}
	if (err)
		return err;
	uint32_t function;
	if (!function_id || !id_map_find(&r->functions, function_id, &function))
		return damaged(message->position, "line of no known function");
	if (r->n_lines == MAX_LINES)
		return over_limit(message->position, "location with too many lines");
	if (r->n_lines == r->lines_capacity)
		r->lines = grown(r->lines, &r->lines_capacity, sizeof(*r->lines));
	r->lines[r->n_lines++] = (struct profile_line){
		.function = function,
		.line = (int64_t)line,
		.column = column <= UINT32_MAX ? (uint32_t)column : 0,
	};
	return NULL;
}

static struct error *read_location_field(struct reader *r, const struct field *field,
					 uint64_t ids[2], struct profile_location *location)
{
	switch (field->number) {
	case PPROF_LOCATION_ID:
		return get_number(field, &ids[0]);
	case PPROF_LOCATION_MAPPING_ID:
		return get_number(field, &ids[1]);
	case PPROF_LOCATION_ADDRESS:
		return get_number(field, &location->address);
	case PPROF_LOCATION_LINE:
		return read_line(r, field);
	case PPROF_LOCATION_IS_FOLDED:
		return get_bool(field, &location->is_folded);
	default:
		return NULL;
	}
}

static struct error *read_location(struct reader *r, const struct field *message)
{
	if (message->number != PPROF_PROFILE_LOCATION)
		return NULL;
	struct profile_location location = {0};
	uint64_t ids[2] = {0, 0}; /* own, mapping */
	r->n_lines = 0;
	struct cursor c = message->sub;
	while (cursor_left(&c)) {
		struct field field;
		struct error *err = next_field(&c, &field);
		if (!err)
			err = read_location_field(r, &field, ids, &location);
		if (err)
			return err;
	}
	if (!ids[0])
		return damaged(message->position, "location with id 0");
	uint32_t mapping = PROFILE_NONE;
	if (ids[1] && !id_map_find(&r->mappings, ids[1], &mapping))
		mapping = PROFILE_NONE; /* pprof takes a dangling one for none */
	uint32_t index = profile_add_location(r->profile, mapping, location.address);
	r->profile->locations.items[index].is_folded = location.is_folded;
	profile_set_lines(r->profile, index, r->lines, r->n_lines);
	if (!id_map_add(&r->locations, ids[0], index))
		return damaged(message->position, "second location with the same id");
	return check_memory(r, 1 + (uint64_t)r->n_lines, message->position);
}

/* Fifth walk: samples. */

static struct error *read_label_fields(const struct reader *r, const struct field *message,
				       struct profile_label *label)
{
	struct error *err = expect_type(message, PROTOBUF_WIRE_BYTES);
	struct cursor c = message->sub;
	while (!err && cursor_left(&c)) {
		struct field field;
		uint64_t number = 0;
		err = next_field(&c, &field);
		if (err)
			break;
		switch (field.number) {
		case PPROF_LABEL_KEY:
			err = get_string(r, &field, &label->key);
			break;
		case PPROF_LABEL_STR:
			err = get_string(r, &field, &label->str);
			break;
		case PPROF_LABEL_NUM:
			err = get_number(&field, &number);
			label->num = (int64_t)number;
			break;
		case PPROF_LABEL_NUM_UNIT:
			err = get_string(r, &field, &label->unit);
			break;
		default:
			break;
		}
	}
	return err;
}

static struct error *read_label(struct reader *r, const struct field *message)
{
	struct profile_label label = {0};
	struct error *err = read_label_fields(r, message, &label);
	if (err)
		return err;
	/* As pprof reads them: text wins over number, what says nothing vanishes. */
	label.is_number = !label.str;
	if (label.is_number && !label.num && !label.unit)
		return NULL;
	if (!label.is_number)
		label.num = label.unit = 0;
	if (r->n_labels == MAX_LABELS)
		return over_limit(message->position, "sample with too many labels");
	if (r->n_labels == r->labels_capacity)
		r->labels = grown(r->labels, &r->labels_capacity, sizeof(*r->labels));
	r->labels[r->n_labels++] = label;
	return NULL;
}

/* The file's ids, leaf first, to a stack. */
static struct error *make_stack(struct reader *r, uint64_t position, uint32_t *out)
{
	uint32_t n = r->location_ids.n;
	if (n > r->stack_capacity) {
		r->stack_capacity = r->location_ids.capacity;
		r->stack = mem_realloc(r->stack, r->stack_capacity, sizeof(*r->stack));
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!id_map_find(&r->locations, r->location_ids.items[i], &r->stack[i]))
			return damaged(position, "sample at no known location");
	}
	*out = profile_stack(r->profile, r->stack, n);
	return NULL;
}

static struct error *read_sample_field(struct reader *r, const struct field *field)
{
	switch (field->number) {
	case PPROF_SAMPLE_LOCATION_ID:
		return get_numbers(field, &r->location_ids, MAX_STACK_DEPTH);
	case PPROF_SAMPLE_VALUE:
		return get_numbers(field, &r->values, MAX_SAMPLE_TYPES + 1);
	case PPROF_SAMPLE_LABEL:
		r->counts.labels++;
		return read_label(r, field);
	default:
		return NULL;
	}
}

static struct error *read_sample(struct reader *r, const struct field *message)
{
	if (message->number != PPROF_PROFILE_SAMPLE)
		return NULL;
	r->location_ids.n = r->values.n = r->n_labels = 0;
	struct cursor c = message->sub;
	while (cursor_left(&c)) {
		struct field field;
		struct error *err = next_field(&c, &field);
		if (!err)
			err = read_sample_field(r, &field);
		if (err)
			return err;
	}
	if (!r->profile->sample_types.n)
		return damaged(message->position, "sample in a profile without sample types");
	if (r->values.n != r->profile->sample_types.n)
		return damaged(message->position,
			       "sample with more or fewer values than sample types");
	uint32_t stack = 0;
	struct error *err = make_stack(r, message->position, &stack);
	if (err)
		return err;
	r->counts.location_refs += r->location_ids.n;
	uint32_t labels = r->n_labels ? profile_label_set(r->profile, r->labels, r->n_labels) : 0;
	/* int64 on the wire is its two's complement. */
	(void)profile_add_sample(r->profile, stack, labels, (const int64_t *)r->values.items);
	return check_memory(r, 1 + (uint64_t)r->location_ids.n + r->values.n + r->n_labels,
			    message->position);
}

static struct error *read_message(struct reader *r)
{
	struct error *err = walk(r, count_field);
	if (err)
		return err;
	if (!r->counts.strings)
		return error_number(error_new(ERROR_BAD_DATA, "not a pprof profile: no strings"),
				    610);
	if (r->counts.strings > UINT32_MAX || r->counts.mappings > UINT32_MAX / 4 ||
	    r->counts.functions > UINT32_MAX / 4 || r->counts.locations > UINT32_MAX / 4)
		return over_limit(0, "too many elements");
	r->strings = mem_alloc(r->counts.strings * sizeof(*r->strings));
	uint64_t own_bytes = r->counts.strings * sizeof(*r->strings) +
			     (r->counts.mappings + r->counts.functions + r->counts.locations) * 2 *
				     sizeof(uint32_t);
	r->max_memory_bytes -= own_bytes < r->max_memory_bytes ? own_bytes : r->max_memory_bytes;
	r->counts.strings = 0;
	id_map_init(&r->mappings, (uint32_t)r->counts.mappings);
	id_map_init(&r->functions, (uint32_t)r->counts.functions);
	id_map_init(&r->locations, (uint32_t)r->counts.locations);
	err = walk(r, read_string);
	if (!err)
		err = walk(r, read_top);
	if (!err)
		err = walk(r, read_location);
	if (!err)
		err = walk(r, read_sample);
	return err;
}

static void reader_fini(struct reader *r)
{
	profile_free(r->profile);
	mem_free(r->strings);
	id_map_fini(&r->mappings);
	id_map_fini(&r->functions);
	id_map_fini(&r->locations);
	mem_free(r->location_ids.items);
	mem_free(r->values.items);
	mem_free(r->labels);
	mem_free(r->lines);
	mem_free(r->stack);
}

/* Text that happens to begin like a message breaks its format soon: say what it is instead. */
static struct error *name_foreign(struct error *err, const void *bytes, size_t size)
{
	const char *name =
		error_get_code(err) == ERROR_BAD_DATA ? foreign_profile_name(bytes, size) : NULL;
	if (!name)
		return err;
	error_free(err);
	return error_number(error_new(ERROR_BAD_DATA, "not a pprof profile: this is %s", name),
			    610);
}

static struct error *unpack(const void *bytes, size_t size, struct buf *out, const uint8_t **p,
			    size_t *n)
{
	*p = bytes;
	*n = size;
	if (!gunzip_is_gzip(bytes, size)) {
		return size <= out->max_bytes
			       ? NULL
			       : over_limit(out->max_bytes, "file over the size limit");
	}
	struct error *err = gunzip_all(bytes, size, out);
	if (err)
		return err;
	*p = out->data;
	*n = out->size;
	return NULL;
}

struct error *pprof_read(const void *bytes, size_t size, const struct pprof_read_options *options,
			 struct profile **out, struct pprof_read_counts *counts_out)
{
	if (!size)
		return error_number(error_new(ERROR_BAD_DATA, "empty file"), 604);
	CLEANUP(buf_fini) struct buf unpacked;
	buf_init(&unpacked,
		 options && options->max_bytes ? options->max_bytes : PPROF_READ_MAX_BYTES);
	CLEANUP(reader_fini) struct reader r = {0};
	struct error *err = unpack(bytes, size, &unpacked, &r.bytes, &r.size);
	if (err)
		return err;
	if (!r.size)
		return error_number(error_new(ERROR_BAD_DATA, "empty file inside gzip"), 604);
	r.counts.bytes = r.size;
	r.max_memory_bytes = MEMORY_RATIO * (uint64_t)r.size + MEMORY_FREE_BYTES;
	/* The unpacked message is memory too, a mapped file is not. */
	if (unpacked.size)
		r.max_memory_bytes -= r.size;
	r.profile = profile_new();
	err = read_message(&r);
	if (err)
		return name_foreign(err, r.bytes, r.size);
	if (counts_out)
		*counts_out = r.counts;
	*out = TAKE(r.profile);
	return NULL;
}
