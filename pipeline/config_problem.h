/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with a configuration: collected while it is read, so that one run tells all, and
 * printed in the order of the files, each with its line and a caret. Secrets in those lines are
 * masked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "pipeline/message.h"

/* Lines and columns count from 1, columns in characters. */
struct config_place {
	const char *file; /* NULL = nowhere */
	unsigned line;	  /* 0 = the file as a whole */
	unsigned column;
};

struct config_problem {
	bool is_warning;
	int number; /* of explain.c */
	struct config_place place;
	size_t file_order;
	const char *text;
};

struct config_source {
	const char *path;
	char *text; /* 0-terminated */
	size_t size;
};

struct config_span {
	struct config_place begin, end;
};

struct config_problems {
	struct arena arena;
	struct config_problem *problems;
	size_t n, capacity;
	size_t n_errors;  /* also those past the bound on what is kept */
	size_t n_dropped; /* errors and warnings past it */
	struct config_source *sources;
	size_t n_sources;
	struct config_span *hidden;
	size_t n_hidden, hidden_capacity;
};

void config_problems_init(struct config_problems *problems);
void config_problems_fini(struct config_problems *problems);
/* Copies path; the text is taken. Returns the copy of the path, for places. */
const char *config_problems_take_source(struct config_problems *problems, const char *path,
					char *text, size_t size);
void config_error_numbered(struct config_problems *problems, int number, struct config_place place,
			   const char *fmt, ...) PRINTF_LIKE(4, 5);
void config_warn(struct config_problems *problems, int number, struct config_place place,
		 const char *fmt, ...) PRINTF_LIKE(4, 5);
/* What stands between the places is not shown. */
void config_problems_hide(struct config_problems *problems, struct config_place begin,
			  struct config_place end);
/* Whether an error stands between the places: what follows from it need not be told. */
bool config_problems_has_between(const struct config_problems *problems, struct config_place begin,
				 struct config_place end);
/* To standard error; with JSON, an object a line. */
void config_problems_print(struct config_problems *problems, const struct message *message);
