/* SPDX-License-Identifier: Apache-2.0 */
/* Process facts → the label set of a sample. A set is made once per thread and window where it can.
 */
#pragma once

#include <stdint.h>

#include "base/hash_map.h"
#include "converter/process.h"
#include "converter/sample.h"
#include "proto/profile.h"

struct labeler {
	uint32_t labels; /* set of enum converter_label */
	struct profile *profile;
	uint32_t window;	 /* counts from 1 */
	struct hash_map cgroups; /* id → char *, of CGROUP records */
};

void labeler_init(struct labeler *labeler, uint32_t labels);
void labeler_fini(struct labeler *labeler);
void labeler_begin(struct labeler *labeler, struct profile *profile);
/* CGROUP record. */
void labeler_add_cgroup(struct labeler *labeler, uint64_t id, const char *path);
/* Label set index of the profile. */
uint32_t labeler_label(struct labeler *labeler, struct thread *thread, const struct sample *sample);
