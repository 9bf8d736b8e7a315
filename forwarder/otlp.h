/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any OTLP receiver: ProfilesService/Export, in the layout of proto 1.10 (experimental on both
 * sides). Labels of the series are attributes of the resource, those of samples attributes of the
 * samples, both under OpenTelemetry's names where it has one; the name of the series is the
 * scope's.
 */
#pragma once

#include "forwarder/backend.h"

extern const struct backend backend_otlp;
