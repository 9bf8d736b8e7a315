/* SPDX-License-Identifier: Apache-2.0 */
/* Inline functions that both units of the test programs use. */
#pragma once

#include <stddef.h>

static inline __attribute__((always_inline)) int area(int width, int height)
{
	return width * height + (width ^ height);
}

static inline int weigh(const int *values, size_t n)
{
	int sum = 0;
	for (size_t i = 0; i < n; i++) {
		if (values[i] > 3)
			sum += area(values[i], (int)i);
		else
			sum -= area((int)i, sum);
	}
	return sum;
}

int measure(int kind, const int *values, size_t n);
void complain(const char *text) __attribute__((cold, noinline));
