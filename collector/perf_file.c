/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File mode, as perf writes it:
 *
 *   magic size attr_size | attrs (offset, size) | data | event types | 256 feature bits
 *   … ids of each attr … | attrs: attr + (offset, size) of its ids | data: records |
 *   per feature bit (offset, size) | feature payloads
 *
 * Pipe mode has magic and size (16) only; the rest comes as records.
 */
#include "collector/perf_file.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "collector/perf_features.h"

enum {
	SECTION_BYTES = 16,
	FEATURES_OFFSET = 72, /* header without features: perf before 2.6.33 */
	HEADER_MAX = 4096,
	FEATURE_BYTES_MAX = 64 << 20,
	EVENT_DESC_MAX = UINT16_MAX,
	DAMAGED_TEXT_MAX = 1024,
};

static const char magic_little[8] = {'P', 'E', 'R', 'F', 'I', 'L', 'E', '2'};
static const char magic_big[8] = {'2', 'E', 'L', 'I', 'F', 'R', 'E', 'P'};

void perf_file_init(struct perf_file *file)
{
	memset(file, 0, sizeof(*file));
	file->info.clockid = -1;
	file->size = UINT64_MAX;
	file->format.features = file->features;
	file->format.unknown = file->unknown;
	buf_init(&file->event_desc, EVENT_DESC_MAX);
	buf_init(&file->damaged, DAMAGED_TEXT_MAX);
	perf_file_events_init(&file->events, &file->info, false);
}

void perf_file_fini(struct perf_file *file)
{
	struct perf_source_info *info = &file->info;
	perf_file_events_fini(&file->events);
	for (uint32_t i = 0; i < info->n_build_ids; i++)
		mem_free(info->build_ids[i].filename);
	mem_free(info->build_ids);
	mem_free(info->hostname);
	mem_free(info->os_release);
	mem_free(info->perf_version);
	mem_free(info->arch);
	mem_free(info->cmdline);
	for (size_t i = 0; i < file->n_warnings; i++)
		mem_free((char *)file->warnings[i].text);
	mem_free(file->warnings);
	mem_free(file->stopped);
	buf_fini(&file->event_desc);
	buf_fini(&file->damaged);
	memset(file, 0, sizeof(*file));
}

void perf_file_warn_take(struct perf_file *file, int number, bool is_damage, const char *why,
			 char *text)
{
	file->warnings = mem_realloc(file->warnings, file->n_warnings + 1, sizeof(*file->warnings));
	file->warnings[file->n_warnings++] = (struct collector_warning){
		.number = number, .text = text, .why = why, .is_damage = is_damage};
}

void perf_file_count_unknown(struct perf_file *file, uint32_t type)
{
	for (size_t i = 0; i < file->format.n_unknown; i++)
		if (file->unknown[i].type == type) {
			file->unknown[i].n++;
			return;
		}
	if (file->format.n_unknown == PERF_FILE_UNKNOWN_TYPES) {
		file->n_unknown_more++;
		return;
	}
	file->unknown[file->format.n_unknown].type = type;
	file->unknown[file->format.n_unknown++].n = 1;
}

/* The error of what starts like this. */
static struct error *refuse(const uint8_t *head, size_t n)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *what;
	} kinds[] = {
		{"PERFFILE", 8,
		 "it is perf.data version 1 (perf before 2.6.36), which is not read"},
		{"ELIFFREP", 8,
		 "it is perf.data version 1 (perf before 2.6.36), which is not read"},
		{"\x1f\x8b", 2, "it is gzip-compressed: unpack it first, or it is a pprof profile"},
		{"\x28\xb5\x2f\xfd", 4, "it is zstd-compressed: unpack it first"},
		{"\xfd"
		 "7zXZ",
		 5, "it is xz-compressed: unpack it first"},
		{"BZh", 3, "it is bzip2-compressed: unpack it first"},
		{"PK\x03\x04", 4, "it is a zip archive"},
		{"\x7f"
		 "ELF",
		 4, "it is an ELF file (a program or library)"},
		{"DTiJ", 4, "it is a jitdump file"},
		{"JiTD", 4, "it is a jitdump file"},
	};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (n >= kinds[i].n && memcmp(head, kinds[i].bytes, kinds[i].n) == 0)
			return error_number(error_new(ERROR_BAD_DATA, "not a perf.data file: %s",
						      kinds[i].what),
					    603);
	bool is_text = true;
	for (size_t i = 0; i < n; i++)
		is_text &= isprint(head[i]) || isspace(head[i]);
	return error_number(error_new(ERROR_BAD_DATA, "not a perf.data file: %s",
				      is_text ? "it is text; output of the recorded command may "
						"have come before the data"
					      : "its first 8 bytes are not PERFILE2"),
			    603);
}

