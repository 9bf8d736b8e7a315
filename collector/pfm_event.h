/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event names that only libpfm4 knows (model-specific, with unit masks). Apart from event_attr
 * because libpfm4's header defines the kernel's structs a second time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pfm_event {
	uint32_t type;
	uint32_t precise_ip;
	uint64_t config, config1, config2;
	bool exclude_user, exclude_kernel, exclude_hv;
};

/* False when libpfm4 does not know the name on this CPU. */
bool pfm_event_encode(const char *name, struct pfm_event *out);
