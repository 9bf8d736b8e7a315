/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/perf_data_writer.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"

enum { RECORDS_MAX = 1 << 30, PAYLOAD_MAX = 64 << 20, TEXT_ALIGN = 64, FEATURE_EVENT_DESC = 12 };

static void must(struct error *err)
{
	assert(!err);
	error_free(err);
}

void perf_data_init(struct perf_data *data, bool is_big_endian)
{
	memset(data, 0, sizeof(*data));
	data->is_big_endian = is_big_endian;
	data->attr_size = PERF_ATTR_SIZE_VER9;
	buf_init(&data->records, RECORDS_MAX);
}

void perf_data_fini(struct perf_data *data)
{
	buf_fini(&data->records);
	for (size_t i = 0; i < data->n_features; i++)
		buf_fini(&data->features[i].payload);
	memset(data, 0, sizeof(*data));
}

void perf_data_add_event(struct perf_data *data, const struct perf_event_attr *attr,
			 uint64_t first_id, uint32_t n_ids)
{
	assert(data->n_events < PERF_DATA_EVENTS);
	data->events[data->n_events++] =
		(struct perf_data_event){.attr = *attr, .first_id = first_id, .n_ids = n_ids};
}

/* The n low bytes of value, in data's order. */
static void put(const struct perf_data *data, struct buf *buf, uint64_t value, size_t n)
{
	uint8_t bytes[8];
	for (size_t i = 0; i < n; i++)
		bytes[data->is_big_endian ? n - 1 - i : i] = (uint8_t)(value >> 8 * i);
	must(buf_append(buf, bytes, n));
}

void perf_data_put_u16(const struct perf_data *data, struct buf *buf, uint16_t value)
{
	put(data, buf, value, sizeof(value));
}

void perf_data_put_u32(const struct perf_data *data, struct buf *buf, uint32_t value)
{
	put(data, buf, value, sizeof(value));
}

void perf_data_put_u64(const struct perf_data *data, struct buf *buf, uint64_t value)
{
	put(data, buf, value, sizeof(value));
}

static void pad(struct buf *buf, size_t from, size_t align)
{
	static const uint8_t zeros[TEXT_ALIGN];
	size_t n = (buf->size - from) % align;
	if (n)
		must(buf_append(buf, zeros, align - n));
}

void perf_data_put_text(const struct perf_data *data, struct buf *buf, const char *text)
{
	size_t n = strlen(text) + 1;
	perf_data_put_u32(data, buf, (uint32_t)((n + TEXT_ALIGN - 1) / TEXT_ALIGN * TEXT_ALIGN));
	size_t from = buf->size;
	must(buf_append(buf, text, n));
	pad(buf, from, TEXT_ALIGN);
}

/* Bit i of the flags is the i-th bit that the recorder's compiler hands out. */
static void put_flags(const struct perf_data *data, struct buf *buf, uint64_t flags)
{
	uint8_t bytes[8] = {0};
	for (unsigned i = 0; i < 64; i++)
		if (flags >> i & 1)
			bytes[i / 8] |= (uint8_t)(data->is_big_endian ? 0x80 >> i % 8 : 1 << i % 8);
	must(buf_append(buf, bytes, sizeof(bytes)));
}

