/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring per CPU, and the events that write into them. Each ring belongs to a keeper, an event of
 * this very thread that never fires: so the ring outlives tasks that exit, its descriptor never
 * hangs up, and every other event is redirected into it (FR-66, FR-118).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/hash_map.h"
#include "base/perf_record.h"
#include "collector/cpu_set.h"
#include "collector/event_open.h"
#include "collector/perf_ring.h"

struct ring_cpu {
	uint32_t cpu;
	int keeper_fd;
	struct perf_ring ring;
	uint64_t n_lost_told; /* by LOST records of this ring */
};

struct ring_event {
	int fd;
	uint32_t event_index;
	uint32_t cpu;
	pid_t pid;
	uint64_t n_lost_before; /* by those that it took the place of */
};

struct ring_set {
	struct event_opener *opener;
	struct perf_event_info *events; /* borrowed; ids are appended here */
	uint32_t n_events;
	struct hash_map event_of_id;
	struct ring_cpu *cpus;
	uint32_t n_cpus;
	struct ring_event *open;
	size_t n_open;
	size_t open_capacity;
	uint64_t ring_bytes;   /* per CPU, what the kernel granted */
	uint32_t wakeup_bytes; /* readable from so many bytes on; 0 = a quarter of the ring */
};

void ring_set_init(struct ring_set *set, struct event_opener *opener,
		   struct perf_event_info *events, uint32_t n_events);
/* Closes everything. */
void ring_set_fini(struct ring_set *set);

/*
 * Rings for all CPUs of cpus, all of one size: ring_bytes, halved while the kernel refuses. E106
 * when not even a page each is granted, E107 without descriptors, E101 when denied.
 */
struct error *ring_set_open_rings(struct ring_set *set, const struct cpu_set *cpus,
				  uint64_t ring_bytes) MUST_USE;
/* One more CPU (hotplug), with the size the others have. */
struct error *ring_set_add_cpu(struct ring_set *set, uint32_t cpu) MUST_USE;
/* Closes a CPU's ring and events; what it held must have been drained. */
void ring_set_remove_cpu(struct ring_set *set, uint32_t cpu);

struct ring_set_target {
	pid_t pid; /* -1 = all; a cgroup's descriptor with PERF_FLAG_PID_CGROUP */
	unsigned flags;
	uint32_t first_event, n_events;
};
/*
 * Opens the target's events on one CPU (index into cpus). 0, or the errno of the event whose index
 * is then in *event_out; what was opened before stays.
 */
int ring_set_add(struct ring_set *set, uint32_t cpu_index, const struct ring_set_target *target,
		 uint32_t *event_out) MUST_USE;
/* E101, E102 or E107 for an errno of ring_set_add. */
struct error *ring_set_explain(int errno_value, const char *what) MUST_USE;
/*
 * Puts another event in the place of each open one with an index below n_events, by the attr as it
 * is now; the new one counts before the old one ends. flags: of the target's. What cannot be opened
 * stays as it was.
 */
void ring_set_renew(struct ring_set *set, uint32_t n_events, unsigned flags);
/* Closes all events of a task or of an event index; UINT32_MAX and 0 match any. */
void ring_set_remove(struct ring_set *set, pid_t pid, uint32_t event_index);

/* PERF_EVENT_IOC_ENABLE or _DISABLE for all events. */
void ring_set_ioctl(struct ring_set *set, unsigned long request);
/* Events lost on a CPU as read(2) tells it, per event into lost[n_events]. */
void ring_set_read_lost(const struct ring_set *set, uint32_t cpu, uint64_t *lost);
