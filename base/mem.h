/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heap memory. No memory left aborts here and only here, so no caller checks; therefore every size
 * that comes from input is compared with a named cap before it gets here.
 */
#pragma once

#include <stddef.h>

/* Uninitialised; zero bytes give a unique pointer. */
void *mem_alloc(size_t bytes);
/* Zeroed array; n * size that overflows aborts. */
void *mem_zalloc(size_t n, size_t size);
/* Array of n elements; p may be NULL. */
void *mem_realloc(void *p, size_t n, size_t size);
void *mem_copy(const void *p, size_t bytes);
char *mem_copy_string(const char *s);
/* printf into a new string that the caller frees. */
char *mem_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void mem_free(void *p);
/* Resident memory of this process in bytes, from /proc/self/status; 0 if unknown. */
size_t mem_resident_bytes(void);
