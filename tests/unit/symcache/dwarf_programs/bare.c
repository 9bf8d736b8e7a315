/* SPDX-License-Identifier: Apache-2.0 */
/* Needs no C library, so that it builds for any machine. */
#include "shapes.h"

static int twist(int a)
{
	return area(a, a ^ 5) - area(3, a);
}

int turn(int a, const int *values, size_t n)
{
	int sum = a > 4 ? twist(a) : twist(a + 1);
	for (size_t i = 0; i < n; i++)
		sum += twist(values[i]) ^ weigh(values, i);
	return sum;
}

int turn_twice(int a, const int *values, size_t n)
{
	return turn(twist(a), values, n) + turn(a, values, n / 2);
}
