/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/perf_features.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "base/mem.h"

enum {
	TEXT_MAX = 4096,       /* of one header string */
	CMDLINE_MAX = 1 << 20, /* of all words */
	BUILD_ID_FIELD = 24,   /* 20 bytes, or up to 20 with their size in the next, padded */
	BUILD_ID_DEFAULT = 20,
};

static const char *const names[] = {
	[PERF_FEATURE_TRACING_DATA] = "TRACING_DATA",
	[PERF_FEATURE_BUILD_ID] = "BUILD_ID",
	[PERF_FEATURE_HOSTNAME] = "HOSTNAME",
	[PERF_FEATURE_OSRELEASE] = "OSRELEASE",
	[PERF_FEATURE_VERSION] = "VERSION",
	[PERF_FEATURE_ARCH] = "ARCH",
	[PERF_FEATURE_NRCPUS] = "NRCPUS",
	[PERF_FEATURE_CPUDESC] = "CPUDESC",
	[PERF_FEATURE_CPUID] = "CPUID",
	[PERF_FEATURE_TOTAL_MEM] = "TOTAL_MEM",
	[PERF_FEATURE_CMDLINE] = "CMDLINE",
	[PERF_FEATURE_EVENT_DESC] = "EVENT_DESC",
	[PERF_FEATURE_CPU_TOPOLOGY] = "CPU_TOPOLOGY",
	[PERF_FEATURE_NUMA_TOPOLOGY] = "NUMA_TOPOLOGY",
	[PERF_FEATURE_BRANCH_STACK] = "BRANCH_STACK",
	[PERF_FEATURE_PMU_MAPPINGS] = "PMU_MAPPINGS",
	[PERF_FEATURE_GROUP_DESC] = "GROUP_DESC",
	[PERF_FEATURE_AUXTRACE] = "AUXTRACE",
	[PERF_FEATURE_STAT] = "STAT",
	[PERF_FEATURE_CACHE] = "CACHE",
	[PERF_FEATURE_SAMPLE_TIME] = "SAMPLE_TIME",
	[PERF_FEATURE_MEM_TOPOLOGY] = "MEM_TOPOLOGY",
	[PERF_FEATURE_CLOCKID] = "CLOCKID",
	[PERF_FEATURE_DIR_FORMAT] = "DIR_FORMAT",
	[PERF_FEATURE_BPF_PROG_INFO] = "BPF_PROG_INFO",
	[PERF_FEATURE_BPF_BTF] = "BPF_BTF",
	[PERF_FEATURE_COMPRESSED] = "COMPRESSED",
	[PERF_FEATURE_CPU_PMU_CAPS] = "CPU_PMU_CAPS",
	[PERF_FEATURE_CLOCK_DATA] = "CLOCK_DATA",
	[PERF_FEATURE_HYBRID_TOPOLOGY] = "HYBRID_TOPOLOGY",
	[PERF_FEATURE_PMU_CAPS] = "PMU_CAPS",
	[PERF_FEATURE_CPU_DOMAIN_INFO] = "CPU_DOMAIN_INFO",
};

const char *collector_feature_name(uint8_t feature)
{
	return feature < ARRAY_LEN(names) ? names[feature] : NULL;
}

bool perf_feature_is_needed(uint8_t feature)
{
	switch (feature) {
	case PERF_FEATURE_BUILD_ID:
	case PERF_FEATURE_HOSTNAME:
	case PERF_FEATURE_OSRELEASE:
	case PERF_FEATURE_VERSION:
	case PERF_FEATURE_ARCH:
	case PERF_FEATURE_NRCPUS:
	case PERF_FEATURE_TOTAL_MEM:
	case PERF_FEATURE_CMDLINE:
	case PERF_FEATURE_EVENT_DESC:
	case PERF_FEATURE_GROUP_DESC:
	case PERF_FEATURE_SAMPLE_TIME:
	case PERF_FEATURE_COMPRESSED:
	case PERF_FEATURE_CLOCK_DATA:
		return true;
	default:
		return false;
	}
}

/* u32 length (padding included), then the text with its 0. */
static struct cursor read_text(struct cursor *c)
{
	uint32_t length = cursor_u32(c);
	return cursor_sub(c, length);
}

/* Up to the first 0, cut to TEXT_MAX; the caller frees it. */
static char *copy_text(const struct cursor *text)
{
	size_t n = cursor_left(text);
	n = strnlen((const char *)text->next, n < TEXT_MAX ? n : TEXT_MAX);
	return mem_format("%.*s", (int)n, (const char *)text->next);
}

