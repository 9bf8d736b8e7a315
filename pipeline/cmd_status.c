/* SPDX-License-Identifier: Apache-2.0 */
/* What a running daemon says of itself, over its HTTP server. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "pipeline/command.h"
#include "pipeline/explain.h"
#include "pipeline/status_server.h"

enum { OPTION_HTTP = 1, MAX_ANSWER_BYTES = 8 << 20, PATIENCE_SECONDS = 10, UNREACHABLE = 406 };

static const struct cli_option options[] = {
	{OPTION_HTTP, "http", "HOST:PORT", "where it listens (default 127.0.0.1:9917)", 0, true},
};

static struct error *set(void *context, int id, const char *value)
{
	const char **address = context;
	if (id == CLI_POSITIONAL)
		return cli_usage("status takes no argument \"%s\"", value);
	*address = value;
	return NULL;
}

const struct cli_spec cmd_status_spec = {
	.command = "status",
	.usage = "[OPTIONS]",
	.summary = "Prints how a running perfpipe is: what it samples, delivers and drops.",
	.examples = "  perfpipe status\n"
		    "  perfpipe status --format json\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.set = set,
	.formats = CLI_FORMAT_TEXT | CLI_FORMAT_JSON,
};

static struct error *unreachable(const char *address, int errno_value)
{
	return error_number(error_errno(errno_value, "%s", address), UNREACHABLE);
}

static int connect_any(const struct addrinfo *list)
{
	const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
	for (; list; list = list->ai_next) {
		int fd = socket(list->ai_family, list->ai_socktype | SOCK_CLOEXEC,
				list->ai_protocol);
		if (fd < 0)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		if (connect(fd, list->ai_addr, list->ai_addrlen) == 0)
			return fd;
		int errno_value = errno;
		close(fd);
		errno = errno_value;
	}
	return -1;
}

static struct error *open_connection(const char *address, int *fd_out)
{
	const char *colon = strrchr(address, ':');
	if (!colon || colon == address || !colon[1])
		return cli_usage("--http \"%s\" is not HOST:PORT", address);
	bool is_bracketed = address[0] == '[' && colon[-1] == ']';
	char *host CLEANUP(cleanup_mem) = mem_format(
		"%.*s", (int)(colon - address) - 2 * is_bracketed, address + is_bracketed);
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list;
	int rc = getaddrinfo(host, colon + 1, &hints, &list);
	if (rc)
		return error_number(
			error_new(ERROR_UNAVAILABLE, "%s: %s", address, gai_strerror(rc)),
			UNREACHABLE);
	errno = 0;
	*fd_out = connect_any(list);
	int errno_value = errno;
	freeaddrinfo(list);
	return *fd_out < 0 ? unreachable(address, errno_value) : NULL;
}

/* Until the end of the connection, as HTTP/1.0 has it. */
static struct error *read_answer(int fd, const char *address, struct buf *out)
{
	char block[4096];
	ssize_t n;
	while ((n = read(fd, block, sizeof(block))) > 0) {
		struct error *err = buf_append(out, block, (size_t)n);
		if (err)
			return error_number(error_wrap(err, "%s", address), UNREACHABLE);
	}
	return n < 0 ? unreachable(address, errno) : NULL;
}

/* Status 200, and the body behind the headers. */
static struct error *find_body(struct buf *answer, const char *address, size_t *offset_out)
{
	static const char end_of_headers[] = "\r\n\r\n";
	const char *text = buf_string(answer);
	const char *end = strstr(text, end_of_headers);
	bool is_http = strncmp(text, "HTTP/1.", strlen("HTTP/1.")) == 0;
	if (!is_http || !end)
		return error_number(
			error_new(ERROR_UNAVAILABLE, "%s: what answers is no perfpipe", address),
			UNREACHABLE);
	const char *status = text + strcspn(text, " ");
	if (strncmp(status, " 200 ", strlen(" 200 ")) != 0)
		return error_number(error_new(ERROR_UNAVAILABLE, "%s: answered \"%.*s\"", address,
					      (int)strcspn(text, "\r\n"), text),
				    UNREACHABLE);
	*offset_out = (size_t)(end - text) + strlen(end_of_headers);
	return NULL;
}

static struct error *print_status(const char *address, bool is_json)
{
	int fd CLEANUP(cleanup_fd) = -1;
	struct error *err = open_connection(address, &fd);
	if (err)
		return err;
	char *request CLEANUP(cleanup_mem) =
		mem_format("GET /status%s HTTP/1.0\r\nHost: %s\r\n\r\n",
			   is_json ? "" : "?format=text", address);
	struct buf answer CLEANUP(buf_fini);
	buf_init(&answer, MAX_ANSWER_BYTES);
	err = file_write(fd, request, strlen(request));
	if (err)
		return error_number(error_wrap(err, "%s", address), UNREACHABLE);
	size_t body = 0;
	err = read_answer(fd, address, &answer);
	if (!err)
		err = find_body(&answer, address, &body);
	if (!err)
		fwrite(answer.data + body, 1, answer.size - body, stdout);
	return err;
}

int cmd_status(int argc, char **argv)
{
	const char *address = STATUS_SERVER_DEFAULT_ADDRESS;
	struct cli cli;
	int exit_code;
	if (!cli_read(&cmd_status_spec, argc, argv, &address, &cli, &exit_code))
		return exit_code;
	struct error *err = print_status(address, cli.format == CLI_FORMAT_JSON);
	return err ? message_error(&cli.message, err) : EXIT_CODE_DONE;
}
