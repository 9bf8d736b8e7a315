/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "shapes.h"

static int twice(int a)
{
	return a * 2 + area(a, 2);
}

int measure(int kind, const int *values, size_t n)
{
	int sum = weigh(values, n);
	for (size_t i = 0; i < n; i++)
		sum += kind == 1 ? twice(values[i]) : area(kind, sum);
	if (sum == -1)
		complain("no sum");
	return sum;
}

void complain(const char *text)
{
	fprintf(stderr, "%s\n", text);
}
