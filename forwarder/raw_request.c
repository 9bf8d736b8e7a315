/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout (field numbers in front):
 *
 *   request   2 or 1 series { 1 labels, 2 samples { 1 raw_profile } }
 *   labels    Parca: one LabelSet { 1 label { 1 name, 2 value } … }; Pyroscope: the labels
 * themselves
 */
#include "forwarder/raw_request.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "forwarder/series.h"
#include "proto/pprof_encode.h"
#include "proto/pprof_read.h"
#include "proto/profile_split.h"
#include "proto/protobuf_field.h"
#include "proto/protobuf_writer.h"

enum {
	FIELD_PARCA_SERIES = 2,
	FIELD_PYROSCOPE_SERIES = 1,
	FIELD_SERIES_LABELS = 1,
	FIELD_SERIES_SAMPLES = 2,
	FIELD_LABEL_SET_LABELS = 1,
	FIELD_LABEL_NAME = 1,
	FIELD_LABEL_VALUE = 2,
	FIELD_SAMPLE_RAW_PROFILE = 1,

	GZIP_LEVEL = 1,
	PREFIX_BYTES = 32, /* tags and lengths around a pprof */
	PPROF_MIN_BYTES = 4096,
	MESSAGE_MAX_BYTES = 1 << 30,
	SPLIT_MAX_PPROF_BYTES = 256 << 20,
	MAX_READ_LABELS = 1024,
};

const struct raw_request_format raw_request_parca = {.series_field = FIELD_PARCA_SERIES,
						     .has_label_set = true};
const struct raw_request_format raw_request_pyroscope = {.series_field = FIELD_PYROSCOPE_SERIES,
							 .has_one_series = true};

void raw_request_init(struct raw_request *request, const struct raw_request_format *format,
		      const struct exporter_config *config, const struct backend *backend,
		      backend_emit_fn emit, void *context)
{
	const struct request_limits *limits = &config->limits;
	*request = (struct raw_request){
		.format = format,
		.gzip_level = config->remote.gzip ? GZIP_LEVEL : 0,
		.max_message_bytes = limits->max_message_bytes ? limits->max_message_bytes
							       : backend->default_max_message_bytes,
		.max_samples =
			limits->max_samples ? limits->max_samples : backend->default_max_samples,
		.emit = emit,
		.context = context,
	};
	buf_init(&request->message, MESSAGE_MAX_BYTES);
}

void raw_request_fini(struct raw_request *request)
{
	buf_fini(&request->message);
}

struct error *raw_request_end(struct raw_request *request)
{
	if (!request->summary.n_profiles)
		return NULL;
	struct error *err = request->emit(request->context, request->message.data,
					  request->message.size, &request->summary);
	buf_clear(&request->message);
	request->n_bytes = 0;
	request->summary = (struct request_summary){0};
	return err;
}

static int compare_labels(const void *a, const void *b)
{
	const struct key_value *x = a, *y = b;
	return strcmp(x->key, y->key);
}

static void put_label(struct protobuf_writer *w, uint32_t field, const struct key_value *label)
{
	size_t key = strlen(label->key), value = strlen(label->value);
	protobuf_writer_header(w, field,
			       protobuf_writer_field_bytes(FIELD_LABEL_NAME, key) +
				       protobuf_writer_field_bytes(FIELD_LABEL_VALUE, value));
	protobuf_writer_bytes(w, FIELD_LABEL_NAME, label->key, key);
	protobuf_writer_bytes(w, FIELD_LABEL_VALUE, label->value, value);
}

/* The labels as fields of a series. */
static struct error *put_labels(const struct raw_request_format *format,
				const struct key_value *labels, size_t n, struct buf *out)
{
	CLEANUP(buf_fini) struct buf set;
	buf_init(&set, MESSAGE_MAX_BYTES);
	struct protobuf_writer w = protobuf_writer_make(format->has_label_set ? &set : out);
	uint32_t field = format->has_label_set ? FIELD_LABEL_SET_LABELS : FIELD_SERIES_LABELS;
	for (size_t i = 0; i < n; i++)
		put_label(&w, field, &labels[i]);
	struct error *err = protobuf_writer_end(&w);
	if (err || !format->has_label_set)
		return err;
	w = protobuf_writer_make(out);
	protobuf_writer_bytes(&w, FIELD_SERIES_LABELS, set.data, set.size);
	return protobuf_writer_end(&w);
}

