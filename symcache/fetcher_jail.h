/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fetcher process and its workers may not do. They talk to servers through libcurl, name
 * services and TLS, which load libraries and open files of their own choice, so a list of what is
 * allowed would break on other systems; instead all that a client of servers has no use for is
 * denied: starting programs, looking into or signalling other processes, mounts, namespaces, keys,
 * BPF, io_uring, listening, odd kinds of sockets. A worker may moreover only read below the
 * system's folders of settings and libraries, and write in the one folder it was given (Landlock,
 * where the kernel has it).
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

/* The process of the fetcher. */
struct error *fetcher_jail_enter(void) MUST_USE;
/* A worker, forked from there; folder is where it works. */
struct error *fetcher_jail_enter_worker(int folder, uint64_t max_file_bytes) MUST_USE;
