/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an exporter is told: plain values, filled from the command line or the configuration file.
 * All texts are borrowed by whoever is given the struct unless it says that it copies.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct key_value {
	const char *key, *value;
};

struct tls_config {
	const char *ca_file, *ca_path;	  /* NULL = the system's */
	const char *cert_file, *key_file; /* client certificate; both or neither */
	const char *server_name;	  /* NULL = host of the endpoint */
	const char *min_version;	  /* "1.2" (default) or "1.3" */
	bool skip_verify;		  /* encrypts without knowing to whom */
};

/* How to reach a gRPC server. */
struct remote_config {
	/* "HOST:PORT", "https://HOST[:PORT]", "http://…" (plaintext), "unix:/PATH", "unix:@NAME";
	 * an IPv6 address in brackets. */
	const char *endpoint;
	uint16_t default_port;
	bool insecure; /* plaintext */
	struct tls_config tls;
	const char *bearer_token_file; /* read again at each connection and after a 401 */
	const char *bearer_token;      /* from the environment or a credential */
	const char *username;	       /* basic auth, with one of the next two */
	const char *password, *password_file;
	bool allow_token_in_clear; /* else refused over plaintext to other hosts */
	const struct key_value *headers;
	size_t n_headers;
	const char *tenant_id; /* X-Scope-OrgID */
	bool gzip;	       /* compress messages */
	uint64_t timeout_ns;   /* of a call; 0 = 10 s */
	uint64_t keepalive_ns; /* 0 = off; at least 10 s */
	const char *proxy; /* "http://[USER:PASSWORD@]HOST:PORT"; NULL = https_proxy and no_proxy
			      of the environment; "" = none */
	const char *user_agent; /* NULL = "grpc-c-perfpipe/VERSION" shape */
};

enum exporter_kind {
	EXPORTER_PARCA,
	EXPORTER_PYROSCOPE,
	EXPORTER_OTLP,
	EXPORTER_FILE,
	EXPORTER_KIND_N,
};

/* Most that one request may hold; 0 = the default of the kind's server. */
struct request_limits {
	uint64_t max_message_bytes;
	uint32_t max_samples;
};

struct retry_config {
	uint64_t initial_interval_ns; /* 0 = 5 s */
	uint64_t max_interval_ns;     /* 0 = 30 s */
	uint64_t max_elapsed_ns;      /* 0 = until the queue's max_age */
};

struct exporter_config {
	const char *name;  /* "parca", "pyroscope/lab"; unique; [A-Za-z0-9_.-] and one '/' */
	const char *shown; /* in messages; NULL = name */
	enum exporter_kind kind;
	struct remote_config remote; /* all kinds but EXPORTER_FILE */
	struct request_limits limits;
	struct retry_config retry;
	uint64_t max_age_ns;	 /* of what waits; 0 = 24 h, 55 min for EXPORTER_PYROSCOPE */
	uint32_t max_concurrent; /* requests under way at a time; 0 = 4 */
	/* Labels of samples that are not sent; their samples are added up without. NULL = what the
	 * kind leaves out by itself: "cgroup" for EXPORTER_PYROSCOPE, where each value would be a
	 * series of its own. */
	const char *const *drop_labels;
	size_t n_drop_labels;
	const char *directory;	      /* EXPORTER_FILE */
	uint64_t max_directory_bytes; /* EXPORTER_FILE; 0 = no bound */
};

/* Copies all that is borrowed. */
void remote_config_copy(const struct remote_config *config, struct remote_config *out);
/* Of a copy; secrets are wiped. */
void remote_config_fini(struct remote_config *config);
