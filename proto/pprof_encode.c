/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pprof writer. Small messages are built in a block on the stack and prefixed with its size;
 * long stacks, and locations, are walked twice: once to count, once to write.
 */
#include "proto/pprof_encode.h"

#include <libdeflate.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "proto/pprof_field.h"
#include "proto/protobuf_wire.h"

enum {
	STAGING_BYTES = 64 * 1024,
	/* Every field number here is below 16, so a tag is one byte. */
	FIELD_MAX = 1 + PROTOBUF_WIRE_VARINT_MAX,
	SMALL_MESSAGE_MAX = 10 * FIELD_MAX, /* Mapping has most fields */
	LABEL_MAX = 3 * FIELD_MAX,
	SHORT_STACK_MAX = 1024, /* bytes of ids */
	/* A member of gzip's; most profiles fit into one. */
	GZIP_MEMBER_BYTES = 4 << 20,
};

struct writer {
	uint8_t *next;
	uint8_t *staging;
	const uint8_t *end;	   /* of staging */
	pprof_encode_sink_fn sink; /* NULL: only count */
	void *context;
	uint64_t n_bytes; /* flushed */
	struct error *err;
	/* The fields of the label set that was written last: samples of one come in runs. */
	uint32_t label_set; /* PROFILE_NONE = none yet */
	uint32_t labels_capacity;
	uint8_t *labels;
	size_t labels_bytes;
};

static void flush(struct writer *w)
{
	size_t n = (size_t)(w->next - w->staging);
	w->next = w->staging;
	w->n_bytes += n;
	if (n && w->sink && !w->err)
		w->err = w->sink(w->context, w->staging, n);
}

static inline void make_room(struct writer *w, size_t n)
{
	if (UNLIKELY((size_t)(w->end - w->next) < n))
		flush(w);
}

static void put_bytes(struct writer *w, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	while (n) {
		make_room(w, 1);
		size_t room = (size_t)(w->end - w->next);
		size_t part = n < room ? n : room;
		memcpy(w->next, p, part);
		w->next += part;
		p += part;
		n -= part;
	}
}

static inline uint8_t *put_tag(uint8_t *p, unsigned field, enum protobuf_wire_type type)
{
	*p = (uint8_t)(field << 3 | type);
	return p + 1;
}

/* A varint field; 0 is the default and is left out. */
static inline uint8_t *put_field(uint8_t *p, unsigned field, uint64_t value)
{
	if (!value)
		return p;
	return protobuf_wire_put(put_tag(p, field, PROTOBUF_WIRE_VARINT), value);
}

static inline size_t field_bytes(uint64_t value)
{
	return value ? 1 + protobuf_wire_varint_bytes(value) : 0;
}

static inline size_t message_bytes(size_t body)
{
	return 1 + protobuf_wire_varint_bytes(body) + body;
}

/* Tag and length of a length-delimited field whose body follows. */
static void put_header(struct writer *w, unsigned field, size_t body)
{
	make_room(w, FIELD_MAX);
	w->next = protobuf_wire_put(put_tag(w->next, field, PROTOBUF_WIRE_BYTES), body);
}

/* A message built in a block on the stack. */
static void put_message(struct writer *w, unsigned field, const uint8_t *body, const uint8_t *end)
{
	put_header(w, field, (size_t)(end - body));
	put_bytes(w, body, (size_t)(end - body));
}

static void put_scalar(struct writer *w, unsigned field, uint64_t value)
{
	make_room(w, FIELD_MAX);
	w->next = put_field(w->next, field, value);
}

static void put_value_type(struct writer *w, unsigned field, const struct profile_value_type *type)
{
	uint8_t body[SMALL_MESSAGE_MAX];
	uint8_t *p = put_field(body, PPROF_VALUE_TYPE_TYPE, type->type);
	p = put_field(p, PPROF_VALUE_TYPE_UNIT, type->unit);
	put_message(w, field, body, p);
}

/* Readers drop a label that says nothing, so it is not written. */
static uint8_t *put_label(uint8_t *p, const struct profile_label *label)
{
	uint8_t body[LABEL_MAX];
	if (!label->is_number && !label->str)
		return p;
	uint8_t *end = put_field(body, PPROF_LABEL_KEY, label->key);
	if (label->is_number) {
		end = put_field(end, PPROF_LABEL_NUM, (uint64_t)label->num);
		end = put_field(end, PPROF_LABEL_NUM_UNIT, label->unit);
	} else {
		end = put_field(end, PPROF_LABEL_STR, label->str);
	}
	size_t n = (size_t)(end - body);
	p = protobuf_wire_put(put_tag(p, PPROF_SAMPLE_LABEL, PROTOBUF_WIRE_BYTES), n);
	memcpy(p, body, n);
	return p + n;
}

