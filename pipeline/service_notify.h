/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the service manager how we are: lines of sd_notify(3) as a datagram to NOTIFY_SOCKET.
 * Without one, nothing happens. A manager that does not listen is no reason to fail.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"

/* Takes NOTIFY_SOCKET and WATCHDOG_USEC out of the environment: children are not to speak for us.
 */
void service_notify_open(void);
void service_notify_close(void);
/* "READY=1\nSTATUS=…" */
void service_notify(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* How often WATCHDOG=1 has to be said at least, 0 = never. */
uint64_t service_notify_watchdog_ns(void);
