/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_AREA "privileges"
#include "pipeline/thread_privileges.h"

#include <errno.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>

#include "base/compiler.h"
#include "base/log.h"

/* exe, root and map_files of other users' processes; kernel names. */
static const cap_value_t reading[] = {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE,
				      CAP_SYSLOG};
/* Events are opened again when CPUs come or a target appears. */
static const cap_value_t sampling[] = {CAP_PERFMON, CAP_IPC_LOCK};

/* Those of the list that the thread has stay in wanted. */
static void keep(cap_t wanted, cap_t held, const cap_value_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		cap_flag_value_t value = CAP_CLEAR;
		if (cap_get_flag(held, list[i], CAP_PERMITTED, &value) < 0 || value != CAP_SET)
			continue;
		cap_set_flag(wanted, CAP_PERMITTED, 1, &list[i], CAP_SET);
		cap_set_flag(wanted, CAP_EFFECTIVE, 1, &list[i], CAP_SET);
	}
}

void thread_privileges_reduce(enum thread_role role)
{
	cap_t held = cap_get_proc(), wanted = cap_init();
	if (held && wanted) {
		if (role != THREAD_OTHER)
			keep(wanted, held, reading, ARRAY_LEN(reading));
		if (role == THREAD_COLLECT)
			keep(wanted, held, sampling, ARRAY_LEN(sampling));
	}
	/* Of this thread alone: no library here makes it one of all threads. */
	if (!held || !wanted || cap_set_proc(wanted) < 0)
		log_warn("capabilities are kept err=\"%s\"", strerrordesc_np(errno));
	cap_free(held);
	cap_free(wanted);
}

void thread_privileges_forbid_new(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		log_warn("privileges may be gained err=\"%s\"", strerrordesc_np(errno));
}
