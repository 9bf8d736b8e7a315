/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/agent_query.h"

#include "base/mem.h"

struct agent_query *agent_query_new(enum agent_query_kind kind, struct wake_box *answers,
				    void *asker)
{
	struct agent_query *query = mem_zalloc(1, sizeof(*query));
	query->kind = kind;
	query->answers = answers;
	query->asker = asker;
	return query;
}

void agent_query_free(void *query)
{
	struct agent_query *q = query;
	if (!q)
		return;
	delivery_counts_fini(&q->state.delivery);
	profile_free(q->profile);
	mem_free(q);
}

void agent_query_answer(struct agent_query *query)
{
	if (!wake_box_put(query->answers, query))
		agent_query_free(query);
}
