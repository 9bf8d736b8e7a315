/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/ring_set.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "collector/event_attr.h"

void ring_set_init(struct ring_set *set, struct event_opener *opener,
		   struct perf_event_info *events, uint32_t n_events)
{
	*set = (struct ring_set){.opener = opener, .events = events, .n_events = n_events};
	hash_map_init(&set->event_of_id);
}

static void close_rings(struct ring_set *set)
{
	for (uint32_t i = 0; i < set->n_cpus; i++) {
		perf_ring_close(&set->cpus[i].ring);
		close(set->cpus[i].keeper_fd);
	}
	set->n_cpus = 0;
}

void ring_set_fini(struct ring_set *set)
{
	for (size_t i = 0; i < set->n_open; i++)
		close(set->open[i].fd);
	close_rings(set);
	mem_free(set->open);
	mem_free(set->cpus);
	hash_map_fini(&set->event_of_id);
	*set = (struct ring_set){0};
}

struct error *ring_set_explain(int errno_value, const char *what)
{
	struct rlimit limit = {0};

	if (errno_value != EMFILE && errno_value != ENFILE)
		return event_open_explain(errno_value, what);
	getrlimit(RLIMIT_NOFILE, &limit);
	return error_number(error_new(ERROR_LIMIT,
				      "%s: out of file descriptors (RLIMIT_NOFILE is %llu)", what,
				      (unsigned long long)limit.rlim_cur),
			    107);
}

/* The keeper of one CPU, and its ring if it is granted. */
static struct error *open_ring(struct ring_set *set, uint32_t cpu, bool *is_refused_out)
{
	struct perf_event_attr attr;
	struct ring_cpu made = {.cpu = cpu};

	*is_refused_out = false;
	event_attr_set_keeper(&attr, set->wakeup_bytes ? set->wakeup_bytes
						       : (uint32_t)(set->ring_bytes / 4));
	made.keeper_fd = event_open(set->opener, &attr, 0, (int)cpu, 0);
	if (made.keeper_fd < 0)
		return ring_set_explain(-made.keeper_fd, "cannot sample");
	struct error *err = perf_ring_open(made.keeper_fd, set->ring_bytes, &made.ring);
	if (err) {
		*is_refused_out = true;
		close(made.keeper_fd);
		return err;
	}
	set->cpus[set->n_cpus++] = made;
	return NULL;
}

struct error *ring_set_open_rings(struct ring_set *set, const struct cpu_set *cpus,
				  uint64_t ring_bytes)
{
	uint64_t least = (uint64_t)sysconf(_SC_PAGESIZE);

	set->cpus = mem_realloc(set->cpus, cpus->n, sizeof(*set->cpus));
	for (set->ring_bytes = least; set->ring_bytes * 2 <= ring_bytes;)
		set->ring_bytes *= 2;
	for (;;) {
		bool is_refused = false;
		struct error *err = NULL;
		for (uint32_t i = 0; !err && i < cpus->n; i++)
			err = open_ring(set, cpus->cpus[i], &is_refused);
		if (!err)
			return NULL;
		/* All again, so that no CPU's ring is smaller than the others. */
		close_rings(set);
		if (!is_refused)
			return err;
		if (set->ring_bytes == least)
			return error_number(
				error_wrap(err, "ring memory refused: %u rings", cpus->n), 106);
		error_free(err);
		set->ring_bytes /= 2;
	}
}

struct error *ring_set_add_cpu(struct ring_set *set, uint32_t cpu)
{
	bool is_refused;

	set->cpus = mem_realloc(set->cpus, set->n_cpus + 1, sizeof(*set->cpus));
	return open_ring(set, cpu, &is_refused);
}

void ring_set_remove_cpu(struct ring_set *set, uint32_t cpu)
{
	size_t n_kept = 0;
	uint32_t n_cpus = 0;

	for (size_t i = 0; i < set->n_open; i++) {
		if (set->open[i].cpu == cpu)
			close(set->open[i].fd);
		else
			set->open[n_kept++] = set->open[i];
	}
	set->n_open = n_kept;
	for (uint32_t i = 0; i < set->n_cpus; i++) {
		if (set->cpus[i].cpu == cpu) {
			perf_ring_close(&set->cpus[i].ring);
			close(set->cpus[i].keeper_fd);
		} else {
			set->cpus[n_cpus++] = set->cpus[i];
		}
	}
	set->n_cpus = n_cpus;
}

