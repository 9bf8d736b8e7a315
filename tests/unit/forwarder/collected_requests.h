/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend emits, kept for a look at it, and profiles to feed it. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "forwarder/backend.h"
#include "tests/unit/proto/made_up_profile.h"

enum { COLLECTED_MAX = 4096 };

struct collected_requests {
	size_t n;
	struct {
		uint8_t *message;
		size_t n;
		struct request_summary summary;
	} items[COLLECTED_MAX];
	uint64_t n_samples, n_profiles; /* sums of the summaries */
	bool is_refusing;
};

static inline struct error *collect_request(void *context, const uint8_t *message, size_t n,
					    const struct request_summary *summary)
{
	struct collected_requests *all = context;
	if (all->is_refusing)
		return error_new(ERROR_IO, "disk full");
	assert_true(all->n < COLLECTED_MAX);
	all->items[all->n].message = mem_copy(message, n);
	all->items[all->n].n = n;
	all->items[all->n].summary = *summary;
	all->n_samples += summary->n_samples;
	all->n_profiles += summary->n_profiles;
	all->n++;
	return NULL;
}

static inline void collected_requests_fini(struct collected_requests *all)
{
	for (size_t i = 0; i < all->n; i++)
		mem_free(all->items[i].message);
	memset(all, 0, sizeof(*all));
}

/* n samples of one each over n / 8 locations with long names; a label set of its own for every
 * n / n_sets samples, when n_sets is not 0. */
static inline struct profile *collected_large_profile(uint32_t n, uint32_t n_sets)
{
	struct profile *profile = made_up_profile();
	char text[64];
	uint32_t first = profile->locations.n;
	uint32_t n_locations = n / 8 + 1;
	for (uint32_t i = 0; i < n_locations; i++) {
		snprintf(text, sizeof(text), "a_function_with_quite_a_long_name_%u", i);
		(void)made_up_location(profile, 0, 0x400000 + (uint64_t)i * 16, text, i);
	}
	uint64_t random = 5;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t stack = 0;
		for (int depth = 0; depth < 10; depth++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			stack = profile_stack_push(
				profile, stack, first + (uint32_t)((random >> 33) % n_locations));
		}
		uint32_t set = 0;
		if (n_sets) {
			snprintf(text, sizeof(text), "comm-%u", i % n_sets);
			struct profile_label label = made_up_text_label(profile, "comm", text);
			set = profile_label_set(profile, &label, 1);
		}
		const int64_t values[] = {1, 10000000};
		(void)profile_add_sample(profile, stack, set, values);
	}
	return profile;
}

static inline struct grpc_result collected_result(enum grpc_code code, const char *message)
{
	return (struct grpc_result){.code = code, .message = message};
}

static inline struct backend_answer collected_answer(const struct backend *backend,
						     struct grpc_result result)
{
	struct backend_answer answer;
	backend->judge(&result, &answer);
	return answer;
}
