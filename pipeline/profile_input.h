/* SPDX-License-Identifier: Apache-2.0 */
/* A profile out of whatever a command is given: pprof, gzip or not, or perf.data in any form. */
#pragma once

#include "base/compiler.h"
#include "base/error.h"
#include "pipeline/cli.h"
#include "pipeline/conversion.h"
#include "proto/profile.h"

/*
 * path: a file, a folder of perf record --threads, or "-". What the options say is for perf.data; a
 * usage error says so when it is given for a pprof. Errors have numbers 601 to 613.
 */
struct error *profile_input_read(const struct conversion_options *options, const char *path,
				 const struct cli *cli, struct profile **out) MUST_USE;
