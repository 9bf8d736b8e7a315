/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of CPU numbers as sysfs writes them ("0-3,8"): which CPUs get a ring. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

/* The kernel's own limit is 8192 (x86-64). */
enum { CPU_SET_MAX = 8192 };

/* Rising, without repeats. */
struct cpu_set {
	uint32_t *cpus;
	uint32_t n;
};

void cpu_set_init(struct cpu_set *set);
void cpu_set_fini(struct cpu_set *set);
struct error *cpu_set_parse(const char *text, struct cpu_set *out) MUST_USE;
/* From /sys/devices/system/cpu/online; out must be empty. */
struct error *cpu_set_read_online(struct cpu_set *out) MUST_USE;
bool cpu_set_has(const struct cpu_set *set, uint32_t cpu);
bool cpu_set_equal(const struct cpu_set *a, const struct cpu_set *b);