struct error *perf_file_read_head(struct perf_file *file, const uint8_t *head, size_t n)
{
	if (n == 0)
		return error_number(error_new(ERROR_BAD_DATA, "the file is empty"), 604);
	bool is_little = n >= 8 && memcmp(head, magic_little, 8) == 0;
	file->is_big_endian = n >= 8 && memcmp(head, magic_big, 8) == 0;
	if (!is_little && !file->is_big_endian)
		return refuse(head, n);
	if (n < PERF_FILE_HEAD_BYTES)
		return error_number(error_new(ERROR_BAD_DATA,
					      "truncated header: %zu bytes, need at least %d", n,
					      PERF_FILE_HEAD_BYTES),
				    601);
	bool is_host_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	file->info.is_swapped = file->is_big_endian != is_host_big;
	file->events.is_big_endian = file->is_big_endian;
	struct cursor c = cursor_make(head + 8, 8, file->info.is_swapped);
	file->format.header_size = cursor_u64(&c);
	file->format.is_big_endian = file->is_big_endian;
	file->format.is_pipe = file->format.header_size == PERF_FILE_HEAD_BYTES;
	return NULL;
}

struct section {
	uint64_t offset;
	uint64_t size;
};

static struct section read_section(struct cursor *c)
{
	struct section section;
	section.offset = cursor_u64(c);
	section.size = cursor_u64(c);
	return section;
}

static bool is_inside(const struct perf_file *file, struct section section)
{
	return section.offset <= file->size && section.size <= file->size - section.offset;
}

static struct error *read_bytes(int fd, struct section section, size_t max, struct buf *out)
{
	buf_init(out, max);
	/* At least a byte, so that an empty section has an address too. */
	size_t want = section.size < SIZE_MAX ? (size_t)section.size : SIZE_MAX;
	struct error *err = buf_reserve(out, want ? want : 1);
	if (err)
		return err;
	size_t n = 0;
	err = file_read_at(fd, section.offset, out->data, (size_t)section.size, &n);
	out->size = n;
	return err;
}

static struct error *damaged(const char *what, struct section section, const struct perf_file *file)
{
	return error_number(error_new(ERROR_BAD_DATA,
				      "corrupt header: %s (%" PRIu64 " bytes at byte %" PRIu64
				      ") does not lie inside the file of %" PRIu64 " bytes",
				      what, section.size, section.offset, file->size),
			    601);
}

/*
 * The ids of an attr whose entry c holds: their section stands at the entry's end, and before perf
 * 4.x's `inject` was mended right behind the attr.
 */
static struct section find_ids(const struct perf_file *file, const uint8_t *entry,
			       size_t entry_bytes, uint32_t attr_bytes)
{
	struct cursor c = cursor_make(entry, entry_bytes, file->info.is_swapped);
	cursor_seek(&c, entry_bytes - SECTION_BYTES);
	struct section ids = read_section(&c);
	if (!is_inside(file, ids) && attr_bytes + SECTION_BYTES < entry_bytes) {
		cursor_seek(&c, attr_bytes);
		ids = read_section(&c);
	}
	return ids;
}

static struct error *read_attr_entry(struct perf_file *file, int fd, const uint8_t *entry,
				     size_t entry_bytes, uint64_t position)
{
	struct cursor c = cursor_make(entry, entry_bytes - SECTION_BYTES, file->info.is_swapped);
	c.origin = position;
	struct perf_event_attr attr;
	uint32_t attr_bytes;
	struct error *err = perf_file_events_read_attr(&c, file->is_big_endian, &attr, &attr_bytes);
	if (err)
		return error_number(error_wrap(err, "corrupt header"), 601);
	struct section ids = find_ids(file, entry, entry_bytes, attr_bytes);
	if (!is_inside(file, ids))
		return damaged("id section", ids, file);
	struct buf bytes CLEANUP(buf_fini);
	err = read_bytes(fd, ids, PERF_FILE_IDS_MAX * sizeof(uint64_t), &bytes);
	if (!err) {
		struct cursor ids_c = cursor_make(bytes.data, bytes.size, file->info.is_swapped);
		err = perf_file_events_add(&file->events, &attr, attr_bytes, &ids_c,
					   bytes.size / sizeof(uint64_t));
	}
	return error_number(error_wrap(err, "corrupt header"), 601);
}

