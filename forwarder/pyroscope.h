/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grafana Pyroscope and Grafana Cloud Profiles: PusherService/Push, one series in a request, since
 * good series of a request that fails are stored all the same. Text labels of samples stay in the
 * profile: the server makes series of them, and drops numbers, so numbers that name something go as
 * text and sizes do not go.
 */
#pragma once

#include "forwarder/backend.h"

extern const struct backend backend_pyroscope;
