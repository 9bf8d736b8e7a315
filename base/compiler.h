/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes that our headers use; nothing here generates code. */
#pragma once

#define MUST_USE		__attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))
#define NORETURN		__attribute__((noreturn))
#define LIKELY(x)		__builtin_expect(!!(x), 1)
#define UNLIKELY(x)		__builtin_expect(!!(x), 0)
#define ARRAY_LEN(a)		(sizeof(a) / sizeof((a)[0]))