/* labels are fields of a series already. */
static struct error *put_series(struct raw_request *request, const struct buf *labels,
				const struct profile *profile)
{
	CLEANUP(buf_fini) struct buf pprof;
	buf_init(&pprof, MESSAGE_MAX_BYTES);
	const struct pprof_encode_options options = {.gzip_level = request->gzip_level};
	struct error *err = pprof_encode_buf(profile, &options, &pprof);
	if (err)
		return err;
	size_t sample = protobuf_writer_field_bytes(FIELD_SAMPLE_RAW_PROFILE, pprof.size);
	struct protobuf_writer w = protobuf_writer_make(&request->message);
	protobuf_writer_header(&w, request->format->series_field,
			       labels->size +
				       protobuf_writer_field_bytes(FIELD_SERIES_SAMPLES, sample));
	protobuf_writer_raw(&w, labels->data, labels->size);
	protobuf_writer_header(&w, FIELD_SERIES_SAMPLES, sample);
	protobuf_writer_bytes(&w, FIELD_SAMPLE_RAW_PROFILE, pprof.data, pprof.size);
	series_add_to_summary(&request->summary, profile);
	return protobuf_writer_end(&w);
}

/* A series whose parts are under way. */
struct adding {
	struct raw_request *request;
	const struct buf *labels;
};

static struct error *add_part(void *context, struct profile *taken, const char *const *values)
{
	(void)values;
	const struct adding *adding = context;
	struct raw_request *request = adding->request;
	CLEANUP(cleanup_profile) struct profile *part = taken;
	if (!part->samples.n)
		return NULL;
	uint64_t n = pprof_encode_count_bytes(part) + adding->labels->size + PREFIX_BYTES;
	struct error *err = NULL;
	if (request->format->has_one_series || request->n_bytes + n > request->max_message_bytes)
		err = raw_request_end(request);
	if (err)
		return err;
	request->n_bytes += n;
	return put_series(request, adding->labels, part);
}

static struct error *add_series(struct raw_request *request, const struct profile *profile,
				const struct buf *labels, uint32_t max_samples)
{
	struct adding adding = {.request = request, .labels = labels};
	uint64_t overhead = labels->size + PREFIX_BYTES;
	struct profile_split_limits limits = {.max_encoded_bytes = PPROF_MIN_BYTES,
					      .max_samples = max_samples};
	if (request->max_message_bytes > overhead + PPROF_MIN_BYTES)
		limits.max_encoded_bytes = request->max_message_bytes - overhead;
	return profile_split_by_limits(profile, &limits, add_part, &adding);
}

struct error *raw_request_add(struct raw_request *request, const struct profile *profile,
			      struct key_value *labels, size_t n_labels)
{
	CLEANUP(buf_fini) struct buf encoded;
	buf_init(&encoded, MESSAGE_MAX_BYTES);
	qsort(labels, n_labels, sizeof(*labels), compare_labels);
	struct error *err = put_labels(request->format, labels, n_labels, &encoded);
	return err ? err : add_series(request, profile, &encoded, request->max_samples);
}

static struct error *damaged(void)
{
	return error_new(ERROR_BAD_DATA, "the request is damaged");
}

/* One series of a request, as it stands there. */
struct read_series {
	struct cursor body;
	struct buf labels; /* its label fields, tags included */
	struct arena arena;
	struct key_value items[MAX_READ_LABELS];
	size_t n_items;
	const char *name; /* value of __name__ */
	struct cursor pprof;
};

static void read_series_fini(struct read_series *series)
{
	buf_fini(&series->labels);
	arena_fini(&series->arena);
}

