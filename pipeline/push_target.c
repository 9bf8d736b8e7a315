/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/push_target.h"

#include <string.h>

#include "base/mem.h"
#include "pipeline/cli.h"

/* What a spool's folder is named after the kind; longer ones are told apart by their hash. */
enum { PLACE_BYTES = 60 };

static const struct scheme {
	const char *prefix;
	enum exporter_kind kind;
	bool is_insecure, is_unix;
} schemes[] = {
	{"parca://", EXPORTER_PARCA, false, false},
	{"parca+insecure://", EXPORTER_PARCA, true, false},
	{"parca+unix:", EXPORTER_PARCA, true, true},
	{"pyroscope://", EXPORTER_PYROSCOPE, false, false},
	{"pyroscope+insecure://", EXPORTER_PYROSCOPE, true, false},
	{"pyroscope+unix:", EXPORTER_PYROSCOPE, true, true},
	{"otlp://", EXPORTER_OTLP, false, false},
	{"otlp+insecure://", EXPORTER_OTLP, true, false},
	{"otlp+unix:", EXPORTER_OTLP, true, true},
	{"file://", EXPORTER_FILE, false, false},
};
static const char *const kind_names[EXPORTER_KIND_N] = {
	[EXPORTER_PARCA] = "parca",
	[EXPORTER_PYROSCOPE] = "pyroscope",
	[EXPORTER_OTLP] = "otlp",
	[EXPORTER_FILE] = "file",
};

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
	return hash;
}

static char *make_name(enum exporter_kind kind, const char *place)
{
	char safe[PLACE_BYTES + 1];
	size_t n = 0;
	for (; n < PLACE_BYTES && place[n]; n++) {
		char c = place[n];
		bool is_safe = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			       (c >= 'A' && c <= 'Z') || c == '.' || c == '-';
		safe[n] = is_safe ? c : '_';
	}
	safe[n] = 0;
	return mem_format("push/%s-%.40s-%08x", kind_names[kind], safe, (unsigned)hash_text(place));
}

struct error *push_target_parse(const char *url, struct exporter_config *out)
{
	const struct scheme *scheme = NULL;
	for (size_t i = 0; i < ARRAY_LEN(schemes) && !scheme; i++) {
		if (strncmp(url, schemes[i].prefix, strlen(schemes[i].prefix)) == 0)
			scheme = &schemes[i];
	}
	if (!scheme)
		return cli_usage("--to \"%s\" is no URL of a kind that is known: "
				 "parca://HOST:PORT, pyroscope://…, otlp://… (TLS), "
				 "parca+insecure://… (plaintext), parca+unix:/PATH, file:///DIR",
				 url);
	const char *place = url + strlen(scheme->prefix);
	size_t n = strlen(place);
	while (n > 1 && place[n - 1] == '/')
		n--;
	if (!n || (scheme->kind == EXPORTER_FILE && *place != '/'))
		return cli_usage(scheme->kind == EXPORTER_FILE
					 ? "--to \"%s\": the folder's whole path is file:///DIR"
					 : "--to \"%s\" names no host",
				 url);
	out->kind = scheme->kind;
	char *trimmed = mem_format("%.*s", (int)n, place);
	out->name = make_name(scheme->kind, trimmed);
	mem_free(trimmed);
	if (scheme->kind == EXPORTER_FILE) {
		out->directory = mem_format("%.*s", (int)n, place);
		return NULL;
	}
	out->remote.endpoint = mem_format("%s%.*s", scheme->is_unix ? "unix:" : "", (int)n, place);
	out->remote.insecure = scheme->is_insecure;
	return NULL;
}

void push_target_fini(struct exporter_config *config)
{
	mem_free((void *)config->name);
	mem_free((void *)config->directory);
	mem_free((void *)config->remote.endpoint);
	*config = (struct exporter_config){0};
}