static void prepare_labels(struct writer *w, const struct profile *profile, uint32_t label_set)
{
	struct profile_label_set set = profile->label_sets.items[label_set];
	if (w->label_set == label_set)
		return;
	if (w->labels_capacity < set.n) {
		w->labels_capacity = set.n;
		w->labels = mem_realloc(w->labels, set.n, FIELD_MAX + LABEL_MAX);
	}
	uint8_t *p = w->labels;
	for (uint32_t i = 0; i < set.n; i++) {
		const struct profile_label label = profile_label_at(profile, set.first + i);
		p = put_label(p, &label);
	}
	w->labels_bytes = (size_t)(p - w->labels);
	w->label_set = label_set;
}

/* Varints of a stack's location ids, leaf first. */
static size_t stack_bytes(const struct profile_stack_node *nodes, uint32_t stack)
{
	size_t total = 0;
	for (uint32_t node = stack; node; node = nodes[node].parent)
		total += protobuf_wire_varint_bytes((uint64_t)nodes[node].location + 1);
	return total;
}

static void put_long_stack(struct writer *w, const struct profile_stack_node *nodes, uint32_t stack)
{
	for (uint32_t node = stack; node; node = nodes[node].parent) {
		make_room(w, PROTOBUF_WIRE_VARINT_MAX);
		w->next = protobuf_wire_put(w->next, (uint64_t)nodes[node].location + 1);
	}
}

/* The same into ids, while there is room for one more; NULL when it ran out. */
static uint8_t *put_short_stack(uint8_t ids[SHORT_STACK_MAX],
				const struct profile_stack_node *nodes, uint32_t stack)
{
	uint8_t *p = ids;
	for (uint32_t node = stack; node; node = nodes[node].parent) {
		if (p > ids + SHORT_STACK_MAX - PROTOBUF_WIRE_VARINT_MAX)
			return NULL;
		p = protobuf_wire_put(p, (uint64_t)nodes[node].location + 1);
	}
	return p;
}

static void put_zeros(struct writer *w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		make_room(w, 1);
		*w->next++ = 0;
	}
}

static void put_sample(struct writer *w, const struct profile *profile, uint32_t index)
{
	const struct profile_sample *sample = &profile->samples.items[index];
	const struct profile_stack_node *nodes = profile->stacks.items;
	const int64_t *values = profile_values(profile, index);
	uint32_t n_values = profile_row_width(profile);
	uint32_t n_before = profile_first_column(profile, index);
	uint32_t n_zeros = profile->sample_types.n - n_values; /* before and behind the row */

	prepare_labels(w, profile, sample->label_set);
	/* Walked once: nodes are far apart, a cache miss each. */
	uint8_t ids[SHORT_STACK_MAX];
	const uint8_t *ids_end = put_short_stack(ids, nodes, sample->stack);
	size_t stack = ids_end ? (size_t)(ids_end - ids) : stack_bytes(nodes, sample->stack);
	size_t row = n_zeros;
	for (uint32_t i = 0; i < n_values; i++)
		row += protobuf_wire_varint_bytes((uint64_t)values[i]);
	put_header(w, PPROF_PROFILE_SAMPLE,
		   (stack ? message_bytes(stack) : 0) + message_bytes(row) + w->labels_bytes);
	if (stack)
		put_header(w, PPROF_SAMPLE_LOCATION_ID, stack);
	if (ids_end)
		put_bytes(w, ids, stack);
	else
		put_long_stack(w, nodes, sample->stack);
	put_header(w, PPROF_SAMPLE_VALUE, row);
	put_zeros(w, n_before);
	for (uint32_t i = 0; i < n_values; i++) {
		make_room(w, PROTOBUF_WIRE_VARINT_MAX);
		w->next = protobuf_wire_put(w->next, (uint64_t)values[i]);
	}
	put_zeros(w, n_zeros - n_before);
	put_bytes(w, w->labels, w->labels_bytes);
}