static void read_label(struct read_series *series, struct cursor label)
{
	struct protobuf_field field;
	const char *texts[3] = {"", "", ""};
	while (protobuf_field_next(&label, &field)) {
		if (field.type == PROTOBUF_WIRE_BYTES && field.number <= FIELD_LABEL_VALUE)
			texts[field.number] =
				arena_copy_string(&series->arena, (const char *)field.body.next,
						  cursor_left(&field.body));
	}
	if (!strcmp(texts[FIELD_LABEL_NAME], "__name__"))
		series->name = texts[FIELD_LABEL_VALUE];
	else if (series->n_items < MAX_READ_LABELS)
		series->items[series->n_items++] =
			(struct key_value){texts[FIELD_LABEL_NAME], texts[FIELD_LABEL_VALUE]};
}

static void read_label_set(struct read_series *series, struct cursor set)
{
	struct protobuf_field field;
	while (protobuf_field_next(&set, &field)) {
		if (field.type == PROTOBUF_WIRE_BYTES && field.number == FIELD_LABEL_SET_LABELS)
			read_label(series, field.body);
	}
}

static struct error *read_sample(struct read_series *series, struct cursor sample)
{
	struct protobuf_field field;
	while (protobuf_field_next(&sample, &field)) {
		if (field.type == PROTOBUF_WIRE_BYTES && field.number == FIELD_SAMPLE_RAW_PROFILE)
			series->pprof = field.body;
	}
	return cursor_is_ok(&sample) ? NULL : damaged();
}

/* The caller calls read_series_fini in any case. */
static struct error *read_series(const struct raw_request_format *format, struct cursor body,
				 struct read_series *out)
{
	out->body = body;
	out->labels = (struct buf){0};
	out->n_items = 0;
	out->name = "";
	out->pprof = (struct cursor){0};
	arena_init(&out->arena, 0);
	buf_init(&out->labels, MESSAGE_MAX_BYTES);
	struct protobuf_writer w = protobuf_writer_make(&out->labels);
	struct protobuf_field field;
	unsigned n_samples = 0;
	struct error *err = NULL;
	while (!err && protobuf_field_next(&body, &field)) {
		if (field.type != PROTOBUF_WIRE_BYTES)
			continue;
		if (field.number == FIELD_SERIES_SAMPLES && n_samples++ == 0) {
			err = read_sample(out, field.body);
		} else if (field.number == FIELD_SERIES_LABELS) {
			protobuf_writer_bytes(&w, field.number, field.body.next,
					      cursor_left(&field.body));
			if (format->has_label_set)
				read_label_set(out, field.body);
			else
				read_label(out, field.body);
		}
	}
	struct error *write_err = protobuf_writer_end(&w);
	if (err) {
		error_free(write_err);
		return err;
	}
	if (write_err)
		return write_err;
	/* We write one profile into each series. */
	return cursor_is_ok(&body) && n_samples == 1 ? NULL : damaged();
}

static struct error *read_profile(const struct read_series *series, struct profile **out)
{
	const struct pprof_read_options options = {.max_bytes = SPLIT_MAX_PPROF_BYTES};
	return pprof_read(series->pprof.next, cursor_left(&series->pprof), &options, out, NULL);
}

/* Calls visit with the body of each series. */
typedef struct error *(*visit_fn)(void *context, struct cursor body);

static struct error *walk_series(const struct raw_request_format *format, const uint8_t *message,
				 size_t n, visit_fn visit, void *context)
{
	struct cursor c = cursor_make(message, n, false);
	struct protobuf_field field;
	while (protobuf_field_next(&c, &field)) {
		if (field.number != format->series_field || field.type != PROTOBUF_WIRE_BYTES)
			continue;
		struct error *err = visit(context, field.body);
		if (err)
			return err;
	}
	return cursor_is_ok(&c) ? NULL : damaged();
}

/* First walk of a split: how many there are, and the one when there is just one. */
struct survey {
	size_t n_series;
	uint64_t n_bytes;
	struct cursor first;
};

static struct error *survey_series(void *context, struct cursor body)
{
	struct survey *survey = context;
	if (!survey->n_series++)
		survey->first = body;
	survey->n_bytes += cursor_left(&body);
	return NULL;
}