static void remember_id(struct ring_set *set, uint32_t event_index, uint64_t id)
{
	struct perf_event_info *info = &set->events[event_index];

	/* Grows by doubling: at each power of two. */
	if ((info->n_ids & (info->n_ids - 1)) == 0)
		info->ids = mem_realloc(info->ids, info->n_ids ? info->n_ids * 2 : 1,
					sizeof(*info->ids));
	info->ids[info->n_ids++] = id;
	*hash_map_put(&set->event_of_id, id, NULL) = event_index;
}

static void remember(struct ring_set *set, const struct ring_event *event, uint64_t id)
{
	if (set->n_open == set->open_capacity) {
		set->open_capacity = set->open_capacity ? set->open_capacity * 2 : 64;
		set->open = mem_realloc(set->open, set->open_capacity, sizeof(*set->open));
	}
	set->open[set->n_open++] = *event;
	remember_id(set, event->event_index, id);
}

/* A descriptor that writes into the CPU's ring, or a negative errno. */
static int open_into(struct ring_set *set, const struct ring_cpu *cpu, uint32_t event_index,
		     pid_t pid, unsigned flags, uint64_t *id_out)
{
	int fd = event_open(set->opener, &set->events[event_index].attr, pid, (int)cpu->cpu, flags);
	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, cpu->keeper_fd) < 0 ||
	    ioctl(fd, PERF_EVENT_IOC_ID, id_out) < 0) {
		int errno_value = errno;
		close(fd);
		return -errno_value;
	}
	return fd;
}

int ring_set_add(struct ring_set *set, uint32_t cpu_index, const struct ring_set_target *target,
		 uint32_t *event_out)
{
	const struct ring_cpu *cpu = &set->cpus[cpu_index];

	for (uint32_t i = target->first_event; i < target->first_event + target->n_events; i++) {
		struct ring_event event = {.event_index = i, .cpu = cpu->cpu, .pid = target->pid};
		uint64_t id = 0;

		*event_out = i;
		event.fd = open_into(set, cpu, i, target->pid, target->flags, &id);
		if (event.fd < 0)
			return -event.fd;
		remember(set, &event, id);
	}
	return 0;
}

static uint64_t read_lost(const struct ring_set *set, const struct ring_event *event)
{
	uint64_t values[3]; /* value, id, lost: the order that read_format gives */
	bool is_told = set->events[event->event_index].attr.read_format & PERF_FORMAT_LOST &&
		       read(event->fd, values, sizeof(values)) == sizeof(values);

	return event->n_lost_before + (is_told ? values[2] : 0);
}

static const struct ring_cpu *find_cpu(const struct ring_set *set, uint32_t cpu)
{
	for (uint32_t i = 0; i < set->n_cpus; i++) {
		if (set->cpus[i].cpu == cpu)
			return &set->cpus[i];
	}
	return NULL;
}

void ring_set_renew(struct ring_set *set, uint32_t n_events, unsigned flags)
{
	for (size_t i = 0; i < set->n_open; i++) {
		struct ring_event *event = &set->open[i];
		const struct ring_cpu *cpu = find_cpu(set, event->cpu);
		uint64_t id;
		if (event->event_index >= n_events || !cpu)
			continue;
		int fd = open_into(set, cpu, event->event_index, event->pid, flags, &id);
		if (fd < 0)
			continue;
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		ioctl(event->fd, PERF_EVENT_IOC_DISABLE, 0);
		event->n_lost_before = read_lost(set, event);
		close(event->fd);
		event->fd = fd;
		remember_id(set, event->event_index, id);
	}
}

void ring_set_remove(struct ring_set *set, pid_t pid, uint32_t event_index)
{
	size_t n_kept = 0;

	for (size_t i = 0; i < set->n_open; i++) {
		const struct ring_event *event = &set->open[i];
		if ((pid == 0 || event->pid == pid) &&
		    (event_index == UINT32_MAX || event->event_index == event_index))
			close(event->fd);
		else
			set->open[n_kept++] = *event;
	}
	set->n_open = n_kept;
}

void ring_set_ioctl(struct ring_set *set, unsigned long request)
{
	for (size_t i = 0; i < set->n_open; i++)
		ioctl(set->open[i].fd, request, 0);
}

void ring_set_read_lost(const struct ring_set *set, uint32_t cpu, uint64_t *lost)
{
	memset(lost, 0, set->n_events * sizeof(*lost));
	for (size_t i = 0; i < set->n_open; i++) {
		if (set->open[i].cpu == cpu)
			lost[set->open[i].event_index] += read_lost(set, &set->open[i]);
	}
}
