/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a perf.data file that perf opens:
 *
 *	header | attrs | ids, room | records, FINISHED_ROUND … | feature table | features
 *	                             └ data section              └ must follow the data section
 *
 * Until the end the header says that the data section is empty, which readers take for a recording
 * that was not finished: what a full disk, a kill or a cut leaves can be read. More ids may come
 * meanwhile (hotplug); when the room is too small for them, attrs and ids go behind the features.
 */
#include "collector/collector.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"

enum {
	/* The size of attr that perf 5.10 to 6.x knows; a larger one is refused by older perf. */
	ATTR_BYTES = 128,
	FILE_ATTR_BYTES = ATTR_BYTES + 16,
	HEADER_BYTES = 104,
	N_FEATURE_WORDS = 4,
	FLUSH_BYTES = 256 << 10,
	ROUND_BYTES = 1 << 20, /* perf holds the records of a round in memory */
	BUFFER_MAX_BYTES = 8 << 20,
	FEATURES_MAX_BYTES = 256 << 20,
	STRING_ALIGN = 64, /* perf pads its strings so */
	BUILD_ID_BYTES = 20,
	SPARE_IDS = 64, /* per event, beside as many as it has */
};

enum feature {
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_VERSION = 5,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_CLOCKID = 23,
	FEATURE_CLOCK_DATA = 29,
};

struct section {
	uint64_t offset, size;
};

struct perf_file_writer {
	int fd;
	const struct perf_source_info *info;
	struct buf pending;
	uint64_t data_offset;
	uint64_t data_bytes; /* written or pending */
	uint64_t round_bytes;
	uint64_t first_sample_ns, last_sample_ns;
};

void perf_file_writer_close(struct perf_file_writer *writer)
{
	if (!writer)
		return;
	buf_fini(&writer->pending);
	mem_free(writer);
}

static struct error *flush(struct perf_file_writer *writer)
{
	struct error *err = file_write(writer->fd, writer->pending.data, writer->pending.size);

	buf_clear(&writer->pending);
	return err;
}

static struct error *append(struct perf_file_writer *writer, const void *p, size_t n)
{
	struct error *err = buf_append(&writer->pending, p, n);

	writer->data_bytes += n;
	if (!err && writer->pending.size >= FLUSH_BYTES)
		err = flush(writer);
	return err;
}

/* Records come in order, so a round may end anywhere. */
static struct error *end_round(struct perf_file_writer *writer)
{
	struct perf_event_header round = {.type = PERF_RECORD_FINISHED_ROUND,
					  .size = sizeof(round)};

	writer->round_bytes = 0;
	return append(writer, &round, sizeof(round));
}

struct error *perf_file_writer_add(void *context, const struct perf_record *records, size_t n)
{
	struct perf_file_writer *writer = context;
	struct error *err = NULL;

	for (size_t i = 0; !err && i < n; i++) {
		const struct perf_record *record = &records[i];
		/* Ours, and those that describe how another file was packed. */
		if (record->type >= PERF_RECORD_USER_TYPE_START)
			continue;
		err = append(writer, record->bytes, record->size);
		writer->round_bytes += record->size;
		if (record->type != PERF_RECORD_SAMPLE)
			continue;
		if (!writer->first_sample_ns)
			writer->first_sample_ns = record->time_ns;
		writer->last_sample_ns = record->time_ns;
	}
	if (!err && writer->round_bytes >= ROUND_BYTES)
		err = end_round(writer);
	return err;
}

/* --- features --- */

/* Puts fields one behind the other; the first refusal is kept and the rest is skipped. */
struct field_writer {
	struct buf out;
	struct error *err;
};

static void put_bytes(struct field_writer *fields, const void *p, size_t n)
{
	if (!fields->err)
		fields->err = buf_append(&fields->out, p, n);
}

static void put_u32(struct field_writer *fields, uint32_t value)
{
	put_bytes(fields, &value, sizeof(value));
}

static void put_u64(struct field_writer *fields, uint64_t value)
{
	put_bytes(fields, &value, sizeof(value));
}

static void put_zeros(struct field_writer *fields, size_t n)
{
	static const uint8_t zeros[STRING_ALIGN];

	for (; n > sizeof(zeros); n -= sizeof(zeros))
		put_bytes(fields, zeros, sizeof(zeros));
	put_bytes(fields, zeros, n);
}

static void put_string(struct field_writer *fields, const char *s)
{
	size_t n = strlen(s) + 1;
	size_t padded = (n + STRING_ALIGN - 1) & ~(size_t)(STRING_ALIGN - 1);

	put_u32(fields, (uint32_t)padded);
	put_bytes(fields, s, n);
	put_zeros(fields, padded - n);
}

static void put_attr(struct field_writer *fields, const struct perf_event_attr *attr)
{
	struct perf_event_attr stored = *attr;

	static_assert(offsetof(struct perf_event_attr, config3) == ATTR_BYTES, "see ATTR_BYTES");
	stored.size = ATTR_BYTES;
	put_bytes(fields, &stored, ATTR_BYTES);
}