/* Second walk: series as they are, into two requests. */
struct halving {
	struct raw_request *request;
	struct survey survey;
	size_t n_done;
	uint64_t n_done_bytes;
	bool is_second;
};

static struct error *copy_series(void *context, struct cursor body)
{
	struct halving *halving = context;
	struct raw_request *request = halving->request;
	bool is_half = halving->n_done_bytes * 2 >= halving->survey.n_bytes ||
		       halving->n_done + 1 == halving->survey.n_series;
	struct error *err = NULL;
	if (halving->n_done && is_half && !halving->is_second) {
		halving->is_second = true;
		err = raw_request_end(request);
	}
	if (err)
		return err;
	struct read_series series;
	struct profile *profile = NULL;
	err = read_series(request->format, body, &series);
	if (!err)
		err = read_profile(&series, &profile);
	read_series_fini(&series);
	if (err)
		return err;
	series_add_to_summary(&request->summary, profile);
	profile_free(profile);
	halving->n_done++;
	halving->n_done_bytes += cursor_left(&body);
	struct protobuf_writer w = protobuf_writer_make(&request->message);
	protobuf_writer_bytes(&w, request->format->series_field, body.next, cursor_left(&body));
	return protobuf_writer_end(&w);
}

/* Halves by the number of samples: both are smaller, whatever it is that takes the room. */
static struct error *split_samples(struct raw_request *request, struct cursor body)
{
	struct read_series series;
	struct error *err = read_series(request->format, body, &series);
	struct profile *profile = NULL;
	if (!err)
		err = read_profile(&series, &profile);
	if (!err && profile->samples.n < 2)
		err = error_new(ERROR_LIMIT, "a request of one sample cannot be split");
	if (!err) {
		request->max_message_bytes = UINT64_MAX;
		struct adding adding = {.request = request, .labels = &series.labels};
		const struct profile_split_limits limits = {.max_samples = profile->samples.n / 2 +
									   profile->samples.n % 2};
		/* Each half is a request. */
		struct raw_request_format format = *request->format;
		format.has_one_series = true;
		request->format = &format;
		err = profile_split_by_limits(profile, &limits, add_part, &adding);
		if (!err)
			err = raw_request_end(request);
	}
	profile_free(profile);
	read_series_fini(&series);
	return err;
}

struct error *raw_request_split(const struct raw_request_format *format,
				const struct exporter_config *config, const uint8_t *message,
				size_t n, backend_emit_fn emit, void *context)
{
	CLEANUP(raw_request_fini)
	struct raw_request request = {.format = format,
				      .gzip_level = config->remote.gzip ? GZIP_LEVEL : 0,
				      .emit = emit,
				      .context = context};
	buf_init(&request.message, MESSAGE_MAX_BYTES);
	struct halving halving = {.request = &request};
	struct error *err = walk_series(format, message, n, survey_series, &halving.survey);
	if (err)
		return err;
	if (!halving.survey.n_series)
		return damaged();
	if (halving.survey.n_series == 1)
		return split_samples(&request, halving.survey.first);
	err = walk_series(format, message, n, copy_series, &halving);
	return err ? err : raw_request_end(&request);
}

struct listing {
	const struct raw_request_format *format;
	backend_profile_fn emit;
	void *context;
};

static struct error *list_series(void *context, struct cursor body)
{
	const struct listing *listing = context;
	struct read_series series;
	struct error *err = read_series(listing->format, body, &series);
	if (!err) {
		CLEANUP(cleanup_mem)
		char *text = series_describe(series.name, series.items, series.n_items);
		err = listing->emit(listing->context, text, series.pprof.next,
				    cursor_left(&series.pprof));
	}
	read_series_fini(&series);
	return err;
}

struct error *raw_request_profiles(const struct raw_request_format *format, const uint8_t *message,
				   size_t n, backend_profile_fn emit, void *context)
{
	struct listing listing = {.format = format, .emit = emit, .context = context};
	return walk_series(format, message, n, list_series, &listing);
}
