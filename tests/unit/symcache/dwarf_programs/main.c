/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shapes.h"

static int depth_three(int a)
{
	return area(a, a + 1) + area(a + 2, a);
}

static inline int depth_two(int a)
{
	return depth_three(a) * 3 + depth_three(a ^ 5);
}

__attribute__((noinline)) int unused_by_all(int a)
{
	return depth_two(a) + 1;
}

static int compare(const void *left, const void *right)
{
	return *(const int *)left - *(const int *)right;
}

__attribute__((noinline)) static int partly_cold(int *values, size_t n)
{
	if (__builtin_expect(n > 1000, 0)) {
		complain("too many");
		abort();
	}
	qsort(values, n, sizeof(*values), compare);
	int sum = 0;
	switch (n) {
	case 1:
		sum = depth_two(values[0]);
		break;
	case 2:
		sum = depth_three(values[1]);
		break;
	case 3:
		sum = (int)strlen("abc") + values[2];
		break;
	default:
		sum = weigh(values, n);
	}
	return sum;
}

int main(int argc, char **argv)
{
	int values[16];
	for (int i = 0; i < 16; i++)
		values[i] = (argc * 7919 + i * i) % 13;
	printf("%d %d %s\n", partly_cold(values, 16), measure(argc, values, 8), argv[0]);
	return 0;
}