static void put_event_desc(struct field_writer *fields, const struct perf_source_info *info)
{
	put_u32(fields, info->n_events);
	put_u32(fields, ATTR_BYTES);
	for (uint32_t i = 0; i < info->n_events; i++) {
		const struct perf_event_info *event = &info->events[i];
		put_attr(fields, &event->attr);
		put_u32(fields, event->n_ids);
		put_string(fields, event->name);
		put_bytes(fields, event->ids, event->n_ids * sizeof(*event->ids));
	}
}

/* struct perf_record_header_build_id, one for each entry. */
static void put_build_ids(struct field_writer *fields, const struct perf_source_info *info)
{
	for (uint32_t i = 0; i < info->n_build_ids; i++) {
		const struct perf_build_id_entry *entry = &info->build_ids[i];
		size_t n_name = (strlen(entry->filename) + 1 + 7) & ~(size_t)7;
		size_t size = sizeof(struct perf_event_header) + 4 + BUILD_ID_BYTES + 4 + n_name;
		if (entry->id.size > BUILD_ID_BYTES || size > UINT16_MAX)
			continue;
		struct perf_event_header header = {
			.type = PERF_RECORD_HEADER_BUILD_ID,
			.misc = entry->misc | PERF_RECORD_MISC_BUILD_ID_SIZE,
			.size = (uint16_t)size,
		};
		uint8_t id[BUILD_ID_BYTES + 4] = {0}; /* the id, its size, 3 unused */
		memcpy(id, entry->id.bytes, entry->id.size);
		id[BUILD_ID_BYTES] = entry->id.size;
		put_bytes(fields, &header, sizeof(header));
		put_u32(fields, (uint32_t)entry->pid);
		put_bytes(fields, id, sizeof(id));
		put_bytes(fields, entry->filename, strlen(entry->filename));
		put_zeros(fields, n_name - strlen(entry->filename));
	}
}

static void put_clock_resolution(struct field_writer *fields, const struct perf_source_info *info)
{
	struct timespec resolution = {.tv_nsec = 1};

	clock_getres(info->clockid, &resolution);
	put_u64(fields, (uint64_t)resolution.tv_nsec);
}

/* False when there is nothing to say. */
static bool put_feature(struct field_writer *fields, const struct perf_file_writer *writer,
			enum feature feature)
{
	const struct perf_source_info *info = writer->info;
	const char *text = feature == FEATURE_HOSTNAME	  ? info->hostname
			   : feature == FEATURE_OSRELEASE ? info->os_release
			   : feature == FEATURE_VERSION	  ? info->perf_version
			   : feature == FEATURE_ARCH	  ? info->arch
			   : feature == FEATURE_CMDLINE	  ? info->cmdline
							  : NULL;
	size_t before = fields->out.size;

	switch (feature) {
	case FEATURE_BUILD_ID:
		put_build_ids(fields, info);
		break;
	case FEATURE_CMDLINE:
		if (text)
			put_u32(fields, 1);
		/* fallthrough */
	case FEATURE_HOSTNAME:
	case FEATURE_OSRELEASE:
	case FEATURE_VERSION:
	case FEATURE_ARCH:
		if (text)
			put_string(fields, text);
		break;
	case FEATURE_NRCPUS:
		put_u32(fields, info->n_cpus_available);
		put_u32(fields, info->n_cpus_online);
		break;
	case FEATURE_EVENT_DESC:
		put_event_desc(fields, info);
		break;
	case FEATURE_SAMPLE_TIME:
		put_u64(fields, writer->first_sample_ns);
		put_u64(fields, writer->last_sample_ns);
		break;
	case FEATURE_CLOCKID:
		if (info->clockid >= 0)
			put_clock_resolution(fields, info);
		break;
	case FEATURE_CLOCK_DATA:
		if (!info->has_clock_pair || info->clockid < 0)
			break;
		put_u32(fields, 1); /* version */
		put_u32(fields, (uint32_t)info->clockid);
		put_u64(fields, info->clock_pair_wall_ns);
		put_u64(fields, info->clock_pair_event_ns);
		break;
	}
	return fields->out.size > before;
}

/* The table and the features behind it, in the order of their numbers, as bits says. */
static void put_features(struct field_writer *fields, const struct perf_file_writer *writer,
			 uint64_t offset, uint64_t bits[N_FEATURE_WORDS])
{
	static const enum feature order[] = {
		FEATURE_BUILD_ID,    FEATURE_HOSTNAME, FEATURE_OSRELEASE,  FEATURE_VERSION,
		FEATURE_ARCH,	     FEATURE_NRCPUS,   FEATURE_CMDLINE,	   FEATURE_EVENT_DESC,
		FEATURE_SAMPLE_TIME, FEATURE_CLOCKID,  FEATURE_CLOCK_DATA,
	};
	struct section sections[ARRAY_LEN(order)];
	struct field_writer content = {0};
	size_t n = 0;

	buf_init(&content.out, FEATURES_MAX_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		size_t start = content.out.size;
		if (!put_feature(&content, writer, order[i]))
			continue;
		bits[order[i] / 64] |= 1ull << order[i] % 64;
		sections[n++] = (struct section){start, content.out.size - start};
	}
	for (size_t i = 0; i < n; i++)
		sections[i].offset += offset + n * sizeof(*sections);
	put_bytes(fields, sections, n * sizeof(*sections));
	put_bytes(fields, content.out.data, content.out.size);
	buf_fini(&content.out);
	if (fields->err)
		error_free(content.err);
	else
		fields->err = content.err;
}

