/* SPDX-License-Identifier: Apache-2.0 */
/* Any line of /proc/PID/maps, and of /proc/modules: names in both come from other users. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "collector/cgroup_path.h"
#include "collector/exec_watch.h"
#include "collector/kernel_scan.h"
#include "collector/perf_ring.h"
#include "collector/proc_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out CLEANUP(buf_fini);
	struct record_writer writer = {.out = &out, .trailer_bytes = 32};
	struct perf_event_header header;
	size_t offset = 0, n;
	char *text CLEANUP(cleanup_mem) = mem_format("%.*s", (int)size, (const char *)data);

	buf_init(&out, 1 << 20);
	error_free(proc_scan_write_map(&writer, 1, (const char *)data, size));
	error_free(kernel_scan_write_module(&writer, (const char *)data, size, "/lib", text));
	while (perf_ring_next(out.data, out.size, &offset, &header))
		;
	if (offset != out.size)
		abort();
	mem_free(cgroup_path_pick_root(text));
	(void)exec_watch_pick_cgroup(text, &n);
	return 0;
}
