/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parca and Polar Signals: ProfileStoreService/WriteRaw. The server keeps labels of series only, so
 * each set of labels that samples have becomes a series; many series travel in one request.
 */
#pragma once

#include "forwarder/backend.h"

extern const struct backend backend_parca;
