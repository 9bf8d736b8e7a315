/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/remote_symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pipeline/cli.h"

static const char variable[] = "DEBUGINFOD_URLS";

enum { S_PER_MINUTE = 60, NS_PER_S = 1000000000, DURATION_BYTES = 24 };

struct error *remote_symbols_set_urls(struct symcache_debuginfod *debuginfod, const char *value)
{
	const char *urls = value ? value : getenv(variable);
	if (!urls || urls[strspn(urls, " \t")] == 0)
		return error_number(error_new(ERROR_USAGE, "--debuginfod: %s",
					      value ? "no server is named"
						    : "DEBUGINFOD_URLS is not set, and no server "
						      "is named"),
				    503);
	debuginfod->urls = urls;
	struct error *err = symcache_check_urls(urls);
	return err ? error_number(error_wrap(err, "%s", value ? "--debuginfod" : variable), 503)
		   : NULL;
}

struct error *remote_symbols_set_wait(struct symcache_debuginfod *debuginfod, const char *value)
{
	uint64_t ns;
	struct error *err = cli_parse_duration("--debuginfod-wait", value, &ns);
	if (err)
		return err;
	uint64_t seconds = (ns + NS_PER_S - 1) / NS_PER_S;
	debuginfod->all_s = (uint32_t)seconds;
	if (debuginfod->all_s < debuginfod->whole_s || !debuginfod->whole_s)
		debuginfod->whole_s = debuginfod->all_s;
	return NULL;
}

static void format_duration(uint32_t seconds, char out[DURATION_BYTES])
{
	if (seconds % S_PER_MINUTE && seconds < 2 * S_PER_MINUTE)
		snprintf(out, DURATION_BYTES, "%us", seconds);
	else
		snprintf(out, DURATION_BYTES, "%um", (seconds + S_PER_MINUTE - 1) / S_PER_MINUTE);
}

static void state_server(const struct message *message, const struct symcache_fetch_trouble *server,
			 uint32_t n_waiting)
{
	char paused[DURATION_BYTES + 32] = "", waiting[96] = "", duration[DURATION_BYTES];
	if (server->paused_s) {
		format_duration(server->paused_s, duration);
		snprintf(paused, sizeof(paused), "; %s%s",
			 server->is_new ? "paused " : "still paused for ", duration);
	}
	if (n_waiting)
		snprintf(waiting, sizeof(waiting),
			 "%s using local symbols only (%u build ID%s waiting)", *paused ? "," : ";",
			 n_waiting, n_waiting == 1 ? "" : "s");
	char *text = mem_format("%s %s%s%s", server->host, server->reason, paused, waiting);
	message_warning(message, 501, text, NULL);
	mem_free(text);
}

void remote_symbols_state(const struct message *message, const struct symcache *cache)
{
	struct symcache_fetch_report report;
	char text[160];
	symcache_get_fetch_report(cache, &report);
	uint32_t n_waiting = report.n_failed + report.n_paused;
	for (uint32_t i = 0; i < report.n_servers; i++)
		state_server(message, &report.servers[i], n_waiting);
	if (report.has_no_library)
		message_warning(message, 502, "libdebuginfod is not installed, nothing was fetched",
				NULL);
	if (report.is_not_confined)
		message_warning(message, 504,
				"the fetcher cannot be confined on this machine, nothing was "
				"fetched",
				NULL);
	if (report.is_out_of_time) {
		snprintf(text, sizeof(text),
			 "the time for fetching was over, %u file%s not fetched", report.n_given_up,
			 report.n_given_up == 1 ? " was" : "s were");
		message_warning(message, 505, text, NULL);
	}
	if (report.n_too_large) {
		snprintf(text, sizeof(text), "%u file%s too large to fetch", report.n_too_large,
			 report.n_too_large == 1 ? " was" : "s were");
		message_warning(message, 506, text, NULL);
	}
	if (report.n_found || report.n_absent)
		message_detail(message, "debuginfod: %u files had, %u not there", report.n_found,
			       report.n_absent);
}