static bool take_text(struct cursor *c, char **field)
{
	struct cursor text = read_text(c);
	if (!cursor_is_ok(c))
		return false;
	mem_free(*field);
	*field = copy_text(&text);
	return true;
}

/* n words; hiperf writes the whole line as one text without their number. */
static bool take_cmdline(struct cursor *c, char **field)
{
	struct cursor whole = *c;
	struct buf words CLEANUP(buf_fini);
	buf_init(&words, CMDLINE_MAX);
	uint32_t n = cursor_u32(c);
	for (uint32_t i = 0; i < n && cursor_is_ok(c); i++) {
		struct cursor text = read_text(c);
		if (!cursor_is_ok(c))
			break;
		char *word CLEANUP(cleanup_mem) = copy_text(&text);
		/* Past the cap the rest of the words is of no interest. */
		error_free(buf_printf(&words, "%s%s", i ? " " : "", word));
	}
	if (!cursor_is_ok(c))
		return take_text(&whole, field);
	mem_free(*field);
	*field = mem_copy_string(buf_string(&words));
	return true;
}

static bool take_event_desc(struct perf_file *file, struct cursor *c)
{
	uint32_t n = cursor_u32(c);
	uint32_t attr_bytes = cursor_u32(c);
	for (uint32_t i = 0; i < n && cursor_is_ok(c); i++) {
		cursor_skip(c, attr_bytes);
		uint32_t n_ids = cursor_u32(c);
		struct cursor text = read_text(c);
		uint32_t index = i;
		for (uint32_t j = 0; j < n_ids && cursor_is_ok(c); j++) {
			uint64_t id = cursor_u64(c);
			uint32_t found = j ? PERF_EVENT_INDEX_NONE
					   : perf_file_events_find(&file->events, id);
			if (found != PERF_EVENT_INDEX_NONE)
				index = found;
		}
		if (!cursor_is_ok(c) || index >= file->info.n_events)
			continue;
		char *name CLEANUP(cleanup_mem) = copy_text(&text);
		perf_file_events_set_name(&file->events, index, name);
	}
	return cursor_is_ok(c);
}

static bool take_group_desc(struct perf_file *file, struct cursor *c)
{
	struct perf_source_info *info = &file->info;
	uint32_t n = cursor_u32(c);
	uint32_t n_left = info->n_events; /* groups do not overlap */
	for (uint32_t i = 0; i < n && cursor_is_ok(c); i++) {
		read_text(c);
		uint32_t leader = cursor_u32(c);
		uint32_t n_members = cursor_u32(c);
		if (!cursor_is_ok(c) || leader >= info->n_events ||
		    n_members > info->n_events - leader || n_members > n_left)
			return false;
		n_left -= n_members;
		for (uint32_t j = 0; j < n_members; j++)
			info->events[leader + j].leader = leader;
	}
	return cursor_is_ok(c);
}

static bool add_build_id(struct perf_file *file, int32_t pid, uint16_t misc, struct cursor *c)
{
	struct perf_source_info *info = &file->info;
	const uint8_t *id = cursor_bytes(c, BUILD_ID_FIELD);
	if (!id || info->n_build_ids >= PERF_FILE_BUILD_IDS_MAX)
		return false;
	size_t size = BUILD_ID_DEFAULT;
	if (misc & PERF_RECORD_MISC_BUILD_ID_SIZE)
		size = id[BUILD_ID_DEFAULT];
	if (size > BUILD_ID_DEFAULT)
		return false;
	if (info->n_build_ids == file->build_ids_capacity) {
		file->build_ids_capacity =
			file->build_ids_capacity ? 2 * file->build_ids_capacity : 64;
		info->build_ids = mem_realloc(info->build_ids, file->build_ids_capacity,
					      sizeof(*info->build_ids));
	}
	info->build_ids[info->n_build_ids++] = (struct perf_build_id_entry){
		.pid = pid, .misc = misc, .id = build_id_make(id, size), .filename = copy_text(c)};
	return true;
}

bool perf_feature_add_build_id(struct perf_file *file, uint16_t misc, struct cursor *c)
{
	int32_t pid = (int32_t)cursor_u32(c);
	return add_build_id(file, pid, misc, c);
}