static void put_mapping(struct writer *w, const struct profile_mapping *mapping, uint32_t index)
{
	uint8_t body[SMALL_MESSAGE_MAX];
	uint8_t *p = put_field(body, PPROF_MAPPING_ID, (uint64_t)index + 1);
	p = put_field(p, PPROF_MAPPING_MEMORY_START, mapping->memory_start);
	p = put_field(p, PPROF_MAPPING_MEMORY_LIMIT, mapping->memory_limit);
	p = put_field(p, PPROF_MAPPING_FILE_OFFSET, mapping->file_offset);
	p = put_field(p, PPROF_MAPPING_FILENAME, mapping->filename);
	p = put_field(p, PPROF_MAPPING_BUILD_ID, mapping->build_id);
	p = put_field(p, PPROF_MAPPING_HAS_FUNCTIONS, mapping->has_functions);
	p = put_field(p, PPROF_MAPPING_HAS_FILENAMES, mapping->has_filenames);
	p = put_field(p, PPROF_MAPPING_HAS_LINE_NUMBERS, mapping->has_line_numbers);
	p = put_field(p, PPROF_MAPPING_HAS_INLINE_FRAMES, mapping->has_inline_frames);
	put_message(w, PPROF_PROFILE_MAPPING, body, p);
}

static uint8_t *put_line_fields(uint8_t *p, const struct profile_line *line)
{
	p = put_field(p, PPROF_LINE_FUNCTION_ID, (uint64_t)line->function + 1);
	p = put_field(p, PPROF_LINE_LINE, (uint64_t)line->line);
	return put_field(p, PPROF_LINE_COLUMN, line->column);
}

static void put_location(struct writer *w, const struct profile *profile, uint32_t index)
{
	const struct profile_location *location = &profile->locations.items[index];
	const struct profile_line *lines = profile->lines.items + location->first_line;
	uint64_t mapping_id =
		location->mapping == PROFILE_NONE ? 0 : (uint64_t)location->mapping + 1;
	uint8_t head[SMALL_MESSAGE_MAX];
	uint8_t *head_end = put_field(head, PPROF_LOCATION_ID, (uint64_t)index + 1);
	head_end = put_field(head_end, PPROF_LOCATION_MAPPING_ID, mapping_id);
	head_end = put_field(head_end, PPROF_LOCATION_ADDRESS, location->address);
	size_t body = (size_t)(head_end - head) + field_bytes(location->is_folded);
	uint8_t line[SMALL_MESSAGE_MAX];
	for (uint32_t i = 0; i < location->n_lines; i++)
		body += message_bytes((size_t)(put_line_fields(line, &lines[i]) - line));

	put_header(w, PPROF_PROFILE_LOCATION, body);
	put_bytes(w, head, (size_t)(head_end - head));
	for (uint32_t i = 0; i < location->n_lines; i++)
		put_message(w, PPROF_LOCATION_LINE, line, put_line_fields(line, &lines[i]));
	put_scalar(w, PPROF_LOCATION_IS_FOLDED, location->is_folded);
}

static void put_function(struct writer *w, const struct profile_function *function, uint32_t index)
{
	uint8_t body[SMALL_MESSAGE_MAX];
	uint8_t *p = put_field(body, PPROF_FUNCTION_ID, (uint64_t)index + 1);
	p = put_field(p, PPROF_FUNCTION_NAME, function->name);
	p = put_field(p, PPROF_FUNCTION_SYSTEM_NAME, function->system_name);
	p = put_field(p, PPROF_FUNCTION_FILENAME, function->filename);
	p = put_field(p, PPROF_FUNCTION_START_LINE, (uint64_t)function->start_line);
	put_message(w, PPROF_PROFILE_FUNCTION, body, p);
}

static void put_comments(struct writer *w, const struct profile *profile)
{
	size_t body = 0;
	for (uint32_t i = 0; i < profile->comments.n; i++)
		body += protobuf_wire_varint_bytes(profile->comments.items[i]);
	if (!body)
		return;
	put_header(w, PPROF_PROFILE_COMMENT, body);
	for (uint32_t i = 0; i < profile->comments.n; i++) {
		make_room(w, PROTOBUF_WIRE_VARINT_MAX);
		w->next = protobuf_wire_put(w->next, profile->comments.items[i]);
	}
}

static void put_scalars(struct writer *w, const struct profile *profile)
{
	put_scalar(w, PPROF_PROFILE_DROP_FRAMES, profile->drop_frames);
	put_scalar(w, PPROF_PROFILE_KEEP_FRAMES, profile->keep_frames);
	put_scalar(w, PPROF_PROFILE_TIME_NANOS, (uint64_t)profile->time_nanos);
	put_scalar(w, PPROF_PROFILE_DURATION_NANOS, (uint64_t)profile->duration_nanos);
	if (profile->period_type.type || profile->period_type.unit)
		put_value_type(w, PPROF_PROFILE_PERIOD_TYPE, &profile->period_type);
	put_scalar(w, PPROF_PROFILE_PERIOD, (uint64_t)profile->period);
	put_comments(w, profile);
	put_scalar(w, PPROF_PROFILE_DEFAULT_SAMPLE_TYPE, profile->default_sample_type);
	put_scalar(w, PPROF_PROFILE_DOC_URL, profile->doc_url);
}

