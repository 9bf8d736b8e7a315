/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of all keys of a configuration file. Parsing, defaults, suggestions for unknown
 * keys, `check-config --print`, the JSON Schema and the completeness of configs/full.yaml are made
 * from it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stands at offset of the struct that a table fills. */
enum config_type {
	CONFIG_TYPE_MAP,	/* keys; filled into the same struct */
	CONFIG_TYPE_COMPONENTS, /* TYPE or TYPE/NAME → a map of the keys of that TYPE */
	CONFIG_TYPE_MAPS,	/* list of maps: element *, size_t */
	CONFIG_TYPE_VARIANT,  /* one of choices, or a map with one of keys: unsigned, counting on */
	CONFIG_TYPE_TEXT,     /* const char * */
	CONFIG_TYPE_PATH,     /* const char *, absolute */
	CONFIG_TYPE_SECRET,   /* const char *, never shown */
	CONFIG_TYPE_BOOL,     /* bool */
	CONFIG_TYPE_INTEGER,  /* uint32_t or uint64_t, by bytes */
	CONFIG_TYPE_DURATION, /* uint64_t, ns */
	CONFIG_TYPE_SIZE,     /* uint64_t, bytes */
	CONFIG_TYPE_PERCENT,  /* double */
	CONFIG_TYPE_SHARE,    /* struct config_share: size or percent */
	CONFIG_TYPE_CHOICE,   /* unsigned: index in choices */
	CONFIG_TYPE_TEXTS,    /* const char *const *, size_t; each of choices where there are any */
	CONFIG_TYPE_INTEGERS, /* uint32_t *, size_t */
	CONFIG_TYPE_TEXT_MAP, /* struct key_value *, size_t */
	CONFIG_TYPE_SECRET_MAP, /* the same, values never shown */
	CONFIG_TYPE_INTEGER_MAP /* struct config_count *, size_t */
};

enum {
	CONFIG_REQUIRED = 1 << 0,
	CONFIG_TEMPLATE = 1 << 1, /* "$1" and "${name}" have a meaning */
	CONFIG_LABELS = 1 << 2,	  /* of a map: keys are names of labels */
	CONFIG_LOWER = 1 << 3,	  /* of a map: keys become lower case */
	CONFIG_ANY_CASE = 1 << 4, /* of choices: upper case counts as lower case */
};

struct config_key {
	const char *name;
	enum config_type type;
	size_t offset;
	size_t bytes;	      /* of the field; of an element for lists of maps and components */
	const char *fallback; /* as written in a file, lists with ", " between; NULL = none */
	uint64_t min, max;    /* max 0 = no bounds; percent: whole percent */
	const char *const *choices;    /* ended by NULL */
	const struct config_key *keys; /* ended by a row without name */
	const char *environment;       /* the variable that comes before the file */
	unsigned flags;
	const char *what; /* one sentence */
};

/* The keys of the top level. */
extern const struct config_key config_schema[];
enum { CONFIG_SCHEMA_VERSION = 1 };

/* NULL when there is none. */
const struct config_key *config_schema_find(const struct config_key *keys, const char *name);
/* "exporters.parca.tls.ca_file" with types instead of names of instances. */
const struct config_key *config_schema_find_path(const char *path);
/* The type of "perf_files/drop" among the keys of a section; NULL when there is none or the part
 * behind '/' is no name. */
const struct config_key *config_schema_find_component(const struct config_key *keys,
						      const char *name);
const char *config_schema_nearest(const struct config_key *keys, const char *name);
