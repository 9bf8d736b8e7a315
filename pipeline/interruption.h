/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of signals while there is something to save. In `record`, the first INT, TERM or
 * HUP asks for the end: sampling stops, and what was taken is written. A second INT or TERM ends
 * the program at once, but not within 300 ms, because one wish to stop often comes as two signals
 * (terminal and shell, or a supervisor's HUP and TERM). QUIT tells the counters of base/stats, ends
 * the command and aborts. USR2 asks for a snapshot. USR1 does nothing. In `run` HUP asks for a
 * reload instead, and USR2 for the state.
 *
 * Handlers run on the main thread; the convert thread blocks all signals. Started commands have the
 * dispositions that we were started with.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"

/* From here on signals ask for the end. Those that we were started to ignore stay ignored. */
struct error *interruption_open(void) MUST_USE;
/* The same for a daemon: HUP asks for a reload. */
struct error *interruption_open_daemon(void) MUST_USE;
/*
 * To be called when all commands were started, so that they inherit neither: INT and TERM count
 * from here on even where they were ignored or blocked, as in a script's background.
 */
void interruption_insist(void);
/* All is done and only memory is left to be freed: a signal no longer changes the exit status. */
void interruption_close(void);

/* The command that an abort ends too; 0 = none, or it was reaped. */
void interruption_set_command(pid_t pid);

/* Readable once somebody asked for the end. */
int interruption_fd(void);
/* Readable while somebody wants a snapshot; taking the wish up makes several of them one. */
int interruption_snapshot_fd(void);
bool interruption_takes_snapshot(void);
/* The same for a reload. */
int interruption_reload_fd(void);
bool interruption_takes_reload(void);
/* Which signal asked for the end, 0 = none so far. */
int interruption_signal(void);
/* Whether a terminal sent it, to all processes in its foreground. */
bool interruption_is_from_terminal(void);

/* For commands that can only begin again: a signal ends them as ever, and no temporary is left. */
void interruption_discard_outputs(void);