void perf_data_put_attr(const struct perf_data *data, struct buf *buf,
			const struct perf_event_attr *attr)
{
	size_t from = buf->size;
	perf_data_put_u32(data, buf, attr->type);
	perf_data_put_u32(data, buf, data->attr_size);
	perf_data_put_u64(data, buf, attr->config);
	perf_data_put_u64(data, buf, attr->sample_period);
	perf_data_put_u64(data, buf, attr->sample_type);
	perf_data_put_u64(data, buf, attr->read_format);
	put_flags(data, buf, attr->flags);
	perf_data_put_u32(data, buf, attr->wakeup_events);
	perf_data_put_u32(data, buf, attr->bp_type);
	perf_data_put_u64(data, buf, attr->config1);
	perf_data_put_u64(data, buf, attr->config2);
	perf_data_put_u64(data, buf, attr->branch_sample_type);
	perf_data_put_u64(data, buf, attr->sample_regs_user);
	perf_data_put_u32(data, buf, attr->sample_stack_user);
	perf_data_put_u32(data, buf, (uint32_t)attr->clockid);
	perf_data_put_u64(data, buf, attr->sample_regs_intr);
	perf_data_put_u32(data, buf, attr->aux_watermark);
	perf_data_put_u16(data, buf, attr->sample_max_stack);
	perf_data_put_u16(data, buf, attr->reserved_2);
	perf_data_put_u32(data, buf, attr->aux_sample_size);
	perf_data_put_u32(data, buf, attr->aux_action);
	perf_data_put_u64(data, buf, attr->sig_data);
	perf_data_put_u64(data, buf, attr->config3);
	perf_data_put_u64(data, buf, attr->config4);
	while (buf->size - from < data->attr_size)
		perf_data_put_u64(data, buf, 0);
	buf->size = from + data->attr_size;
}

void perf_data_begin(struct perf_data *data, uint32_t type, uint16_t misc)
{
	data->record_begin = data->records.size;
	perf_data_put_u32(data, &data->records, type);
	perf_data_put_u16(data, &data->records, misc);
	perf_data_put_u16(data, &data->records, 0);
}

void perf_data_u32(struct perf_data *data, uint32_t value)
{
	perf_data_put_u32(data, &data->records, value);
}

void perf_data_u64(struct perf_data *data, uint64_t value)
{
	perf_data_put_u64(data, &data->records, value);
}

void perf_data_bytes(struct perf_data *data, const void *bytes, size_t n)
{
	must(buf_append(&data->records, bytes, n));
}

void perf_data_text(struct perf_data *data, const char *text)
{
	size_t from = data->records.size;
	must(buf_append(&data->records, text, strlen(text) + 1));
	pad(&data->records, from, 8);
}

/* The u16 that closes a record header at `at`. */
static void set_size(const struct perf_data *data, struct buf *buf, size_t at)
{
	size_t size = buf->size - at;
	assert(size <= UINT16_MAX);
	size_t end = buf->size;
	buf->size = at + 6;
	perf_data_put_u16(data, buf, (uint16_t)size);
	buf->size = end;
}

void perf_data_end(struct perf_data *data)
{
	pad(&data->records, data->record_begin, 8);
	set_size(data, &data->records, data->record_begin);
}

struct buf *perf_data_add_feature(struct perf_data *data, uint8_t number)
{
	assert(data->n_features < PERF_DATA_FEATURES);
	struct perf_data_feature *feature = &data->features[data->n_features++];
	feature->number = number;
	buf_init(&feature->payload, PAYLOAD_MAX);
	return &feature->payload;
}

void perf_data_add_text_feature(struct perf_data *data, uint8_t number, const char *text)
{
	perf_data_put_text(data, perf_data_add_feature(data, number), text);
}

void perf_data_add_event_desc(struct perf_data *data, const char *const *names)
{
	struct buf *payload = perf_data_add_feature(data, FEATURE_EVENT_DESC);
	perf_data_put_u32(data, payload, (uint32_t)data->n_events);
	perf_data_put_u32(data, payload, data->attr_size);
	for (size_t i = 0; i < data->n_events; i++) {
		const struct perf_data_event *event = &data->events[i];
		perf_data_put_attr(data, payload, &event->attr);
		perf_data_put_u32(data, payload, event->n_ids);
		perf_data_put_text(data, payload, names[i]);
		for (uint32_t j = 0; j < event->n_ids; j++)
			perf_data_put_u64(data, payload, event->first_id + j);
	}
}

static void put_magic(const struct perf_data *data, struct buf *out)
{
	must(buf_append(out, data->is_big_endian ? "2ELIFREP" : "PERFILE2", 8));
}

static void put_section(const struct perf_data *data, struct buf *out, uint64_t offset,
			uint64_t size)
{
	perf_data_put_u64(data, out, offset);
	perf_data_put_u64(data, out, size);
}

