/* SPDX-License-Identifier: Apache-2.0 */
/* Scalars of a configuration → numbers. All are false for what is not of the form, or too large. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* "true", "false". */
bool config_value_bool(const char *text, bool *out);
/* Decimal digits. */
bool config_value_integer(const char *text, uint64_t *out);
/* "10s", "1h30m", "250ms", "7d", largest unit first, each once; "0". */
bool config_value_duration(const char *text, uint64_t *ns_out);
/* "4096", "4096B", "512KiB", "64MiB", "1GiB", "2TiB". */
bool config_value_size(const char *text, uint64_t *bytes_out);
/* "5%", "0.5%". */
bool config_value_percent(const char *text, double *out);
