/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what `perfpipe inspect` found in a perf.data, for people or for programs. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/perf_record.h"
#include "collector/collector.h"
#include "converter/survey.h"

struct inspect_subject {
	const char *path;
	const struct perf_source_info *info;
	const struct collector_file_format *format;
	const struct collector_warning *warnings;
	size_t n_warnings;
	const struct survey_report *report;
};

/* Lists are cut at these lengths; their full lengths stand beside them. */
enum { INSPECT_LEAVES = 20, INSPECT_MAPPINGS = 40, INSPECT_BUILD_IDS = 60 };

/* One JSON object; its fields keep their names and meaning while schema_version stays. */
void inspect_write_json(FILE *out, const struct inspect_subject *subject);
void inspect_write_text(FILE *out, const struct inspect_subject *subject);
