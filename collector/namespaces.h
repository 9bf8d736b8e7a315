/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where this process stands among namespaces: in a PID namespace the kernel shows all processes
 * outside of it as pid 0, and in a user namespace capabilities say nothing about the host.
 */
#pragma once

#include <stdbool.h>

bool namespaces_is_user_nested(void);
bool namespaces_is_pid_nested(void);
/*
 * Whether the pids that /proc shows are those that this process uses. They are not where a PID
 * namespace was entered and /proc was not mounted anew.
 */
bool namespaces_is_proc_own(void);
/* The pids that the text of a /proc/PID/status gives on its line NSpid; 0 without that line. */
unsigned namespaces_count_pids(const char *status);
