/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that ask a command for the end while it runs a loop or reads a file: the first one ends
 * uv_run(UV_RUN_ONCE) and is told by interruption_signal, a second one ends the program at once.
 */
#pragma once

#include <uv.h>

#include "base/compiler.h"
#include "base/error.h"
#include "pipeline/interruption.h"

struct interruption_watch {
	uv_poll_t poll;
};

struct error *interruption_watch_open(struct interruption_watch *watch, uv_loop_t *loop) MUST_USE;
/* The loop has to run once more before *watch goes; then interruption_close. */
void interruption_watch_close(struct interruption_watch *watch);
