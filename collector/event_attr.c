/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/event_attr.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "collector/tracepoint.h"

enum { BP_R = 1, BP_W = 2, BP_X = 4, NEAR_MAX = 3, NAMES_MAX_BYTES = 4 << 20 };

const struct event_attr_host event_attr_host_system = {
	.tracepoint_id = tracepoint_read_id,
	.tracepoint_names = tracepoint_read_names,
	.pfm_encode = pfm_event_encode,
};

struct known_event {
	const char *name;
	uint32_t type;
	uint32_t config;
};

static const struct known_event known_events[] = {
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
	{"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"idle-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"idle-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
	{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	{"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
	{"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
	{"dummy", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY},
	{"bpf-output", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT},
	{"cgroup-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CGROUP_SWITCHES},
};

/* In the order of the ABI's cache ids. */
static const char *const cache_names[] = {"L1-dcache", "L1-icache", "LLC", "dTLB",
					  "iTLB",      "branch",    "node"};
/* op << 8 | result << 16, as the ABI packs them. */
static const struct {
	const char *name;
	uint32_t bits;
} cache_operations[] = {
	{"loads", 0},		{"load-misses", 1 << 16},
	{"stores", 1 << 8},	{"store-misses", 1 << 8 | 1 << 16},
	{"prefetches", 2 << 8}, {"prefetch-misses", 2 << 8 | 1 << 16},
};

static bool parse_modifiers(const char *text, struct perf_event_attr *attr)
{
	bool levels = false, user = false, kernel = false, hv = false, guest = false, host = false;
	unsigned precise = 0;

	for (const char *p = text; *p; p++) {
		switch (*p) {
		case 'u':
			levels = user = true;
			break;
		case 'k':
			levels = kernel = true;
			break;
		case 'h':
			levels = hv = true;
			break;
		case 'G':
			guest = true;
			break;
		case 'H':
			host = true;
			break;
		case 'I':
			perf_attr_set(attr, PERF_ATTR_EXCLUDE_IDLE, 1);
			break;
		case 'p':
			precise++;
			break;
		case 'D':
			perf_attr_set(attr, PERF_ATTR_PINNED, 1);
			break;
		case 'e':
			perf_attr_set(attr, PERF_ATTR_EXCLUSIVE, 1);
			break;
		default:
			return false;
		}
	}
	if (levels) {
		perf_attr_set(attr, PERF_ATTR_EXCLUDE_USER, !user);
		perf_attr_set(attr, PERF_ATTR_EXCLUDE_KERNEL, !kernel);
		perf_attr_set(attr, PERF_ATTR_EXCLUDE_HV, !hv);
	}
	if (guest != host) {
		perf_attr_set(attr, PERF_ATTR_EXCLUDE_GUEST, host);
		perf_attr_set(attr, PERF_ATTR_EXCLUDE_HOST, guest);
	}
	if (precise > 3)
		return false;
	attr->flags |= (uint64_t)precise << PERF_ATTR_PRECISE_IP;
	return true;
}

static bool parse_cache(const char *name, struct perf_event_attr *attr)
{
	for (uint32_t i = 0; i < ARRAY_LEN(cache_names); i++) {
		size_t n = strlen(cache_names[i]);
		if (strncasecmp(name, cache_names[i], n) != 0 || name[n] != '-')
			continue;
		for (size_t j = 0; j < ARRAY_LEN(cache_operations); j++) {
			if (strcmp(name + n + 1, cache_operations[j].name) != 0)
				continue;
			attr->type = PERF_TYPE_HW_CACHE;
			attr->config = i | cache_operations[j].bits;
			return true;
		}
	}
	return false;
}

static bool parse_raw(const char *name, struct perf_event_attr *attr)
{
	size_t digits = strspn(name + 1, "0123456789abcdefABCDEF");

	if (name[0] != 'r' || digits == 0 || digits > 16 || name[1 + digits])
		return false;
	attr->type = PERF_TYPE_RAW;
	attr->config = strtoull(name + 1, NULL, 16);
	return true;
}

/* A name without modifiers and without a colon. */
static bool parse_known(const char *name, struct perf_event_attr *attr)
{
	for (size_t i = 0; i < ARRAY_LEN(known_events); i++) {
		if (strcmp(name, known_events[i].name) == 0) {
			attr->type = known_events[i].type;
			attr->config = known_events[i].config;
			return true;
		}
	}
	return parse_cache(name, attr) || parse_raw(name, attr);
}

/* What stands behind "mem:": 0xADDR[/len][:rwx][:modifiers]. */
static bool parse_breakpoint(const char *text, struct perf_event_attr *attr)
{
	char *p;

	if (!isxdigit((unsigned char)text[0]))
		return false;
	attr->type = PERF_TYPE_BREAKPOINT;
	attr->config1 = strtoull(text, &p, 0);
	attr->config2 = 0;
	if (*p == '/') {
		attr->config2 = strtoull(p + 1, &p, 10);
		if (attr->config2 != 1 && attr->config2 != 2 && attr->config2 != 4 &&
		    attr->config2 != 8)
			return false;
	}
	size_t access = *p == ':' ? strspn(p + 1, "rwx") : 0;
	if (access && (p[1 + access] == 0 || p[1 + access] == ':')) {
		for (size_t i = 1; i <= access; i++)
			attr->bp_type |= p[i] == 'r' ? BP_R : p[i] == 'w' ? BP_W : BP_X;
		p += 1 + access;
	}
	if (!attr->bp_type)
		attr->bp_type = BP_R | BP_W;
	/* An instruction breakpoint has the length of a word of the CPU (perf_event_open(2)). */
	if (!attr->config2)
		attr->config2 = attr->bp_type & BP_X ? sizeof(long) : 4;
	return *p == 0 || (*p == ':' && parse_modifiers(p + 1, attr));
}

static bool parse_pfm(const char *name, const struct event_attr_host *host,
		      struct perf_event_attr *attr)
{
	struct pfm_event event;

	if (!host->pfm_encode(name, &event))
		return false;
	attr->type = event.type;
	attr->config = event.config;
	attr->config1 = event.config1;
	attr->config2 = event.config2;
	attr->flags |= (uint64_t)(event.precise_ip & 3) << PERF_ATTR_PRECISE_IP;
	perf_attr_set(attr, PERF_ATTR_EXCLUDE_USER, event.exclude_user);
	perf_attr_set(attr, PERF_ATTR_EXCLUDE_KERNEL, event.exclude_kernel);
	perf_attr_set(attr, PERF_ATTR_EXCLUDE_HV, event.exclude_hv);
	return true;
}

/* Letters that must change to get from a to b, at most EVENT_ATTR_MAX_NAME of each looked at. */
static unsigned edit_distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	unsigned row[EVENT_ATTR_MAX_NAME + 1];

	if (n_a > EVENT_ATTR_MAX_NAME || n_b > EVENT_ATTR_MAX_NAME)
		return UINT32_MAX;
	for (size_t j = 0; j <= n_b; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= n_a; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= n_b; j++) {
			unsigned change = diagonal + (a[i - 1] != b[j - 1]);
			unsigned skip = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
			diagonal = row[j];
			row[j] = change < skip ? change : skip;
		}
	}
	return row[n_b];
}

struct near_names {
	const char *wanted;
	size_t n;
	unsigned distances[NEAR_MAX];
	char names[NEAR_MAX][EVENT_ATTR_MAX_NAME];
};

static void offer_near(struct near_names *near, const char *name, size_t size)
{
	size_t n_wanted = strlen(near->wanted);
	unsigned distance = edit_distance(near->wanted, n_wanted, name, size);

	if (size >= EVENT_ATTR_MAX_NAME || distance > n_wanted / 3 + 1)
		return;
	size_t at = near->n;
	while (at > 0 && near->distances[at - 1] > distance)
		at--;
	if (at == NEAR_MAX)
		return;
	size_t n_kept = near->n < NEAR_MAX ? near->n : NEAR_MAX - 1;
	memmove(&near->distances[at + 1], &near->distances[at],
		(n_kept - at) * sizeof(near->distances[0]));
	memmove(near->names[at + 1], near->names[at], (n_kept - at) * sizeof(near->names[0]));
	near->distances[at] = distance;
	memcpy(near->names[at], name, size);
	near->names[at][size] = 0;
	near->n = n_kept + 1;
}

static struct error *unknown_event(const char *name, const struct event_attr_host *host)
{
	struct near_names near = {.wanted = name};
	struct buf names CLEANUP(buf_fini);
	struct buf text CLEANUP(buf_fini);

	buf_init(&names, NAMES_MAX_BYTES);
	buf_init(&text, 1024);
	for (size_t i = 0; i < ARRAY_LEN(known_events); i++)
		offer_near(&near, known_events[i].name, strlen(known_events[i].name));
	for (size_t i = 0; i < ARRAY_LEN(cache_names); i++) {
		for (size_t j = 0; j < ARRAY_LEN(cache_operations); j++) {
			buf_clear(&text);
			error_free(buf_printf(&text, "%s-%s", cache_names[i],
					      cache_operations[j].name));
			offer_near(&near, buf_string(&text), text.size);
		}
	}
	if (strchr(name, ':'))
		host->tracepoint_names(&names);
	for (const char *p = buf_string(&names); *p;) {
		size_t n = strcspn(p, "\n");
		offer_near(&near, p, n);
		p += n + (p[n] == '\n');
	}
	buf_clear(&text);
	for (size_t i = 0; i < near.n; i++)
		error_free(buf_printf(&text, "%s%s", i ? ", " : "; near: ", near.names[i]));
	return error_number(
		error_new(ERROR_USAGE, "event not known: %s%s", name, buf_string(&text)), 105);
}

/* "system:name" or "system:name:modifiers". */
static struct error *parse_tracepoint(const char *text, const struct event_attr_host *host,
				      struct perf_event_attr *attr)
{
	char system[EVENT_ATTR_MAX_NAME], name[EVENT_ATTR_MAX_NAME];
	size_t n_system = strcspn(text, ":");
	const char *rest = text + n_system + 1;
	size_t n_name = strcspn(rest, ":");

	memcpy(system, text, n_system);
	system[n_system] = 0;
	memcpy(name, rest, n_name);
	name[n_name] = 0;
	if (n_system == 0 || n_name == 0)
		return error_no_entry;
	if (rest[n_name] && !parse_modifiers(rest + n_name + 1, attr))
		return error_no_entry;
	struct error *err = host->tracepoint_id(system, name, &attr->config);
	if (!err)
		attr->type = PERF_TYPE_TRACEPOINT;
	return err;
}

static struct error *parse_one(const char *text, const struct event_attr_host *host,
			       struct perf_event_attr *attr)
{
	char name[EVENT_ATTR_MAX_NAME];
	const char *colon = strchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : strlen(text);
	struct perf_event_attr blank = *attr;

	if (strncmp(text, "mem:", 4) == 0) {
		if (parse_breakpoint(text + 4, attr))
			return NULL;
		return error_number(error_new(ERROR_USAGE,
					      "breakpoint %s: write mem:0xADDRESS[/1|2|4|8][:rwx]",
					      text),
				    105);
	}
	memcpy(name, text, n);
	name[n] = 0;
	if (parse_known(name, attr)) {
		if (!colon || parse_modifiers(colon + 1, attr))
			return NULL;
		return error_number(
			error_new(ERROR_USAGE, "event %s: modifiers are of ukhGHIpDe", text), 105);
	}
	struct error *err = colon ? parse_tracepoint(text, host, attr) : error_no_entry;
	if (!err)
		return NULL;
	*attr = blank;
	if (parse_pfm(text, host, attr)) {
		error_free(err);
		return NULL;
	}
	*attr = blank;
	/* Tracefs is there, or is not the reason. */
	if (error_get_code(err) == ERROR_NO_ENTRY) {
		error_free(err);
		return unknown_event(text, host);
	}
	return error_number(err, 105);
}

struct error *event_attr_parse(const char *text, const struct event_attr_host *host,
			       struct event_attr_list *out)
{
	out->n = 0;
	for (const char *p = text;;) {
		size_t n = strcspn(p, ",");
		if (n == 0 || n >= EVENT_ATTR_MAX_NAME)
			return error_number(error_new(ERROR_USAGE,
						      "event list \"%.200s\": a name is %s", text,
						      n ? "too long" : "empty"),
					    105);
		if (out->n == EVENT_ATTR_MAX_EVENTS)
			return error_number(error_new(ERROR_LIMIT, "more than %d events",
						      EVENT_ATTR_MAX_EVENTS),
					    105);
		struct event_attr *event = &out->events[out->n];
		*event = (struct event_attr){0};
		memcpy(event->name, p, n);
		struct error *err = parse_one(event->name, host, &event->attr);
		if (err)
			return err;
		out->n++;
		p += n;
		if (*p++ == 0)
			return NULL;
	}
}

/* The same for every event, so that side-band trailers have one shape. */
static void set_common(struct perf_event_attr *attr)
{
	/* What follows in the struct is unused, so the older size serves every kernel and reader.
	 */
	attr->size = offsetof(struct perf_event_attr, config3);
	attr->sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			    PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_IDENTIFIER;
	attr->read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	attr->clockid = CLOCK_MONOTONIC;
	perf_attr_set(attr, PERF_ATTR_USE_CLOCKID, 1);
	perf_attr_set(attr, PERF_ATTR_SAMPLE_ID_ALL, 1);
	perf_attr_set(attr, PERF_ATTR_DISABLED, 1);
}

bool event_attr_is_clock(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
						    attr->config == PERF_COUNT_SW_TASK_CLOCK);
}

void event_attr_set_sampling(struct perf_event_attr *attr,
			     const struct event_attr_sampling *sampling)
{
	bool is_counted_singly =
		attr->type == PERF_TYPE_TRACEPOINT || attr->type == PERF_TYPE_BREAKPOINT;

	set_common(attr);
	if (sampling->period) {
		attr->sample_period = sampling->period;
	} else if (is_counted_singly && !sampling->frequency_hz) {
		attr->sample_period = 1;
	} else {
		attr->sample_period =
			sampling->frequency_hz ? sampling->frequency_hz : EVENT_ATTR_DEFAULT_HZ;
		perf_attr_set(attr, PERF_ATTR_FREQ, 1);
	}
	if (event_attr_is_clock(attr))
		perf_attr_set(attr, PERF_ATTR_EXCLUDE_IDLE, 1);
}

/*
 * Not PERF_ATTR_BUILD_ID: while one listener of the host has it, kernels up to 6.18 at least set
 * MMAP_BUILD_ID in the MMAP2 records of all others too, over device and inode, and perf record
 * crashes on that. Live, symcache reads build-ids from the mapped files themselves.
 */
void event_attr_set_side_band(struct perf_event_attr *attr)
{
	static const enum perf_abi_attr_flag on[] = {
		PERF_ATTR_MMAP,	     PERF_ATTR_MMAP2,	  PERF_ATTR_COMM,	PERF_ATTR_COMM_EXEC,
		PERF_ATTR_TASK,	     PERF_ATTR_CGROUP,	  PERF_ATTR_NAMESPACES, PERF_ATTR_KSYMBOL,
		PERF_ATTR_BPF_EVENT, PERF_ATTR_TEXT_POKE,
	};

	*attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .sample_period = 1};
	set_common(attr);
	for (size_t i = 0; i < ARRAY_LEN(on); i++)
		perf_attr_set(attr, on[i], 1);
}

void event_attr_set_keeper(struct perf_event_attr *attr, uint32_t wakeup_bytes)
{
	*attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .sample_period = 1};
	set_common(attr);
	attr->read_format = 0;
	perf_attr_set(attr, PERF_ATTR_EXCLUDE_KERNEL, 1);
	perf_attr_set(attr, PERF_ATTR_EXCLUDE_HV, 1);
	perf_attr_set(attr, PERF_ATTR_WATERMARK, 1);
	attr->wakeup_events = wakeup_bytes;
}

void event_attr_set_fallback(struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_CPU_CLOCK;
	attr->flags &= ~(3ull << PERF_ATTR_PRECISE_IP);
	perf_attr_set(attr, PERF_ATTR_EXCLUDE_IDLE, 1);
}

bool event_attr_is_cycles(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE && attr->config == PERF_COUNT_HW_CPU_CYCLES;
}
