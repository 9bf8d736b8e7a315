/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capabilities of the agent's threads, capabilities(7): each gives up what it has no use for, for
 * good. Nothing is ever gained; what was not there is not missed here.
 */
#pragma once

enum thread_role {
	THREAD_COLLECT, /* opens events, looks at other processes */
	THREAD_CONVERT, /* opens the binaries of other processes, reads kernel names */
	THREAD_OTHER,	/* talks to the network and the disk: none */
};

/* For all threads that the caller starts later: an exec gains nothing (PR_SET_NO_NEW_PRIVS). */
void thread_privileges_forbid_new(void);
/* The calling thread keeps what its role needs. */
void thread_privileges_reduce(enum thread_role role);
