/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that fetches: it loads libdebuginfod, which the agent itself never does, waits for
 * orders and forks a worker for each, so that a hang, a crash or a limit ends one fetch. It ends
 * when the agent's end of the socket closes, and its workers with it.
 *
 * Of the environment only settings of proxies stay. DEBUGINFOD_HEADERS_FILE is read before rights
 * go: its lines are sent with each request.
 */
#pragma once

/* Ends of a worker that say nothing about a server. */
enum {
	FETCHER_EXIT_NOT_CONFINED = 70,
	FETCHER_EXIT_SOCKET_GONE = 71,
	FETCHER_EXIT_NO_LIBRARY = 72,
};

/* In the forked child; does not return. */
_Noreturn void fetcher_process_run(int socket);
