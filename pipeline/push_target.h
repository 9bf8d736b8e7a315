/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where `push` sends to, as a URL: parca://HOST[:PORT], pyroscope://…, otlp://… over TLS,
 * parca+insecure://… and so on in plaintext, parca+unix:/PATH, file:///DIR.
 */
#pragma once

#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/forwarder.h"

/*
 * Fills kind, name, remote.endpoint and remote.insecure, or directory, of *out and leaves the rest.
 * Texts made for it go with push_target_fini. name is unique for kind and place:
 * "push/parca-HOST_PORT". ERROR_USAGE.
 */
struct error *push_target_parse(const char *url, struct exporter_config *out) MUST_USE;
void push_target_fini(struct exporter_config *config);
