/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/fetcher_process.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "symcache/builder_wire.h"
#include "symcache/confinement.h"
#include "symcache/fetcher_jail.h"
#include "symcache/fetcher_log.h"
#include "symcache/fetcher_wire.h"

enum {
	MAX_WORKERS = 64,
	MAX_HEADERS_BYTES = 64 << 10,
	LOG_BYTES = 1 << 20, /* of the client's account; redirects without end write much */
	/* A transfer below 100 KiB/s for that many times the time for an answer is given up. */
	SLOW_FACTOR = 6,
};

/* The functions of libdebuginfod that are used. */
struct library {
	__typeof__(&debuginfod_begin) begin;
	__typeof__(&debuginfod_end) end;
	__typeof__(&debuginfod_find_debuginfo) find_debuginfo;
	__typeof__(&debuginfod_find_executable) find_executable;
	__typeof__(&debuginfod_set_progressfn) set_progressfn;
	__typeof__(&debuginfod_set_verbose_fd) set_verbose_fd;
	__typeof__(&debuginfod_get_url) get_url;
	__typeof__(&debuginfod_get_headers) get_headers;
	__typeof__(&debuginfod_add_http_header) add_http_header;
};

struct worker {
	pid_t pid;
	uint32_t number;
};

struct house {
	int socket;
	bool has_library;
	struct library library;
	struct buf headers; /* lines */
	struct worker workers[MAX_WORKERS];
	uint32_t n;
};

/* ---- the worker ---- */

/* What its signal handler and the client's call-back need; there is one fetch to a worker. */
static struct fetch {
	const struct library *library;
	struct fetcher_order_message order;
	struct fetcher_report_message report;
	int socket, log_fd;
	const char *log; /* LOG_BYTES mapped over log_fd */
	volatile sig_atomic_t has_begun;
} fetch;

static void send_report(void)
{
	if (!builder_wire_send(fetch.socket, &fetch.report, sizeof(fetch.report), NULL, 0, true))
		_exit(FETCHER_EXIT_SOCKET_GONE);
	_exit(0);
}

/* The account may have grown past its end by whole lines only; a mapping is read as it lies. */
static void read_log(void)
{
	off_t n = lseek(fetch.log_fd, 0, SEEK_CUR);
	size_t size = n < 0 ? 0 : n < LOG_BYTES ? (size_t)n : LOG_BYTES;
	fetcher_log_read(fetch.log, size, fetch.order.n_servers, &fetch.report);
}

/* Who has not said anything by now is late. */
static void on_alarm(int signal_number)
{
	(void)signal_number;
	read_log();
	for (uint32_t i = 0; i < fetch.order.n_servers && i < SERVER_LIST_MAX; i++) {
		if (fetch.report.outcomes[i] == FETCHER_SILENT)
			fetch.report.outcomes[i] = FETCHER_LATE;
	}
	send_report();
}

static void set_alarm(uint32_t seconds)
{
	const struct itimerval timer = {.it_value = {.tv_sec = seconds}};
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* The time for an answer ends with its first byte. */
static int on_progress(debuginfod_client *client, long done, long total)
{
	(void)done; /* without total it counts calls */
	if (!fetch.has_begun && (total > 0 || fetch.library->get_url(client))) {
		fetch.has_begun = 1;
		set_alarm(fetch.order.whole_s);
	}
	return 0;
}

static void set_number(const char *name, uint64_t value)
{
	char text[32];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	setenv(name, text, 1);
}

static void set_environment(const struct fetcher_order_message *order)
{
	setenv(DEBUGINFOD_URLS_ENV_VAR, order->urls, 1);
	setenv(DEBUGINFOD_CACHE_PATH_ENV_VAR, ".", 1);
	set_number(DEBUGINFOD_TIMEOUT_ENV_VAR, (uint64_t)SLOW_FACTOR * order->answer_s);
	set_number(DEBUGINFOD_MAXSIZE_ENV_VAR, order->max_bytes);
	set_number(DEBUGINFOD_RETRY_LIMIT_ENV_VAR, 0);
}

static void add_headers(debuginfod_client *client, const struct library *library, char *lines)
{
	char *rest = lines;
	for (char *line; (line = strsep(&rest, "\r\n"));) {
		if (*line)
			(void)library->add_http_header(client, line);
	}
}

/* Which server the client took; they are told apart by the beginning of the URL. */
static uint32_t server_of(const char *url, const char *urls)
{
	uint32_t index = 0;
	for (const char *next = urls; url && *next; index++) {
		size_t n = strcspn(next, " ");
		if (strncmp(url, next, n) == 0)
			return index;
		next += n + (next[n] == ' ');
	}
	return 0;
}

static bool open_log(void)
{
	fetch.log_fd = memfd_create("perfpipe-fetch-log", MFD_CLOEXEC);
	if (fetch.log_fd < 0 || ftruncate(fetch.log_fd, LOG_BYTES) < 0)
		return false;
	void *log = mmap(NULL, LOG_BYTES, PROT_READ, MAP_SHARED, fetch.log_fd, 0);
	fetch.log = log;
	return log != MAP_FAILED;
}

static void ask_servers(const struct house *house)
{
	const struct library *library = fetch.library;
	struct fetcher_report_message *report = &fetch.report;
	char hex[BUILD_ID_HEX_BYTES];
	char *path = NULL;
	build_id_format(&fetch.order.id, hex);
	debuginfod_client *client = library->begin();
	if (!client || !open_log())
		_exit(FETCHER_EXIT_NO_LIBRARY);
	library->set_verbose_fd(client, fetch.log_fd);
	library->set_progressfn(client, on_progress);
	if (house->headers.size)
		add_headers(client, library, (char *)house->headers.data);
	__typeof__(library->find_debuginfo) find = fetch.order.kind == FETCHER_DEBUGINFO
							   ? library->find_debuginfo
							   : library->find_executable;
	int fd = find(client, (const unsigned char *)hex, 0, &path);
	set_alarm(0);
	read_log();
	report->is_too_large = fd == -EFBIG;
	report->is_found = fd >= 0 && path && strlen(path) < sizeof(report->path);
	report->server = server_of(library->get_url(client), fetch.order.urls);
	if (report->is_found) {
		report->stated_bytes = fetcher_log_stated_bytes(library->get_headers(client));
		snprintf(report->path, sizeof(report->path), "%s", path);
	}
}

_Noreturn static void work(const struct house *house, const struct fetcher_order_message *order,
			   const int *fds, pid_t parent)
{
	fetch.library = &house->library;
	fetch.order = *order;
	fetch.order.urls[sizeof(fetch.order.urls) - 1] = 0;
	fetch.socket = fds[0];
	close(house->socket);
	/* Both orders of events are covered: the parent may be gone before this is asked for. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(FETCHER_EXIT_SOCKET_GONE);
	if (!house->has_library)
		_exit(FETCHER_EXIT_NO_LIBRARY);
	umask(077);
	if (fchdir(fds[1]) < 0)
		_exit(FETCHER_EXIT_NOT_CONFINED);
	struct error *err = fetcher_jail_enter_worker(fds[1], order->max_bytes);
	if (err)
		_exit(FETCHER_EXIT_NOT_CONFINED);
	close(fds[1]);
	set_environment(&fetch.order);
	signal(SIGALRM, on_alarm);
	set_alarm(order->answer_s);
	ask_servers(house);
	send_report();
	_exit(0);
}

/* ---- the process ---- */

static void read_headers(struct buf *out)
{
	const char *path = getenv(DEBUGINFOD_HEADERS_FILE_ENV_VAR);
	buf_init(out, MAX_HEADERS_BYTES);
	if (!path || !*path)
		return;
	struct error *err = file_read_all(path, out);
	if (err)
		buf_clear(out);
	error_free(err);
	if (out->size)
		(void)buf_string(out); /* ends it with a 0 */
}

static void clean_environment(void)
{
	static const char *const kept[] = {
		"http_proxy", "https_proxy", "HTTPS_PROXY",   "all_proxy",    "ALL_PROXY",
		"no_proxy",   "NO_PROXY",    "SSL_CERT_FILE", "SSL_CERT_DIR",
	};
	char *values[ARRAY_LEN(kept)];
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		const char *value = getenv(kept[i]);
		values[i] = value ? mem_copy_string(value) : NULL;
	}
	clearenv();
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		if (values[i])
			setenv(kept[i], values[i], 1);
		mem_free(values[i]);
	}
}

