/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/pfm_event.h"

#include <perfmon/pfmlib_perf_event.h>
#include <string.h>

bool pfm_event_encode(const char *name, struct pfm_event *out)
{
	struct perf_event_attr attr;
	pfm_perf_encode_arg_t arg;

	/* Repeated calls cost nothing; it looks the CPU up once. */
	if (pfm_initialize() != PFM_SUCCESS)
		return false;
	memset(&attr, 0, sizeof(attr));
	memset(&arg, 0, sizeof(arg));
	arg.size = sizeof(arg);
	arg.attr = &attr;
	if (pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &arg) !=
	    PFM_SUCCESS)
		return false;
	*out = (struct pfm_event){
		.type = attr.type,
		.precise_ip = attr.precise_ip,
		.config = attr.config,
		.config1 = attr.config1,
		.config2 = attr.config2,
		.exclude_user = attr.exclude_user,
		.exclude_kernel = attr.exclude_kernel,
		.exclude_hv = attr.exclude_hv,
	};
	return true;
}