static size_t count_bytes(const struct perf_source_info *info)
{
	size_t n = 0;

	for (uint32_t i = 0; i < info->n_events; i++)
		n += FILE_ATTR_BYTES + info->events[i].n_ids * sizeof(*info->events[i].ids);
	return n;
}

/* The attrs, at offset of the file, and the ids that they refer to. */
static void put_attrs(struct field_writer *fields, const struct perf_source_info *info,
		      uint64_t offset)
{
	struct section ids = {.offset = offset + (uint64_t)info->n_events * FILE_ATTR_BYTES};

	for (uint32_t i = 0; i < info->n_events; i++) {
		ids.size = info->events[i].n_ids * sizeof(*info->events[i].ids);
		put_attr(fields, &info->events[i].attr);
		put_bytes(fields, &ids, sizeof(ids));
		ids.offset += ids.size;
	}
	for (uint32_t i = 0; i < info->n_events; i++)
		put_bytes(fields, info->events[i].ids,
			  info->events[i].n_ids * sizeof(*info->events[i].ids));
}

static void put_header(struct field_writer *fields, const struct perf_file_writer *writer,
		       uint64_t attrs_offset, const uint64_t bits[N_FEATURE_WORDS])
{
	struct section attrs = {attrs_offset, (uint64_t)writer->info->n_events * FILE_ATTR_BYTES};
	struct section data = {writer->data_offset, writer->data_bytes};
	struct section none = {0};

	put_bytes(fields, "PERFILE2", 8);
	put_u64(fields, HEADER_BYTES);
	put_u64(fields, FILE_ATTR_BYTES);
	put_bytes(fields, &attrs, sizeof(attrs));
	put_bytes(fields, &data, sizeof(data));
	put_bytes(fields, &none, sizeof(none)); /* event types, of perf before 3.0 */
	put_bytes(fields, bits, N_FEATURE_WORDS * sizeof(*bits));
}

/* The header, and attrs and ids behind it when attrs_offset says so; up to the data at most. */
static struct error *write_front(const struct perf_file_writer *writer, uint64_t attrs_offset,
				 const uint64_t bits[N_FEATURE_WORDS])
{
	struct field_writer front = {0};

	buf_init(&front.out, FEATURES_MAX_BYTES);
	put_header(&front, writer, attrs_offset, bits);
	if (attrs_offset == HEADER_BYTES) {
		put_attrs(&front, writer->info, HEADER_BYTES);
		put_zeros(&front, writer->data_offset - front.out.size);
	}
	struct error *err = front.err;
	if (!err && lseek(writer->fd, 0, SEEK_SET) < 0)
		err = error_new(ERROR_UNSUPPORTED, "perf.data needs a file that can seek");
	if (!err)
		err = file_write(writer->fd, front.out.data, front.out.size);
	buf_fini(&front.out);
	return err;
}

struct error *perf_file_writer_open(int fd, const struct perf_source_info *info,
				    struct perf_file_writer **out)
{
	static const uint64_t no_features[N_FEATURE_WORDS];
	size_t room = 2 * count_bytes(info) + info->n_events * SPARE_IDS * sizeof(uint64_t);

	if (info->is_swapped)
		return error_new(ERROR_UNSUPPORTED,
				 "records of the other byte order cannot be written");
	struct perf_file_writer *writer = mem_zalloc(1, sizeof(*writer));
	writer->fd = fd;
	writer->info = info;
	writer->data_offset = HEADER_BYTES + room;
	buf_init(&writer->pending, BUFFER_MAX_BYTES);
	/* Also tells at once that the descriptor cannot seek. */
	struct error *err = write_front(writer, HEADER_BYTES, no_features);
	if (err) {
		perf_file_writer_close(writer);
		return err;
	}
	*out = writer;
	return NULL;
}

struct error *perf_file_writer_finish(struct perf_file_writer *writer)
{
	struct field_writer tail = {0};
	uint64_t attrs_offset = HEADER_BYTES;
	uint64_t bits[N_FEATURE_WORDS] = {0};
	struct error *err = end_round(writer);

	if (!err)
		err = flush(writer);
	if (err)
		return err;
	uint64_t offset = writer->data_offset + writer->data_bytes;
	buf_init(&tail.out, FEATURES_MAX_BYTES);
	put_features(&tail, writer, offset, bits);
	if (HEADER_BYTES + count_bytes(writer->info) > writer->data_offset) {
		put_zeros(&tail, -tail.out.size & 7);
		attrs_offset = offset + tail.out.size;
		put_attrs(&tail, writer->info, attrs_offset);
	}
	err = tail.err;
	if (!err)
		err = file_write(writer->fd, tail.out.data, tail.out.size);
	buf_fini(&tail.out);
	return err ? err : write_front(writer, attrs_offset, bits);
}