static struct error *read_attrs(struct perf_file *file, int fd, struct section attrs,
				uint64_t entry_bytes)
{
	if (entry_bytes < PERF_ATTR_SIZE_VER0 + SECTION_BYTES || entry_bytes > HEADER_MAX)
		return error_number(error_new(ERROR_BAD_DATA,
					      "corrupt header: attr size is %" PRIu64
					      " (bytes 16 to 23)",
					      entry_bytes),
				    601);
	if (!is_inside(file, attrs))
		return damaged("attr section", attrs, file);
	uint64_t n = attrs.size / entry_bytes;
	if (n == 0 || n > PERF_FILE_EVENTS_MAX)
		return error_number(error_new(ERROR_BAD_DATA,
					      "corrupt header: %" PRIu64
					      " events, expected 1 to %d",
					      n, PERF_FILE_EVENTS_MAX),
				    601);
	for (uint64_t i = 0; i < n; i++) {
		uint8_t entry[HEADER_MAX];
		uint64_t position = attrs.offset + i * entry_bytes;
		size_t got = 0;
		struct error *err = file_read_at(fd, position, entry, (size_t)entry_bytes, &got);
		if (!err && got < entry_bytes)
			err = damaged("attr section", attrs, file);
		if (!err)
			err = read_attr_entry(file, fd, entry, (size_t)entry_bytes, position);
		if (err)
			return err;
	}
	return NULL;
}

void perf_file_add_feature(struct perf_file *file, uint8_t feature)
{
	size_t at = 0;
	size_t n = file->format.n_features;
	while (at < n && file->features[at] < feature)
		at++;
	if (at < n && file->features[at] == feature)
		return;
	memmove(file->features + at + 1, file->features + at, n - at);
	file->features[at] = feature;
	file->format.n_features++;
}

/* Sets bit numbers in ascending order from words of word_bytes each. */
static void list_features(struct perf_file *file, const uint8_t *bits, size_t word_bytes)
{
	file->format.n_features = 0;
	for (unsigned bit = 0; bit < PERF_FILE_FEATURES; bit++) {
		size_t word = bit / (8 * word_bytes) * word_bytes;
		size_t byte = bit % (8 * word_bytes) / 8;
		if (file->is_big_endian)
			byte = word_bytes - 1 - byte;
		if (bits[word + byte] >> bit % 8 & 1)
			file->features[file->format.n_features++] = (uint8_t)bit;
	}
}

static bool has_feature(const struct perf_file *file, uint8_t feature)
{
	return memchr(file->features, feature, file->format.n_features) != NULL;
}

/* The bits are an array of the recorder's long, whose size nothing tells; each perf has HOSTNAME.
 */
static void read_feature_bits(struct perf_file *file, const uint8_t *bits)
{
	list_features(file, bits, sizeof(uint64_t));
	if (!file->is_big_endian || has_feature(file, PERF_FEATURE_HOSTNAME))
		return;
	list_features(file, bits, sizeof(uint32_t));
	if (!has_feature(file, PERF_FEATURE_HOSTNAME))
		list_features(file, bits, sizeof(uint64_t));
}

static void note_damaged(struct perf_file *file, uint8_t feature, struct section section)
{
	const char *name = collector_feature_name(feature);
	char *text CLEANUP(cleanup_mem) =
		name ? mem_copy_string(name) : mem_format("number %u", feature);
	/* The list is for people; past its cap the first ones do. */
	error_free(buf_printf(&file->damaged, "%s%s at byte %" PRIu64,
			      file->damaged.size ? ", " : "", text, section.offset));
}

static struct error *read_feature(struct perf_file *file, int fd, uint8_t feature,
				  struct section section)
{
	if (!is_inside(file, section)) {
		note_damaged(file, feature, section);
		return NULL;
	}
	if (!perf_feature_is_needed(feature))
		return NULL;
	if (section.size > FEATURE_BYTES_MAX) {
		note_damaged(file, feature, section);
		return NULL;
	}
	struct buf bytes CLEANUP(buf_fini);
	struct error *err = read_bytes(fd, section, FEATURE_BYTES_MAX, &bytes);
	if (err)
		return err;
	struct cursor c = cursor_make(bytes.data, bytes.size, file->info.is_swapped);
	c.origin = section.offset;
	if (!perf_feature_apply(file, feature, &c))
		note_damaged(file, feature, section);
	return NULL;
}

