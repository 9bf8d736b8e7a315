/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are asked for, and when servers are left alone: against a port where nobody listens.
 */
#include "symcache/remote_supply.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/temp_dir.h"

#define NS_PER_S ((uint64_t)1000000000)

struct fixture {
	struct temp_dir dir;
	struct clock_fake fake;
	struct clock clock;
	char url[64];
	int port_holder;
	struct symcache_debuginfod debuginfod;
	struct remote_supply *supply;
	unsigned n_done, n_had;
};

static void open_supply(struct fixture *f, bool retry_failures)
{
	const struct remote_supply_config config = {.debuginfod = &f->debuginfod,
						    .store_path = f->dir.path,
						    .retry_failures = retry_failures,
						    .clock = &f->clock};
	struct error *err = remote_supply_new(&config, &f->supply);
	assert_null(err);
}

/* A port that is bound and not listened at refuses connections for as long as it is bound. */
static void begin(struct fixture *f)
{
	*f = (struct fixture){.fake = {.now_wall_ns = 1000000 * NS_PER_S}};
	temp_dir_init(&f->dir);
	f->clock = clock_from_fake(&f->fake);
	f->port_holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(address);
	assert_int_equal(bind(f->port_holder, (struct sockaddr *)&address, n), 0);
	assert_int_equal(getsockname(f->port_holder, (struct sockaddr *)&address, &n), 0);
	snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%u", ntohs(address.sin_port));
	f->debuginfod.urls = f->url;
	open_supply(f, false);
}

static void end(struct fixture *f)
{
	remote_supply_free(f->supply);
	close(f->port_holder);
	temp_dir_fini(&f->dir);
}

static void done(void *context, int fd, const char *path)
{
	struct fixture *f = context;
	(void)path;
	f->n_done++;
	f->n_had += fd >= 0;
	if (fd >= 0)
		close(fd);
}

static void want(struct fixture *f, uint8_t first, size_t n_bytes)
{
	uint8_t bytes[BUILD_ID_MAX_BYTES];
	memset(bytes, 0x5a, sizeof(bytes));
	bytes[0] = first;
	const struct build_id id = build_id_make(bytes, n_bytes);
	remote_supply_want(f->supply, &id, FETCHER_DEBUGINFO, done, f);
}

static void wait_for_all(struct fixture *f)
{
	while (!remote_supply_is_idle(f->supply))
		remote_supply_step(f->supply, 100);
}

static struct symcache_fetch_report report_of(struct fixture *f)
{
	struct symcache_fetch_report report;
	remote_supply_get_report(f->supply, &report);
	return report;
}

/* Where the library is not installed there is nothing to see. */
static void skip_without_library(struct fixture *f)
{
	if (!report_of(f).has_no_library)
		return;
	end(f);
	skip();
}

static void failing_server_is_paused_and_asked_again_later(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	for (uint8_t i = 0; i < 20; i++)
		want(&f, i, 20);
	wait_for_all(&f);
	skip_without_library(&f);
	assert_int_equal(f.n_done, 20);
	assert_int_equal(f.n_had, 0);
	struct symcache_fetch_report report = report_of(&f);
	assert_true(report.n_failed >= 3 && report.n_failed <= FETCHER_MAX_FETCHES);
	assert_int_equal(report.n_failed + report.n_paused, 20);
	assert_int_equal(report.n_absent, 0);
	assert_int_equal(report.n_servers, 1);
	assert_int_equal(report.servers[0].paused_s, 600);
	assert_true(report.servers[0].is_new);
	assert_non_null(strstr(report.servers[0].reason, "failed: "));
	/* A later run knows. */
	remote_supply_free(f.supply);
	open_supply(&f, false);
	f.fake.now_wall_ns += 100 * NS_PER_S;
	want(&f, 1, 20);
	wait_for_all(&f);
	report = report_of(&f);
	assert_int_equal(report.n_paused, 1);
	assert_int_equal(report.servers[0].paused_s, 500);
	assert_false(report.servers[0].is_new);
	/* Time passes. */
	f.fake.now_wall_ns += 500 * NS_PER_S;
	want(&f, 2, 20);
	wait_for_all(&f);
	report = report_of(&f);
	assert_int_equal(report.n_paused, 1);
	assert_int_equal(report.n_failed, 1);
	end(&f);
}

static void asking_by_name_does_not_mind_pauses_of_before(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	for (uint8_t i = 0; i < 3; i++)
		want(&f, i, 20);
	wait_for_all(&f);
	skip_without_library(&f);
	remote_supply_free(f.supply);
	open_supply(&f, true);
	want(&f, 1, 20);
	wait_for_all(&f);
	assert_int_equal(report_of(&f).n_failed, 1);
	end(&f);
}

static void ids_that_are_not_gnus_or_too_short_stay_here(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	want(&f, 1, 7);
	want(&f, 1, 64);
	struct build_id id = build_id_make("01234567890123456789", 20);
	for (uint8_t kind = BUILD_ID_NONE; kind <= BUILD_ID_HASH; kind++) {
		id.kind = kind;
		if (kind != BUILD_ID_GNU)
			remote_supply_want(f.supply, &id, FETCHER_EXECUTABLE, done, &f);
	}
	assert_int_equal(f.n_done, 5);
	assert_true(remote_supply_is_idle(f.supply));
	want(&f, 1, 8);
	assert_false(remote_supply_is_idle(f.supply));
	end(&f);
}

static void lost_fetcher_is_started_again(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	pid_t pid = remote_supply_get_pid(f.supply);
	assert_true(pid > 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	want(&f, 1, 20);
	wait_for_all(&f);
	skip_without_library(&f);
	assert_int_equal(f.n_done, 1);
	assert_int_not_equal(remote_supply_get_pid(f.supply), pid);
	/* It was asked for all the same. */
	assert_int_equal(report_of(&f).n_failed, 1);
	end(&f);
}

static void cancel_gives_all_up(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	for (uint8_t i = 0; i < 20; i++)
		want(&f, i, 20);
	remote_supply_step(f.supply, 0);
	remote_supply_cancel(f.supply);
	assert_true(remote_supply_is_idle(f.supply));
	assert_int_equal(f.n_done, 20);
	/* What is wanted afterwards is fetched as ever. */
	want(&f, 30, 20);
	wait_for_all(&f);
	assert_int_equal(f.n_done, 21);
	end(&f);
}

static void bad_urls_are_an_error(void **state)
{
	(void)state;
	const struct symcache_debuginfod debuginfod = {.urls = "gopher://a"};
	const struct remote_supply_config config = {.debuginfod = &debuginfod};
	struct remote_supply *supply;
	struct error *err = remote_supply_new(&config, &supply);
	assert_int_equal(error_get_code(err), ERROR_USAGE);
	error_free(err);
}

int main(void)
{
	/* A proxy would answer in the server's place. */
	unsetenv("http_proxy");
	unsetenv("all_proxy");
	unsetenv("ALL_PROXY");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failing_server_is_paused_and_asked_again_later),
		cmocka_unit_test(asking_by_name_does_not_mind_pauses_of_before),
		cmocka_unit_test(ids_that_are_not_gnus_or_too_short_stay_here),
		cmocka_unit_test(lost_fetcher_is_started_again),
		cmocka_unit_test(cancel_gives_all_up),
		cmocka_unit_test(bad_urls_are_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
