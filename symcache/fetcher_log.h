/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each server answered, read from libdebuginfod's account of a query: its return value is the
 * same for "no such file", a server error and half a file. The account is what
 * debuginfod_set_verbose_fd(3) writes, a line at a time:
 *
 *   url 0 http://a.example/buildid/…/debuginfo	where it asks; servers count from 0
 *   header HTTP/1.1 404 Not Found			said by a server, believed for nothing
 *   server response HTTP response code said error	libcurl's word for what ended a transfer,
 *   url 0 The requested URL returned error: 404	of the server on the next line
 *
 * Only a 404 or 410 makes a file absent. Words that are not known make trouble, so another version
 * of the library can cost an answer, but never invent one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symcache/fetcher_wire.h"

/* Fills outcomes and texts of report; takes no memory, so a signal handler may call it. */
void fetcher_log_read(const char *log, size_t n, uint32_t n_servers,
		      struct fetcher_report_message *report);
/* The size that a server states in what debuginfod_get_headers(3) gives; 0 = none. */
uint64_t fetcher_log_stated_bytes(const char *headers);
