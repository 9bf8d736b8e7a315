/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/spool_place.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

char *spool_place_default(void)
{
	if (geteuid() == 0)
		return mem_copy_string("/var/lib/perfpipe/spool");
	const char *state = getenv("XDG_STATE_HOME");
	if (state && *state == '/')
		return mem_format("%s/perfpipe/spool", state);
	const char *home = getenv("HOME");
	return mem_format("%s/.local/state/perfpipe/spool", home && *home ? home : "/tmp");
}