static void put_profile(struct writer *w, const struct profile *profile)
{
	for (uint32_t i = 0; i < profile->sample_types.n; i++)
		put_value_type(w, PPROF_PROFILE_SAMPLE_TYPE, &profile->sample_types.items[i]);
	for (uint32_t i = 0; i < profile->samples.n && !w->err; i++)
		put_sample(w, profile, i);
	for (uint32_t i = 0; i < profile->mappings.n && !w->err; i++)
		put_mapping(w, &profile->mappings.items[i], i);
	for (uint32_t i = 0; i < profile->locations.n && !w->err; i++)
		put_location(w, profile, i);
	for (uint32_t i = 0; i < profile->functions.n && !w->err; i++)
		put_function(w, &profile->functions.items[i], i);
	for (uint32_t i = 0; i < profile->strings.n && !w->err; i++) {
		const struct intern_entry *entry = &profile->strings.entries[i];
		put_header(w, PPROF_PROFILE_STRING_TABLE, entry->size);
		put_bytes(w, entry->text, entry->size);
	}
	put_scalars(w, profile);
	flush(w);
}

/* The sink gets pieces of at most staging_bytes, STAGING_BYTES or more. */
static struct error *encode_raw(const struct profile *profile, size_t staging_bytes,
				pprof_encode_sink_fn sink, void *context,
				uint64_t *n_bytes_out) MUST_USE;
static struct error *encode_raw(const struct profile *profile, size_t staging_bytes,
				pprof_encode_sink_fn sink, void *context, uint64_t *n_bytes_out)
{
	CLEANUP(cleanup_mem) uint8_t *staging = mem_alloc(staging_bytes);
	struct writer w = {
		.next = staging,
		.staging = staging,
		.end = staging + staging_bytes,
		.sink = sink,
		.context = context,
		.label_set = PROFILE_NONE,
	};
	put_profile(&w, profile);
	mem_free(w.labels);
	if (n_bytes_out)
		*n_bytes_out = w.n_bytes;
	return w.err;
}

struct gzip_sink {
	struct libdeflate_compressor *compressor;
	pprof_encode_sink_fn sink;
	void *context;
	uint8_t *member;
	size_t member_bytes;
};

/* Each piece becomes a member; gzip's format takes members in a row for one stream. */
static struct error *gzip_write(void *context, const void *bytes, size_t n)
{
	const struct gzip_sink *gzip = context;
	size_t size = libdeflate_gzip_compress(gzip->compressor, bytes, n, gzip->member,
					       gzip->member_bytes);
	if (!size)
		return error_new(ERROR_IO, "gzip: the compressor failed");
	return gzip->sink(gzip->context, gzip->member, size);
}

struct error *pprof_encode(const struct profile *profile,
			   const struct pprof_encode_options *options, pprof_encode_sink_fn sink,
			   void *context)
{
	if (!options->gzip_level)
		return encode_raw(profile, STAGING_BYTES, sink, context, NULL);
	struct gzip_sink gzip = {.sink = sink, .context = context};
	gzip.compressor = libdeflate_alloc_compressor(options->gzip_level);
	if (!gzip.compressor)
		return error_new(ERROR_UNSUPPORTED, "gzip: level %d is not possible",
				 options->gzip_level);
	gzip.member_bytes = libdeflate_gzip_compress_bound(gzip.compressor, GZIP_MEMBER_BYTES);
	gzip.member = mem_alloc(gzip.member_bytes);
	struct error *err = encode_raw(profile, GZIP_MEMBER_BYTES, gzip_write, &gzip, NULL);
	mem_free(gzip.member);
	libdeflate_free_compressor(gzip.compressor);
	return err;
}

static struct error *write_to_fd(void *context, const void *bytes, size_t n)
{
	const int *fd = context;
	return file_write(*fd, bytes, n);
}

struct error *pprof_encode_fd(const struct profile *profile,
			      const struct pprof_encode_options *options, int fd)
{
	return pprof_encode(profile, options, write_to_fd, &fd);
}

static struct error *append_to_buf(void *context, const void *bytes, size_t n)
{
	return buf_append(context, bytes, n);
}

struct error *pprof_encode_buf(const struct profile *profile,
			       const struct pprof_encode_options *options, struct buf *out)
{
	return pprof_encode(profile, options, append_to_buf, out);
}

uint64_t pprof_encode_count_bytes(const struct profile *profile)
{
	uint64_t n_bytes = 0;
	error_free(encode_raw(profile, STAGING_BYTES, NULL, NULL, &n_bytes));
	return n_bytes;
}
