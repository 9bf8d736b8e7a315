/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/live_options.h"

#include <unistd.h>

#include "base/mem.h"

enum { MAX_PIDS = 4096, MAX_FREQUENCY_HZ = 1000000 };

const struct cli_option live_options_table[] = {
	{LIVE_ALL, "all", NULL, "the whole host", 'a', true},
	{LIVE_PID, "pid", "PID,...", "these processes, their threads and later children", 'p',
	 true},
	{LIVE_CGROUP, "cgroup", "PATH", "a cgroup and all below it", 'G', true},
	{LIVE_FREQUENCY, "frequency", "HZ", "samples per second and CPU (default 99)", 'F', true},
	{LIVE_EVENT, "event", "EVENT,...", "what to sample (default cycles, else cpu-clock)", 'e',
	 false},
	{LIVE_COUNT, "count", "N", "a sample every N events instead of a frequency", 'c', false},
	{LIVE_RING_SIZE, "ring-size", "SIZE",
	 "ring buffer of each CPU: 512K, 4M; without unit\nin pages", 'm', false},
	{LIVE_USER_ONLY, "user-only", NULL, "no kernel frames and no time in the kernel", 0, false},
	{LIVE_EXCLUDE_SELF, "exclude-self", NULL, "without perfpipe's own samples", 0, false},
	{0},
};

void live_options_fini(struct live_options *options)
{
	mem_free(options->pids);
	mem_free(options->events);
	*options = (struct live_options){0};
}

static struct error *add_pids(struct live_options *options, const char *list)
{
	char word[32];
	size_t n = options->live.n_pids;
	while (cli_next_word(&list, word, sizeof(word))) {
		uint64_t pid;
		struct error *err = cli_parse_number("--pid", word, 1, INT32_MAX, &pid);
		if (err)
			return err;
		if (n == MAX_PIDS)
			return cli_usage("--pid takes at most %d processes; use --cgroup or --all",
					 MAX_PIDS);
		options->pids = mem_realloc(options->pids, n + 1, sizeof(*options->pids));
		options->pids[n++] = (pid_t)pid;
	}
	options->live.pids = options->pids;
	options->live.n_pids = n;
	return NULL;
}

/* Given several times, they are one list, as in perf. */
static struct error *add_events(struct live_options *options, const char *list)
{
	char *all = options->events ? mem_format("%s,%s", options->events, list)
				    : mem_copy_string(list);
	mem_free(options->events);
	options->events = all;
	options->live.events = all;
	return NULL;
}

static struct error *set_frequency(struct live_options *options, const char *value)
{
	uint64_t hz = 0;
	struct error *err = cli_parse_number("--frequency", value, 1, MAX_FREQUENCY_HZ, &hz);
	options->live.frequency_hz = (uint32_t)hz;
	options->has_frequency = true;
	return err;
}

static struct error *set_ring_size(struct live_options *options, const char *value)
{
	bool has_unit = false;
	struct error *err =
		cli_parse_size("--ring-size", value, &options->live.ring_bytes, &has_unit);
	if (!err && !has_unit)
		options->live.ring_bytes *= (uint64_t)sysconf(_SC_PAGESIZE);
	return err;
}

static struct error *set_target(struct live_options *options, int id, const char *value)
{
	if (id == LIVE_ALL && !options->is_all) {
		options->is_all = true;
		options->n_targets++;
	}
	if (id == LIVE_PID) {
		options->n_targets += options->live.n_pids == 0;
		return add_pids(options, value);
	}
	if (id == LIVE_CGROUP) {
		if (options->live.cgroup)
			return cli_usage("--cgroup can be given once");
		options->live.cgroup = value;
		options->n_targets++;
	}
	return NULL;
}

struct error *live_options_set(struct live_options *options, int id, const char *value)
{
	switch (id) {
	case LIVE_ALL:
	case LIVE_PID:
	case LIVE_CGROUP:
		return set_target(options, id, value);
	case LIVE_FREQUENCY:
		return set_frequency(options, value);
	case LIVE_COUNT:
		return cli_parse_number("--count", value, 1, INT64_MAX, &options->live.period);
	case LIVE_EVENT:
		return add_events(options, value);
	case LIVE_RING_SIZE:
		return set_ring_size(options, value);
	case LIVE_USER_ONLY:
		options->live.is_user_only = true;
		break;
	case LIVE_EXCLUDE_SELF:
		options->live.exclude_self = true;
		break;
	default:
		break;
	}
	return NULL;
}

struct error *live_options_choose(struct live_options *options, char **command)
{
	if (options->n_targets > 1)
		return cli_usage("--all, --pid and --cgroup exclude each other");
	if (options->has_frequency && options->live.period)
		return cli_usage("--frequency and --count exclude each other");
	if (options->is_all) {
		options->live.scope = COLLECTOR_SYSTEM;
	} else if (options->live.n_pids) {
		options->live.scope = COLLECTOR_PIDS;
	} else if (options->live.cgroup) {
		options->live.scope = COLLECTOR_CGROUP;
	} else if (command) {
		options->live.scope = COLLECTOR_COMMAND;
		options->live.command = command;
	} else {
		return cli_usage("nothing to sample: name a command, or use -a, -p or -G");
	}
	return NULL;
}
