/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as values. Two frequent ones are static: they are never freed and cost no memory. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { OUT_OF_DESCRIPTORS = 107 }; /* of the table of explained errors */

struct error {
	enum error_code code;
	int number;
	bool is_static;
	char *text;
};

static struct error again = {ERROR_AGAIN, 0, true, "nothing to read now"};
static struct error no_entry = {ERROR_NO_ENTRY, 0, true, "not found"};
struct error *const error_again = &again;
struct error *const error_no_entry = &no_entry;

static char *PRINTF_LIKE(1, 0) format_text(const char *fmt, va_list args)
{
	va_list again_args;
	va_copy(again_args, args);
	int n = vsnprintf(NULL, 0, fmt, args);
	size_t size = n < 0 ? 1 : (size_t)n + 1;
	char *text = mem_alloc(size);
	text[0] = 0;
	if (n > 0)
		vsnprintf(text, size, fmt, again_args);
	va_end(again_args);
	return text;
}

/* Takes text. */
static struct error *make(enum error_code code, char *text)
{
	struct error *err = mem_zalloc(1, sizeof(*err));
	err->code = code;
	err->text = text;
	return err;
}

static enum error_code code_of_errno(int errno_value)
{
	switch (errno_value) {
	case ENOENT:
	case ESRCH:
		return ERROR_NO_ENTRY;
	case EACCES:
	case EPERM:
		return ERROR_DENIED;
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case E2BIG:
		return ERROR_LIMIT;
	case EAGAIN:
	case EINTR:
		return ERROR_AGAIN;
	case ENOSYS:
	case EOPNOTSUPP:
		return ERROR_UNSUPPORTED;
	default:
		return ERROR_IO;
	}
}

struct error *error_new(enum error_code code, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	char *text = format_text(fmt, args);
	va_end(args);
	return make(code, text);
}

struct error *error_errno(int errno_value, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	char *front = format_text(fmt, args);
	va_end(args);
	char reason[128];
	/* The GNU strerror_r may return a text of its own instead of filling the buffer. */
	char *text = mem_format("%s: %s", front, strerror_r(errno_value, reason, sizeof(reason)));
	mem_free(front);
	struct error *err = make(code_of_errno(errno_value), text);
	/* Wherever it happens, the remedy is the same. */
	if (errno_value == EMFILE || errno_value == ENFILE)
		err->number = OUT_OF_DESCRIPTORS;
	return err;
}

struct error *error_wrap(struct error *err, const char *fmt, ...)
{
	if (!err)
		return NULL;
	va_list args;
	va_start(args, fmt);
	char *front = format_text(fmt, args);
	va_end(args);
	char *text = mem_format("%s: %s", front, err->text);
	mem_free(front);
	if (err->is_static)
		return make(err->code, text);
	mem_free(err->text);
	err->text = text;
	return err;
}

enum error_code error_get_code(const struct error *err)
{
	return err->code;
}

const char *error_text(const struct error *err)
{
	return err->text;
}

int error_get_number(const struct error *err)
{
	return err->number;
}

struct error *error_number(struct error *err, int number)
{
	if (!err)
		return NULL;
	if (err->is_static)
		err = make(err->code, mem_copy_string(err->text));
	err->number = number;
	return err;
}

void error_free(struct error *err)
{
	if (!err || err->is_static)
		return;
	mem_free(err->text);
	mem_free(err);
}