static void drop_build_ids(struct perf_file *file)
{
	struct perf_source_info *info = &file->info;
	for (uint32_t i = 0; i < info->n_build_ids; i++)
		mem_free(info->build_ids[i].filename);
	info->n_build_ids = 0;
}

/* Records of HEADER_BUILD_ID without gaps; all of them or none. */
static bool read_build_ids(struct perf_file *file, struct cursor table, bool has_pid)
{
	while (cursor_left(&table) > 0) {
		cursor_skip(&table, sizeof(uint32_t));
		uint16_t misc = cursor_u16(&table);
		uint16_t size = cursor_u16(&table);
		if (size < sizeof(struct perf_event_header) + BUILD_ID_FIELD)
			break;
		struct cursor body = cursor_sub(&table, size - sizeof(struct perf_event_header));
		int32_t pid = has_pid ? (int32_t)cursor_u32(&body) : -1;
		if (!cursor_is_ok(&body) || !add_build_id(file, pid, misc, &body))
			break;
		if (cursor_left(&table) == 0)
			return true;
	}
	drop_build_ids(file);
	return false;
}

/*
 * Before 2.6.36 the entries had no pid. Read with one, the kernel's name then seems to lack its
 * first four bytes.
 */
static bool take_build_ids(struct perf_file *file, const struct cursor *c)
{
	static const char cut_name[] = "nel.kallsyms]";
	const struct perf_source_info *info = &file->info;
	drop_build_ids(file);
	if (cursor_left(c) == 0)
		return true;
	bool is_ok = read_build_ids(file, *c, true);
	for (uint32_t i = 0; i < info->n_build_ids; i++)
		if (strncmp(info->build_ids[i].filename, cut_name, sizeof(cut_name) - 1) == 0) {
			drop_build_ids(file);
			return read_build_ids(file, *c, false);
		}
	return is_ok;
}

static bool take_clock_data(struct perf_file *file, struct cursor *c)
{
	uint32_t version = cursor_u32(c);
	int32_t clockid = (int32_t)cursor_u32(c);
	uint64_t wall_ns = cursor_u64(c);
	uint64_t event_ns = cursor_u64(c);
	if (!cursor_is_ok(c))
		return false;
	if (version != 1)
		return true;
	file->info.clockid = clockid;
	file->info.has_clock_pair = true;
	file->info.clock_pair_wall_ns = wall_ns;
	file->info.clock_pair_event_ns = event_ns;
	return true;
}

bool perf_feature_apply(struct perf_file *file, uint8_t feature, struct cursor *c)
{
	struct perf_source_info *info = &file->info;
	switch (feature) {
	case PERF_FEATURE_BUILD_ID:
		return take_build_ids(file, c);
	case PERF_FEATURE_HOSTNAME:
		return take_text(c, &info->hostname);
	case PERF_FEATURE_OSRELEASE:
		return take_text(c, &info->os_release);
	case PERF_FEATURE_VERSION:
		return take_text(c, &info->perf_version);
	case PERF_FEATURE_ARCH:
		return take_text(c, &info->arch);
	case PERF_FEATURE_NRCPUS:
		info->n_cpus_available = cursor_u32(c);
		info->n_cpus_online = cursor_u32(c);
		return cursor_is_ok(c);
	case PERF_FEATURE_TOTAL_MEM:
		info->total_memory_kib = cursor_u64(c);
		return cursor_is_ok(c);
	case PERF_FEATURE_CMDLINE:
		return take_cmdline(c, &info->cmdline);
	case PERF_FEATURE_EVENT_DESC:
		return take_event_desc(file, c);
	case PERF_FEATURE_GROUP_DESC:
		return take_group_desc(file, c);
	case PERF_FEATURE_SAMPLE_TIME:
		info->first_sample_ns = cursor_u64(c);
		info->last_sample_ns = cursor_u64(c);
		return cursor_is_ok(c);
	case PERF_FEATURE_COMPRESSED:
		cursor_skip(c, sizeof(uint32_t)); /* version */
		file->compression = cursor_u32(c);
		return cursor_is_ok(c);
	case PERF_FEATURE_CLOCK_DATA:
		return take_clock_data(file, c);
	default:
		return true;
	}
}

void perf_feature_apply_event_desc(struct perf_file *file)
{
	if (file->event_desc.size == 0)
		return;
	struct cursor c =
		cursor_make(file->event_desc.data, file->event_desc.size, file->info.is_swapped);
	(void)take_event_desc(file, &c);
}
