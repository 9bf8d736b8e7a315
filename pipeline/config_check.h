/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the table of keys cannot say: that names refer to something, that settings fit each other,
 * that rules compile. Completes struct config: exporters, references of pipelines, compiled rules.
 */
#pragma once

#include "pipeline/config.h"

/* config was filled, perhaps with errors. Errors 202 to 208 and warnings go to problems. */
void config_check(struct config *config, struct config_problems *problems);
/* Its part for exporters, which come out in the order of the files. */
void config_check_exporters(struct config *config, struct config_problems *problems);
