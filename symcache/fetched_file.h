/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a file that came over the network is what was asked for. Servers and those between may
 * send anything under any name: a login page, half a file, another build.
 */
#pragma once

#include <stdint.h>

#include "base/build_id.h"
#include "base/file.h"
#include "symcache/fetcher_wire.h"

/*
 * NULL when it is: ELF, whole (all of its headers, sections and segments lie inside, and its size
 * is stated_bytes where that is not 0), with that build-id in a note; an executable has segments, a
 * debug file sections. Otherwise what is wrong with it, for people.
 */
const char *fetched_file_fault(const struct file_map *map, const struct build_id *id,
			       enum fetcher_kind kind, uint64_t stated_bytes);
