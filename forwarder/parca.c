/* SPDX-License-Identifier: Apache-2.0 */
#include "forwarder/parca.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "forwarder/backend_judge.h"
#include "forwarder/raw_request.h"
#include "forwarder/series.h"
#include "proto/profile_split.h"

enum { DEFAULT_PORT = 7070, MAX_MESSAGE_BYTES = 64 << 20 };

struct parca_encoder {
	const struct series *series;
	struct raw_request request;
	struct key_value *labels; /* room for all that one series may have */
};

static struct error *add_label_set(void *context, struct profile *taken, uint32_t label_set)
{
	struct parca_encoder *encoder = context;
	CLEANUP(cleanup_profile) struct profile *part = taken;
	const struct series *series = encoder->series;
	struct profile_label_set set = series->profile->label_sets.items[label_set];
	size_t n = 0;
	encoder->labels[n++] = (struct key_value){"__name__", series->name};
	for (size_t i = 0; i < series->n_labels; i++)
		encoder->labels[n++] = series->labels[i];
	for (uint32_t i = 0; i < set.n; i++) {
		const struct profile_label label = profile_label_at(series->profile, set.first + i);
		encoder->labels[n++] = (struct key_value){profile_text(series->profile, label.key),
							  profile_text(series->profile, label.str)};
	}
	return raw_request_add(&encoder->request, part, encoder->labels, n);
}

static struct error *encode(const struct exporter_config *config,
			    const struct outgoing_profile *outgoing, backend_emit_fn emit,
			    void *context)
{
	struct series_rules rules = series_rules_make(config, NULL, 0);
	rules.is_flat = true;
	CLEANUP(series_fini) struct series series;
	series_init(&series, &rules, outgoing);
	CLEANUP(cleanup_mem)
	struct key_value *labels =
		mem_zalloc(1 + series.n_labels + SERIES_MAX_LABELS, sizeof(*labels));
	struct parca_encoder encoder = {.series = &series, .labels = labels};
	raw_request_init(&encoder.request, &raw_request_parca, config, &backend_parca, emit,
			 context);
	struct error *err = profile_split_by_label_sets(series.profile, add_label_set, &encoder);
	if (!err)
		err = raw_request_end(&encoder.request);
	raw_request_fini(&encoder.request);
	return err;
}

static struct error *split(const struct exporter_config *config, const uint8_t *message, size_t n,
			   backend_emit_fn emit, void *context)
{
	return raw_request_split(&raw_request_parca, config, message, n, emit, context);
}

static struct error *list_profiles(const uint8_t *message, size_t n, backend_profile_fn emit,
				   void *context)
{
	return raw_request_profiles(&raw_request_parca, message, n, emit, context);
}

/* UNKNOWN is what a bad gzip stream or an impossible profile type gets: as final as 3. */
static void judge(const struct grpc_result *result, struct backend_answer *out)
{
	static const struct judge_rules rules = {
		.retried = JUDGE_CODE(GRPC_CANCELLED) | JUDGE_CODE(GRPC_DEADLINE_EXCEEDED) |
			   JUDGE_CODE(GRPC_ABORTED) | JUDGE_CODE(GRPC_INTERNAL) |
			   JUDGE_CODE(GRPC_UNAVAILABLE) | JUDGE_CODE(GRPC_DATA_LOSS),
		.has_series_apart = true,
	};
	backend_judge(&rules, result, out);
}

const struct backend backend_parca = {
	.kind = "parca",
	.path = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
	.content = "parca WriteRawRequest",
	.default_port = DEFAULT_PORT,
	.default_max_message_bytes = MAX_MESSAGE_BYTES,
	.is_compressed = true,
	.encode = encode,
	.split = split,
	.profiles = list_profiles,
	.judge = judge,
};