static void put_feature_bits(const struct perf_data *data, struct buf *out)
{
	uint64_t words[4] = {0};
	for (size_t i = 0; i < data->n_features; i++)
		words[data->features[i].number / 64] |= 1ull << data->features[i].number % 64;
	for (size_t i = 0; i < 4; i++)
		perf_data_put_u64(data, out, words[i]);
}

/* header | ids | attrs | records | feature table | features */
void perf_data_write_file(const struct perf_data *data, struct buf *out)
{
	enum { HEADER_BYTES = 104, SECTION_BYTES = 16 };
	size_t begin = out->size;
	uint64_t n_ids = 0;
	for (size_t i = 0; i < data->n_events; i++)
		n_ids += data->events[i].n_ids;
	uint64_t entry_bytes = data->attr_size + SECTION_BYTES;
	uint64_t attrs_offset = HEADER_BYTES + 8 * n_ids;
	uint64_t records_offset = attrs_offset + data->n_events * entry_bytes;
	put_magic(data, out);
	perf_data_put_u64(data, out, HEADER_BYTES);
	perf_data_put_u64(data, out, entry_bytes);
	put_section(data, out, attrs_offset, data->n_events * entry_bytes);
	put_section(data, out, records_offset, data->records.size);
	put_section(data, out, 0, 0);
	put_feature_bits(data, out);
	for (size_t i = 0; i < data->n_events; i++)
		for (uint32_t j = 0; j < data->events[i].n_ids; j++)
			perf_data_put_u64(data, out, data->events[i].first_id + j);
	uint64_t ids_offset = HEADER_BYTES;
	for (size_t i = 0; i < data->n_events; i++) {
		perf_data_put_attr(data, out, &data->events[i].attr);
		put_section(data, out, ids_offset, 8ull * data->events[i].n_ids);
		ids_offset += 8ull * data->events[i].n_ids;
	}
	must(buf_append(out, data->records.data, data->records.size));
	uint64_t payload_offset = out->size - begin + data->n_features * SECTION_BYTES;
	for (size_t i = 0; i < data->n_features; i++) {
		put_section(data, out, payload_offset, data->features[i].payload.size);
		payload_offset += data->features[i].payload.size;
	}
	for (size_t i = 0; i < data->n_features; i++)
		must(buf_append(out, data->features[i].payload.data,
				data->features[i].payload.size));
}

static size_t begin_record(const struct perf_data *data, struct buf *out, uint32_t type)
{
	size_t at = out->size;
	perf_data_put_u32(data, out, type);
	perf_data_put_u16(data, out, 0);
	perf_data_put_u16(data, out, 0);
	return at;
}

void perf_data_write_pipe(const struct perf_data *data, struct buf *out)
{
	put_magic(data, out);
	perf_data_put_u64(data, out, 16);
	for (size_t i = 0; i < data->n_events; i++) {
		const struct perf_data_event *event = &data->events[i];
		size_t at = begin_record(data, out, PERF_RECORD_HEADER_ATTR);
		perf_data_put_attr(data, out, &event->attr);
		for (uint32_t j = 0; j < event->n_ids; j++)
			perf_data_put_u64(data, out, event->first_id + j);
		set_size(data, out, at);
	}
	for (size_t i = 0; i < data->n_features; i++) {
		size_t at = begin_record(data, out, PERF_RECORD_HEADER_FEATURE);
		perf_data_put_u64(data, out, data->features[i].number);
		must(buf_append(out, data->features[i].payload.data,
				data->features[i].payload.size));
		pad(out, at, 8);
		set_size(data, out, at);
	}
	must(buf_append(out, data->records.data, data->records.size));
}

int perf_data_open_bytes(const void *bytes, size_t n)
{
	int fd = memfd_create("perf.data", MFD_CLOEXEC);
	assert(fd >= 0);
	must(file_write(fd, bytes, n));
	lseek(fd, 0, SEEK_SET);
	return fd;
}