static struct error *read_features(struct perf_file *file, int fd)
{
	size_t table_bytes = file->format.n_features * SECTION_BYTES;
	uint8_t table[PERF_FILE_FEATURES * SECTION_BYTES];
	size_t n = 0;
	struct error *err = file_read_at(fd, file->data_end, table, table_bytes, &n);
	if (err)
		return err;
	struct cursor c = cursor_make(table, n, file->info.is_swapped);
	for (size_t i = 0; i < file->format.n_features && !err; i++) {
		struct section section = read_section(&c);
		if (!cursor_is_ok(&c)) {
			section.offset = file->data_end + i * SECTION_BYTES;
			note_damaged(file, file->features[i], section);
			break;
		}
		err = read_feature(file, fd, file->features[i], section);
	}
	if (file->damaged.size && file->data_end <= file->size)
		perf_file_warn_take(
			file, 601, true,
			"the file was cut or its writer had a fault; samples are not "
			"affected",
			mem_format("header features damaged and left out: %s (the file has %" PRIu64
				   " bytes)",
				   buf_string(&file->damaged), file->size));
	return err;
}

static struct error *check_data(struct perf_file *file, struct section data)
{
	if (data.offset > file->size)
		return damaged("data section", data, file);
	file->data_offset = data.offset;
	if (data.size == 0) {
		/* What follows the header are records, not the table of features. */
		file->is_unfinished = true;
		file->data_end = file->size;
		perf_file_warn_take(file, 601, true,
				    "the recorder was killed, or could not write to the end",
				    mem_format("the recording was not finished: its data size is "
					       "0; read from byte "
					       "%" PRIu64 " to the end at byte %" PRIu64,
					       data.offset, file->size));
		return NULL;
	}
	file->data_end = data.offset + data.size;
	if (data.size > UINT64_MAX - data.offset)
		return damaged("data section", data, file);
	return NULL;
}

struct error *perf_file_read_header(struct perf_file *file, int fd)
{
	uint8_t header[PERF_FILE_HEADER_BYTES] = {0};
	uint64_t size = file->format.header_size;
	if (size < FEATURES_OFFSET || size > HEADER_MAX)
		return error_number(error_new(ERROR_BAD_DATA,
					      "corrupt header: its size field is %" PRIu64
					      " (bytes 8 to 15), expected %d",
					      size, PERF_FILE_HEADER_BYTES),
				    601);
	size_t want = size < sizeof(header) ? (size_t)size : sizeof(header);
	size_t n = 0;
	struct error *err = file_read_at(fd, 0, header, want, &n);
	if (err)
		return err;
	if (n < want)
		return error_number(
			error_new(ERROR_BAD_DATA, "truncated header: %zu bytes, need %zu", n, want),
			601);
	struct cursor c = cursor_make(header, sizeof(header), file->info.is_swapped);
	cursor_seek(&c, PERF_FILE_HEAD_BYTES);
	uint64_t entry_bytes = cursor_u64(&c);
	struct section attrs = read_section(&c);
	struct section data = read_section(&c);
	if (want == sizeof(header))
		read_feature_bits(file, header + FEATURES_OFFSET);
	err = read_attrs(file, fd, attrs, entry_bytes);
	if (!err)
		err = check_data(file, data);
	if (!err && !file->is_unfinished)
		err = read_features(file, fd);
	return err;
}

/* "33, 40" of the features that nobody here knows. */
static void warn_features(struct perf_file *file)
{
	struct buf list CLEANUP(buf_fini);
	buf_init(&list, PERF_FILE_FEATURES * 8);
	for (size_t i = 0; i < file->format.n_features; i++)
		if (file->features[i] >= PERF_FEATURE_KNOWN &&
		    file->features[i] != file->end_feature)
			error_free(buf_printf(&list, "%s%u", list.size ? ", " : "",
					      file->features[i]));
	if (list.size)
		perf_file_warn_take(
			file, 602, false, "the file comes from a newer perf or another recorder",
			mem_format("unknown header features skipped: %s", buf_string(&list)));
}

void perf_file_warn_skipped(struct perf_file *file)
{
	warn_features(file);
	if (file->format.is_pipe && file->damaged.size)
		perf_file_warn_take(
			file, 601, true, "the stream was damaged or its writer had a fault",
			mem_format("records about the recording damaged and left out: %s",
				   buf_string(&file->damaged)));
	if (!file->format.n_unknown)
		return;
	struct buf list CLEANUP(buf_fini);
	buf_init(&list, PERF_FILE_UNKNOWN_TYPES * 64);
	for (size_t i = 0; i < file->format.n_unknown; i++)
		error_free(buf_printf(&list, "%s%" PRIu64 " of type %" PRIu32, i ? ", " : "",
				      file->unknown[i].n, file->unknown[i].type));
	if (file->n_unknown_more)
		error_free(buf_printf(&list, ", %" PRIu64 " of other types", file->n_unknown_more));
	perf_file_warn_take(
		file, 602, false, "the file comes from a newer perf or another recorder",
		mem_format("unknown records skipped by their size: %s", buf_string(&list)));
}
