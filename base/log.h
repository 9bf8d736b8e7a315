/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines on standard error: an event, then key=value. Each file defines LOG_AREA before it
 * includes this. error = someone must act, warn = data lost or degraded, info = lifecycle.
 * Commands that talk to a person use pipeline/message instead.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* LOG_FORMAT_AUTO: text on a terminal, else logfmt; under journald lines have a priority and no
 * time in any form. */
enum log_format { LOG_FORMAT_AUTO, LOG_FORMAT_TEXT, LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON };

/* Both while the process has one thread. */
void log_set_format(enum log_format format);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
void log_line(enum log_level level, const char *area, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* How often a message that repeats itself is written. */
#define LOG_REPEAT_NS ((uint64_t)60000000000)

/* Folds repeats: tells whether this one should be printed, and how many were held back since. */
struct log_every {
	uint64_t interval_ns;
	uint64_t last_ns;
	uint64_t n_held;
};
int log_every_allows(struct log_every *every, uint64_t now_ns, uint64_t *n_held_out);

#define log_error(...) log_line(LOG_LEVEL_ERROR, LOG_AREA, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_LEVEL_WARN, LOG_AREA, __VA_ARGS__)
#define log_info(...)  log_line(LOG_LEVEL_INFO, LOG_AREA, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, LOG_AREA, __VA_ARGS__)
