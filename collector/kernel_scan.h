/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic records for what is the same for all processes: the kernel's text and its modules as
 * MMAP of pid -1, and CGROUP (id and path) for every cgroup that exists.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "collector/record_writer.h"

/* *is_hidden_out: the kernel gives no addresses to this user (kptr_restrict). */
struct error *kernel_scan_text(struct record_writer *writer, bool *is_hidden_out) MUST_USE;
struct error *kernel_scan_cgroups(struct record_writer *writer) MUST_USE;

/* One line of /proc/modules; folder is where .ko files lie below, dep the text of modules.dep. */
struct error *kernel_scan_write_module(struct record_writer *writer, const char *line, size_t n,
				       const char *folder, const char *dep) MUST_USE;