/* Looks a function up; the cast is POSIX's own way from object to function pointers. */
static bool find(void *handle, const char *name, void *function_out)
{
	void *symbol = dlsym(handle, name);
	memcpy(function_out, &symbol, sizeof(symbol));
	return symbol != NULL;
}

static bool load_library(struct library *out)
{
	void *handle = dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL);
	return handle && find(handle, "debuginfod_begin", &out->begin) &&
	       find(handle, "debuginfod_end", &out->end) &&
	       find(handle, "debuginfod_find_debuginfo", &out->find_debuginfo) &&
	       find(handle, "debuginfod_find_executable", &out->find_executable) &&
	       find(handle, "debuginfod_set_progressfn", &out->set_progressfn) &&
	       find(handle, "debuginfod_set_verbose_fd", &out->set_verbose_fd) &&
	       find(handle, "debuginfod_get_url", &out->get_url) &&
	       find(handle, "debuginfod_get_headers", &out->get_headers) &&
	       find(handle, "debuginfod_add_http_header", &out->add_http_header);
}

static void send_end(const struct house *house, uint32_t number, int status)
{
	const struct fetcher_end_message message = {.number = number, .status = status};
	if (!builder_wire_send(house->socket, &message, sizeof(message), NULL, 0, true))
		_exit(0);
}

static void take_order(struct house *house)
{
	static struct fetcher_order_message order;
	int fds[BUILDER_WIRE_MAX_FDS];
	size_t n_fds;
	if (!builder_wire_receive(house->socket, &order, sizeof(order), fds, &n_fds))
		_exit(0);
	pid_t parent = getpid();
	pid_t pid = n_fds == 2 && house->n < MAX_WORKERS ? fork() : -1;
	if (pid == 0)
		work(house, &order, fds, parent);
	if (pid < 0)
		send_end(house, order.number, FETCHER_EXIT_NOT_CONFINED << 8);
	else
		house->workers[house->n++] = (struct worker){.pid = pid, .number = order.number};
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
}

static void reap(struct house *house)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (uint32_t i = 0; i < house->n; i++) {
			if (house->workers[i].pid != pid)
				continue;
			send_end(house, house->workers[i].number, status);
			house->workers[i] = house->workers[--house->n];
			break;
		}
	}
}

_Noreturn void fetcher_process_run(int socket)
{
	static struct house house;
	sigset_t waiting;
	house.socket = socket;
	confinement_set_signals(&waiting);
	confinement_close_descriptors(socket);
	(void)prctl(PR_SET_NAME, "perfpipe-fetch", 0, 0, 0);
	read_headers(&house.headers);
	clean_environment();
	struct error *err = fetcher_jail_enter();
	if (err)
		_exit(FETCHER_EXIT_NOT_CONFINED);
	house.has_library = load_library(&house.library);
	for (;;) {
		struct pollfd pollfd = {.fd = socket, .events = POLLIN};
		int n = ppoll(&pollfd, 1, NULL, &waiting);
		reap(&house);
		if (n > 0)
			take_order(&house);
	}
}
