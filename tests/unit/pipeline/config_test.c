/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "pipeline/config.h"
#include "pipeline/config_print.h"
#include "pipeline/config_schema.h"
#include "pipeline/relabel_case.h"
#include "tests/support/temp_dir.h"

/* The environment of a test: pairs, ended by NULL. */
static const char *get_environment(void *context, const char *name)
{
	const char *const *pairs = context;
	for (; pairs && *pairs; pairs += 2) {
		if (strcmp(pairs[0], name) == 0)
			return pairs[1];
	}
	return NULL;
}

struct loaded {
	struct config_problems problems;
	struct config *config;
	bool is_good;
};

static struct config_options options_with(const char *const *environment)
{
	return (struct config_options){.get_environment = get_environment,
				       .context = (void *)environment};
}

static void load(struct loaded *loaded, const char *text, const char *const *environment)
{
	const struct config_options options = options_with(environment);
	config_problems_init(&loaded->problems);
	loaded->is_good = config_load_text("f.yaml", text, strlen(text), &options,
					   &loaded->problems, &loaded->config);
}

static void unload(struct loaded *loaded)
{
	config_free(loaded->config);
	config_problems_fini(&loaded->problems);
}

static void must_load(struct loaded *loaded, const char *text, const char *const *environment)
{
	load(loaded, text, environment);
	for (size_t i = 0; i < loaded->problems.n && !loaded->is_good; i++)
		print_message("%u:%u %s\n", loaded->problems.problems[i].place.line,
			      loaded->problems.problems[i].place.column,
			      loaded->problems.problems[i].text);
	assert_true(loaded->is_good);
}

/* "6:5 201 text" lines, as they were found. */
static void list_problems(const struct config_problems *problems, char *out, size_t size)
{
	out[0] = '\0';
	for (size_t i = 0; i < problems->n; i++) {
		const struct config_problem *problem = &problems->problems[i];
		size_t used = strlen(out);
		snprintf(out + used, size - used, "%u:%u %d %s\n", problem->place.line,
			 problem->place.column, problem->number, problem->text);
	}
}

#define EXPORTER "exporters: {file: {directory: /d}}\n"

struct fault {
	const char *text, *want;
};

static void check_faults(const struct fault *faults, size_t n)
{
	static const char *const environment[] = {
		"SET",	     "value", "EMPTY", "", "BAD", "a\nb", "CREDENTIALS_DIRECTORY",
		"/run/cred", NULL};
	for (size_t i = 0; i < n; i++) {
		struct loaded loaded;
		load(&loaded, faults[i].text, environment);
		char got[4096];
		list_problems(&loaded.problems, got, sizeof(got));
		if (strcmp(got, faults[i].want) != 0)
			fail_msg("%s\nsaid:\n%sinstead of:\n%s", faults[i].text, got,
				 faults[i].want);
		assert_false(loaded.is_good);
		assert_null(loaded.config);
		unload(&loaded);
	}
}

static void config_names_unknown_keys_and_the_nearest(void **state)
{
	(void)state;
	static const struct fault faults[] = {
		{EXPORTER "receivers:\n  perf:\n    freqency: 99\n",
		 "4:5 201 unknown key \"freqency\" in receivers.perf; did you mean "
		 "\"frequency\"?\n"},
		{EXPORTER "exporter: 1\n",
		 "2:1 201 unknown key \"exporter\" at the top level; did you mean "
		 "\"exporters\"?\n"},
		{EXPORTER "receivers: {pref: {}}\n",
		 "2:13 201 unknown key \"pref\" in receivers; did you mean \"perf\"?\n"},
		{EXPORTER "receivers: {perf/: {}}\n",
		 "2:13 201 \"perf/\" in receivers: behind '/' stands a name of letters, digits, _, "
		 ". and -, at most 64\n"},
		{EXPORTER "receivers: {perf/a b: {}}\n",
		 "2:13 201 \"perf/a b\" in receivers: behind '/' stands a name of letters, digits, "
		 "_, . and -, at most 64\n"},
		{EXPORTER "storage: {spool: {xyzzy: 1}}\n",
		 "2:19 201 unknown key \"xyzzy\" in storage.spool\n"},
		{"exporters: {parca: {endpoint: h, tls: {cafile: /x}}}\n",
		 "1:40 201 unknown key \"cafile\" in exporters.parca.tls; did you mean "
		 "\"ca_file\"?\n"},
		{EXPORTER "tests: [{name: n, input: {a: b}, expekt: {}}]\n",
		 "2:34 201 unknown key \"expekt\" in tests[0]; did you mean \"expect\"?\n"},
		{EXPORTER "service: {memory_limit: 1GiB}\n",
		 "2:11 201 unknown key \"memory_limit\" in service; it belongs in "
		 "service.resources\n"},
		{EXPORTER "relabel_configs: []\n",
		 "2:1 201 unknown key \"relabel_configs\" at the top level; it belongs in "
		 "processors.relabel\n"},
		{"exporters: {parca: {endpoint: h, max_age: 1h}}\n",
		 "1:34 201 unknown key \"max_age\" in exporters.parca; it belongs in "
		 "exporters.parca.sending_queue\n"},
		{EXPORTER "receivers: {perf: {<<: {}}}\n",
		 "2:20 201 unknown key \"<<\" in receivers.perf\n"},
	};
	check_faults(faults, ARRAY_LEN(faults));
}

static void config_checks_types_and_bounds(void **state)
{
	(void)state;
	static const struct fault faults[] = {
		{EXPORTER "receivers: {perf: {frequency: fast}}\n",
		 "2:31 202 receivers.perf.frequency is \"fast\", expected a number from 1 to "
		 "10000\n"},
		{EXPORTER "receivers: {perf: {frequency: 10001}}\n",
		 "2:31 202 receivers.perf.frequency is \"10001\", expected a number from 1 to "
		 "10000\n"},
		{EXPORTER "receivers: {perf: {frequency: 0}}\n",
		 "2:31 202 receivers.perf.frequency is \"0\", expected a number from 1 to "
		 "10000\n"},
		{EXPORTER "receivers: {perf: {frequency: 99999999999999999999}}\n",
		 "2:31 202 receivers.perf.frequency is \"99999999999999999999\", expected a "
		 "number from 1 to 10000\n"},
		{EXPORTER "receivers: {perf: {window: 10}}\n",
		 "2:28 202 receivers.perf.window is \"10\", expected a duration like 90s or "
		 "1h30m, from 1s to 1h\n"},
		{EXPORTER "receivers: {perf: {window: 30m1h}}\n",
		 "2:28 202 receivers.perf.window is \"30m1h\", expected a duration like 90s or "
		 "1h30m, from 1s to 1h\n"},
		{EXPORTER "receivers: {perf: {kernel: yes}}\n",
		 "2:28 202 receivers.perf.kernel is \"yes\", expected true or false\n"},
		{EXPORTER "receivers: {perf: {kernel: }}\n",
		 "2:28 202 receivers.perf.kernel is empty, expected true or false\n"},
		{EXPORTER "receivers: {perf: {call_graph: dwarv}}\n",
		 "2:32 202 receivers.perf.call_graph is \"dwarv\", expected fp, dwarf or lbr; did "
		 "you mean \"dwarf\"?\n"},
		{EXPORTER "receivers: {perf: {scope: everything}}\n",
		 "2:27 202 receivers.perf.scope is \"everything\", expected system, {cgroup: […]} "
		 "or {pids: […]}\n"},
		{EXPORTER "receivers: {perf: {scope: {pids: [1], cgroup: [a]}}}\n",
		 "2:27 202 receivers.perf.scope is a map, expected system, {cgroup: […]} or "
		 "{pids: […]}\n"},
		{EXPORTER "receivers: {perf: {scope: {pids: [0]}}}\n",
		 "2:35 202 receivers.perf.scope.pids is \"0\", expected a number from 1 to "
		 "4194304\n"},
		{EXPORTER "receivers: {perf: [1]}\n",
		 "2:19 202 receivers.perf is a list, expected a map\n"},
		{EXPORTER "receivers: [perf]\n", "2:12 202 receivers is a list, expected a map\n"},
		{EXPORTER "storage: {spool: {max_size: 1GB}}\n",
		 "2:29 202 storage.spool.max_size is \"1GB\", expected a size like 512MiB, from "
		 "1MiB to 1024TiB\n"},
		{EXPORTER "storage: {spool: {min_free: 101%}}\n",
		 "2:29 202 storage.spool.min_free is \"101%\", expected a share like 5% or a size "
		 "like 512MiB\n"},
		{EXPORTER "storage: {spool: {directory: here}}\n",
		 "2:30 202 storage.spool.directory is \"here\", expected a whole path, from / "
		 "on\n"},
		{EXPORTER "service: {resources: {cpu_limit: 5}}\n",
		 "2:34 202 service.resources.cpu_limit is \"5\", expected a share like 5%, from 0% "
		 "to 10000%\n"},
		{EXPORTER "processors: {gitaly: {subcommand_from: cmdline}}\n",
		 "2:40 202 processors.gitaly.subcommand_from is \"cmdline\", expected a list of "
		 "cmdline or stack\n"},
		{EXPORTER "processors: {limits: {topk: {cgroup: many}}}\n",
		 "2:38 202 processors.limits.topk.cgroup is \"many\", expected a number from 1 to "
		 "1000000\n"},
		{EXPORTER "processors: {limits: {topk: {a-b: 1}}}\n",
		 "2:30 202 \"a-b\" is no name of a label: letters, digits and _\n"},
		{"exporters: {parca: {endpoint: \"a\\tb\"}}\n",
		 "1:31 202 exporters.parca.endpoint is \"a\tb\", expected a text without control "
		 "characters\n"},
		{"exporters: {parca: {endpoint: h, password: x, headers: [a]}}\n",
		 "1:34 201 unknown key \"password\" in exporters.parca; it belongs in "
		 "exporters.parca.basic_auth\n"
		 "1:56 202 exporters.parca.headers is a list, expected a map of texts\n"},
		{"exporters: {parca: {endpoint: h, headers: {\"a b\": x}}}\n",
		 "1:44 202 \"a b\" is no name of a header\n"},
		{"exporters: {parca: {endpoint: \"ftp://h\"}}\n",
		 "1:31 202 exporters.parca: endpoint \"ftp://h\": unknown scheme \"ftp\"; "
		 "give HOST:PORT, https://HOST:PORT, http://HOST:PORT (plaintext) or unix:/PATH\n"},
		{EXPORTER "schema_version: 2\n",
		 "2:17 211 schema_version 2 is newer than this perfpipe, which knows up to 1\n"},
		{EXPORTER "schema_version: x\n",
		 "2:17 202 schema_version is \"x\", expected a number from 1 to 1\n"},
		{EXPORTER "service: {telemetry: {http: {address: \"9917\"}}}\n",
		 "2:39 202 service.telemetry.http.address is \"9917\", expected ADDRESS:PORT\n"},
		{EXPORTER "receivers: {perf_files: {include: [x]}}\n",
		 "2:36 202 \"x\" is no whole path, from / on\n"},
		{EXPORTER "tests: [{name: n, input: , dropped: true}]\n",
		 "2:26 202 tests[0].input is empty, expected a map of texts\n"},
		{EXPORTER "tests: {}\n", "2:8 202 tests is a map, expected a list of maps\n"},
		{"- a\n", "1:1 202 the top level is a list, expected a map with keys like "
			  "exporters\n"},
		{"text\n", "1:1 202 the top level is a text, expected a map with keys like "
			   "exporters\n"},
	};
	check_faults(faults, ARRAY_LEN(faults));
}

static void config_refuses_what_is_no_plain_yaml(void **state)
{
	(void)state;
	static const struct fault faults[] = {
		{"a: [1\n", "2:1 206 not YAML: did not find expected ',' or ']' (while parsing a "
			    "flow sequence that began in line 1)\n"},
		{"\xc3\xa4: {b: \"\xc3\xb6\", c: ${env:X}}\n",
		 "1:17 206 not YAML: did not find expected ',' or '}' (while parsing a flow "
		 "mapping that began in line 1); put quotes around ${…} inside of { } and [ ]\n"},
		{"a: 1\n---\nb: 2\n", "2:1 206 a second document (---); a file holds one\n"},
		{"a: !!str 1\n", "1:4 206 tags like !!str are not supported\n"},
		{"a: !x {}\n", "1:4 206 tags like !!str are not supported\n"},
		{"[a]: 1\n", "1:1 206 a map's key has to be a text\n"},
		{"a: *x\n", "1:4 206 an alias of an anchor that is not there\n"},
		{"a: &x [*x]\n", "1:8 206 an alias inside of what it stands for\n"},
		{"a: \"\\0\"\n", "1:4 206 a text with a 0 byte\n"},
		{"k: v\n\xff\n", "2:1 206 not YAML: invalid leading UTF-8 octet\n"},
		{"a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n",
		 "1:35 206 maps and lists nested more than 32 deep\n"},
		{"a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
		 "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
		 "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
		 "5:8 206 more than 20000 values in one file\n"},
	};
	check_faults(faults, ARRAY_LEN(faults));
}

static void config_refuses_what_is_set_twice_or_refers_to_nothing(void **state)
{
	(void)state;
	static const struct fault faults[] = {
		{EXPORTER "receivers:\n  perf:\n    window: 5s\n    window: 6s\n",
		 "5:5 203 key \"window\" stands twice in this map, first in line 4\n"},
		{EXPORTER "service: {pipelines: {profiles: {receivers: [pref], exporters: "
			  "[file]}}}\n",
		 "2:46 204 receiver \"pref\" of pipeline profiles is not defined\n"},
		{EXPORTER "service: {pipelines: {profiles: {receivers: [perf], exporters: "
			  "[fill]}}}\n",
		 "2:65 204 exporter \"fill\" of pipeline profiles is not defined; did you mean "
		 "\"file\"?\n"},
		{EXPORTER "service: {pipelines: {profiles: {receivers: [file], exporters: "
			  "[file]}}}\n",
		 "2:46 204 \"file\" in receivers of pipeline profiles stands among the "
		 "exporters\n"},
		{EXPORTER "service: {pipelines: {profiles: {receivers: [perf, perf], exporters: "
			  "[file]}}}\n",
		 "2:52 203 \"perf\" stands twice in receivers of pipeline profiles\n"},
		{EXPORTER "tests: [{name: n, pipeline: x, input: {a: b}, dropped: true}]\n",
		 "2:29 204 pipeline \"x\" is not defined\n"},
		{EXPORTER "service: {node: \"${env:UNSET}\"}\n",
		 "2:17 205 environment variable UNSET is not set; set it, or give a default: "
		 "${env:UNSET:-default}\n"},
		{EXPORTER "service: {node: \"${env:9}\"}\n",
		 "2:17 205 ${env:9} does not name a variable\n"},
		{EXPORTER "service: {node: \"${env:SET\"}\n",
		 "2:17 205 reference ${env:… has no closing }\n"},
		{EXPORTER "service: {node: \"${env:X:-${env:SET}}\"}\n",
		 "2:17 205 reference ${env:… holds another one, which is not supported\n"},
		{EXPORTER "service: {node: \"${env:BAD}\"}\n",
		 "2:17 205 ${env:BAD} holds control characters or is no UTF-8\n"},
		{EXPORTER "service: {node: \"${file:/nonexistent}\"}\n",
		 "2:17 205 ${file:/nonexistent} /nonexistent: No such file or directory\n"},
		{EXPORTER "service: {node: \"${file:x}\"}\n",
		 "2:17 205 ${file:x} needs a whole path: ${file:/PATH}\n"},
		{EXPORTER "service: {node: \"${credential:a/b}\"}\n",
		 "2:17 205 ${credential:a/b} does not name a credential\n"},
		{EXPORTER "service: {node: \"${SET}\"}\n",
		 "2:17 205 service.node holds a reference of no known kind; known are "
		 "${env:NAME}, ${file:/PATH} and ${credential:NAME}\n"},
	};
	check_faults(faults, ARRAY_LEN(faults));
}

#define PARCA(settings) "exporters: {parca: {endpoint: \"h:1\", " settings "}}\n"

static void config_refuses_settings_that_do_not_fit_together(void **state)
{
	(void)state;
	static const struct fault faults[] = {
		{"exporters: {parca: {}}\n", "1:13 207 exporters.parca needs endpoint\n"},
		{PARCA("bearer_token: a, bearer_token_file: /b"),
		 "1:55 207 exporters.parca has bearer_token and bearer_token_file, of which it can "
		 "use one\n"},
		{PARCA("bearer_token: a, basic_auth: {username: u, password: p}"),
		 "1:55 207 exporters.parca has bearer_token and basic_auth, of which it can use "
		 "one\n"},
		{PARCA("basic_auth: {username: u}"),
		 "1:51 207 exporters.parca.basic_auth needs a password or password_file\n"},
		{PARCA("basic_auth: {password: u}"),
		 "1:51 207 exporters.parca.basic_auth.password needs basic_auth.username\n"},
		{PARCA("bearer_token: a, headers: {Authorization: b}"),
		 "1:65 207 exporters.parca has an authorization header beside token or password\n"},
		{PARCA("tls: {cert_file: /c}"),
		 "1:44 207 exporters.parca.tls.cert_file needs tls.key_file\n"},
		{PARCA("tls: {insecure: true, ca_file: /c}"),
		 "1:60 207 exporters.parca.tls.ca_file has no effect: h:1 is reached in "
		 "plaintext\n"},
		{PARCA("tls: {insecure: true}, bearer_token: a"),
		 "1:31 207 exporters.parca would send its token or password to h:1 in plaintext; "
		 "use TLS, or allow_token_in_clear: true\n"},
		{PARCA("retry_on_failure: {initial_interval: 1m}"),
		 "1:57 207 exporters.parca.retry_on_failure: initial_interval is longer than "
		 "max_interval\n"},
		{"exporters: {file/a: {directory: /x}, file/b: {directory: /x}}\n",
		 "1:58 207 exporters.file/b writes into the folder of exporters.file/a\n"},
		{EXPORTER "receivers: {perf_files: {include: [/x], after: move}}\n",
		 "2:41 207 after: move needs move_to, the folder\n"},
		{EXPORTER "receivers: {perf_files: {include: [/x], move_to: /y}}\n",
		 "2:41 207 move_to has an effect with after: move only\n"},
		{EXPORTER "receivers: {perf_files: {}}\n",
		 "2:13 207 receivers.perf_files needs include\n"},
		{EXPORTER "processors: {process: {read_environ: [GITALY_HOOKS_PAYLOAD]}}\n",
		 "2:39 207 GITALY_HOOKS_PAYLOAD holds data of users and is never read\n"},
		{EXPORTER "service: {external_labels: {pid: a, __x: b}}\n",
		 "2:29 207 label pid is never a label of a series\n"
		 "2:37 207 label __x: names that begin with __ exist for rules only and are not "
		 "sent\n"},
		{EXPORTER "service: {pipelines: {profiles: {receivers: [perf], processors: "
			  "[gitaly], exporters: [file]}}}\n",
		 "2:66 207 processor gitaly of pipeline profiles needs process before it: it works "
		 "on what process reads\n"},
		{EXPORTER "processors: {relabel: {}}\n"
			  "service: {pipelines: {profiles: {receivers: [perf], processors: "
			  "[limits, relabel], exporters: [file]}}}\n",
		 "3:66 207 processor limits of pipeline profiles needs relabel before it: limits "
		 "count labels as they are sent\n"},
		{EXPORTER "processors: {process: {}, process/b: {}}\n",
		 "0:0 207 processors process and process/b: pipeline profiles can have one "
		 "process\n"},
		{"service: {telemetry: {http: {address: \"\"}}}\n",
		 "0:0 207 neither exporters nor service.telemetry.http.address: profiles would go "
		 "nowhere\n"},
		{EXPORTER "tests: [{name: n, input: {a: b}}]\n",
		 "2:9 207 the test expects nothing: add expect, or dropped: true\n"},
		{EXPORTER "tests: [{name: n, input: {a: b}, expect: {a: b}, dropped: true}]\n",
		 "2:34 207 a sample that is dropped has no labels to expect\n"},
		{EXPORTER "processors: {relabel: {relabel_configs: [{action: drop, regex: "
			  "\"a(?=b)\"}]}}\n",
		 "2:64 208 rule 1 of relabel: regular expression 'a(?=b)': look-ahead is not "
		 "supported at character 2\n"},
		{EXPORTER "processors:\n  relabel:\n    relabel_configs:\n      - source_labels: "
			  "[a]\n",
		 "5:9 208 rule 1 of relabel: action replace needs a target_label\n"},
	};
	check_faults(faults, ARRAY_LEN(faults));
}

static void config_tells_no_error_that_follows_from_another(void **state)
{
	(void)state;
	static const struct fault faults[] = {
		{EXPORTER "processors: {relabel: {relabel_configs: [{action: replac}]}}\n",
		 "2:51 202 processors.relabel.relabel_configs[0].action is \"replac\", expected "
		 "replace, keep, drop, keepequal, dropequal, hashmod, labelmap, labeldrop, "
		 "labelkeep, lowercase or uppercase; did you mean \"replace\"?\n"},
		{PARCA("basic_auth: {username: u, pasword: x}"),
		 "1:64 201 unknown key \"pasword\" in exporters.parca.basic_auth; did you mean "
		 "\"password\"?\n"},
		{EXPORTER "receivers: {perf_files: {include: [\"${env:UNSET}/x\"]}}\n",
		 "2:36 205 environment variable UNSET is not set; set it, or give a default: "
		 "${env:UNSET:-default}\n"},
		{"exporters: {fyle: {directory: /d}}\n",
		 "1:13 201 unknown key \"fyle\" in exporters; did you mean \"file\"?\n"},
	};
	check_faults(faults, ARRAY_LEN(faults));
}

/* --- values --- */

static const char whole[] =
	"receivers:\n"
	"  perf: {frequency: 19, window: 1m30s, kernel: false, call_graph: lbr, event: cpu-clock}\n"
	"  perf/b: {scope: {cgroup: [a, b/c]}}\n"
	"  perf/c: {scope: {pids: [7, 8]}}\n"
	"  perf_files/drop: {include: [/in/*.data], after: keep}\n"
	"processors:\n"
	"  process: {read_environ: [A, B], remember_exited: 0}\n"
	"  gitaly: {subcommand_from: [stack]}\n"
	"  symbols: {capture: lazy, cache_max_size: 5MiB, debuginfod: {urls: [\"https://d\"]}}\n"
	"  relabel: {relabel_configs: [{regex: a, action: LabelDrop}]}\n"
	"  limits: {topk: {cgroup: 20, comm: 5}, exemplars: {min_samples: 3}}\n"
	"exporters:\n"
	"  file: {directory: /d, max_size: 1TiB}\n"
	"  pyroscope/lab: {endpoint: p, tenant_id: t, drop_labels: [], compression: none}\n"
	"  parca:\n"
	"    endpoint: \"h:1\"\n"
	"    headers: {X-One: \"1\", two: \"${env:SET}\"}\n"
	"    bearer_token_file: ${credential:tok}\n"
	"    tls: {min_version: 1.3, ca_file: /ca}\n"
	"    sending_queue: {max_age: 2d, num_consumers: 9}\n"
	"    retry_on_failure: {initial_interval: 250ms}\n"
	"    max_samples: 77\n"
	"storage: {spool: {max_size: 3GiB, min_free: 0.5%, when_full: block}}\n"
	"service:\n"
	"  node: n-${env:SET}-${env:EMPTY:-x}-$1-${1}\n"
	"  external_labels: {env: prod}\n"
	"  resources: {cpu_limit: 2.5%, memory_limit: 64MiB}\n"
	"  telemetry: {http: {address: \"[::1]:1\"}, logs: {level: warn, format: json}}\n";

static const char *const whole_environment[] = {
	"SET",	 "v", "EMPTY", "", "CREDENTIALS_DIRECTORY", "/run/cred", "PERFPIPE_LOG_LEVEL",
	"debug", NULL};

static void config_fills_receivers_and_processors(void **state)
{
	(void)state;
	struct loaded loaded;
	/* ${1} is refused outside of rules. */
	char *text = mem_copy_string(whole);
	memcpy(strstr(text, "-${1}"), "-(11)", 5);
	must_load(&loaded, text, whole_environment);
	mem_free(text);
	const struct config *config = loaded.config;
	assert_int_equal(config->n_perf, 3);
	assert_int_equal(config->perf[0].frequency_hz, 19);
	assert_int_equal(config->perf[0].window_ns, 90000000000);
	assert_false(config->perf[0].has_kernel);
	assert_int_equal(config->perf[0].call_graph, CONFIG_CALL_GRAPH_LBR);
	assert_string_equal(config->perf[0].event, "cpu-clock");
	assert_int_equal(config->perf[0].scope, CONFIG_SCOPE_SYSTEM);
	assert_string_equal(config->perf[1].component.name, "perf/b");
	assert_int_equal(config->perf[1].scope, CONFIG_SCOPE_CGROUP);
	assert_int_equal(config->perf[1].n_cgroups, 2);
	assert_string_equal(config->perf[1].cgroups[1], "b/c");
	assert_int_equal(config->perf[1].frequency_hz, 99);
	assert_int_equal(config->perf[2].scope, CONFIG_SCOPE_PIDS);
	assert_int_equal(config->perf[2].pids[1], 8);
	assert_int_equal(config->n_perf_files, 1);
	assert_int_equal(config->perf_files[0].after, CONFIG_AFTER_KEEP);
	assert_int_equal(config->process[0].n_read_environ, 2);
	assert_int_equal(config->process[0].remember_exited_ns, 0);
	assert_true(config->process[0].read_cmdline);
	assert_int_equal(config->gitaly[0].n_subcommand_from, 1);
	assert_string_equal(config->gitaly[0].subcommand_from[0], "stack");
	assert_int_equal(config->symbols[0].capture, CONFIG_CAPTURE_LAZY);
	assert_int_equal(config->symbols[0].cache_max_bytes, 5 << 20);
	assert_int_equal(config->symbols[0].n_debuginfod_urls, 1);
	assert_int_equal(config->symbols[0].debuginfod_timeout_ns, 5000000000);
	assert_int_equal(relabel_n_rules(config->relabel[0].compiled), 1);
	assert_int_equal(config->limits[0].max_label_sets, 400);
	assert_string_equal(config->limits[0].topk[1].key, "comm");
	assert_int_equal(config->limits[0].topk[1].n, 5);
	assert_int_equal(config->limits[0].exemplar_min_samples, 3);
	assert_int_equal(config->limits[0].exemplars_per_window, 10);
	unload(&loaded);
}

static void config_fills_exporters_storage_and_service(void **state)
{
	(void)state;
	struct loaded loaded;
	char *text = mem_copy_string(whole);
	memcpy(strstr(text, "-${1}"), "-(11)", 5);
	must_load(&loaded, text, whole_environment);
	mem_free(text);
	size_t n;
	const struct exporter_config *exporters = config_list_exporters(loaded.config, &n);
	assert_int_equal(n, 3);
	assert_string_equal(exporters[0].name, "file");
	assert_int_equal(exporters[0].kind, EXPORTER_FILE);
	assert_int_equal(exporters[0].max_directory_bytes, UINT64_C(1) << 40);
	assert_string_equal(exporters[1].name, "pyroscope/lab");
	assert_int_equal(exporters[1].max_age_ns, UINT64_C(55) * 60 * 1000000000);
	assert_non_null(exporters[1].drop_labels);
	assert_int_equal(exporters[1].n_drop_labels, 0);
	assert_false(exporters[1].remote.gzip);
	assert_int_equal(exporters[1].remote.default_port, 4040);
	const struct exporter_config *parca = &exporters[2];
	assert_null(parca->drop_labels);
	assert_true(parca->remote.gzip);
	assert_int_equal(parca->remote.n_headers, 2);
	assert_string_equal(parca->remote.headers[0].key, "x-one");
	assert_string_equal(parca->remote.headers[1].value, "v");
	assert_string_equal(parca->remote.bearer_token_file, "/run/cred/tok");
	assert_string_equal(parca->remote.tls.min_version, "1.3");
	assert_int_equal(parca->remote.timeout_ns, 10000000000);
	assert_int_equal(parca->remote.keepalive_ns, 0);
	assert_int_equal(parca->max_age_ns, UINT64_C(172800) * 1000000000);
	assert_int_equal(parca->max_concurrent, 9);
	assert_int_equal(parca->retry.initial_interval_ns, 250000000);
	assert_int_equal(parca->limits.max_samples, 77);
	const struct config *config = loaded.config;
	assert_int_equal(config->spool.max_bytes, UINT64_C(3) << 30);
	assert_true(config->spool.min_free.percent == 0.5);
	assert_int_equal(config->spool.when_full, SPOOL_BLOCK);
	assert_string_equal(config->spool.directory, "/var/lib/perfpipe/spool");
	assert_string_equal(config->service.node, "n-v-x-$1-(11)");
	assert_string_equal(config->service.external_labels[0].value, "prod");
	assert_true(config->service.cpu_limit_percent == 2.5);
	assert_int_equal(config->service.memory_limit_bytes, 64 << 20);
	assert_int_equal(config->service.log_level, CONFIG_LOG_DEBUG); /* environment */
	assert_int_equal(config->service.log_format, CONFIG_LOG_JSON);
	unload(&loaded);
}

static void config_has_a_pipeline_when_none_is_written(void **state)
{
	(void)state;
	struct loaded loaded;
	must_load(&loaded, "exporters: {parca: {endpoint: h}, file: {directory: /d}}\n", NULL);
	const struct config_pipeline *pipeline = config_find_pipeline(loaded.config, NULL);
	assert_string_equal(pipeline->component.name, "profiles");
	assert_int_equal(pipeline->n_receivers, 1);
	assert_int_equal(pipeline->receivers[0].type, CONFIG_COMPONENT_PERF);
	assert_int_equal(pipeline->n_processors, 4);
	assert_string_equal(pipeline->processor_names[0], "process");
	assert_string_equal(pipeline->processor_names[1], "gitaly");
	assert_string_equal(pipeline->processor_names[2], "symbols");
	assert_string_equal(pipeline->processor_names[3], "limits");
	assert_int_equal(pipeline->processors[3].type, CONFIG_COMPONENT_LIMITS);
	assert_int_equal(pipeline->n_exporters, 2);
	assert_int_equal(pipeline->exporters[1].index, 1);
	assert_int_equal(loaded.config->n_perf, 1);
	assert_int_equal(loaded.config->perf[0].frequency_hz, 99);
	unload(&loaded);

	/* relabel joins before limits where it is written, and written receivers take perf's place.
	 */
	must_load(&loaded,
		  EXPORTER "processors: {relabel/a: {}, limits/x: {}}\n"
			   "receivers: {perf_files: {include: [/x]}}\n",
		  NULL);
	pipeline = config_find_pipeline(loaded.config, "profiles");
	assert_int_equal(pipeline->n_processors, 5);
	assert_string_equal(pipeline->processor_names[3], "relabel/a");
	assert_string_equal(pipeline->processor_names[4], "limits/x");
	assert_int_equal(pipeline->receivers[0].type, CONFIG_COMPONENT_PERF_FILES);
	assert_int_equal(loaded.config->n_perf, 0);
	unload(&loaded);
}

static void config_refers_across_types_by_place(void **state)
{
	(void)state;
	struct loaded loaded;
	must_load(&loaded,
		  "receivers: {perf/a: {frequency: 1}, perf_files: {include: [/x]}, perf/b: "
		  "{frequency: 2}}\n"
		  "exporters: {file/1: {directory: /1}, parca: {endpoint: h}, file/2: {directory: "
		  "/2}}\n"
		  "service: {pipelines: {profiles: {receivers: [perf/b, perf/a, perf_files], "
		  "exporters: [file/2, parca, file/1]}}}\n",
		  NULL);
	const struct config *config = loaded.config;
	const struct config_pipeline *pipeline = config_find_pipeline(config, NULL);
	assert_int_equal(config->perf[pipeline->receivers[0].index].frequency_hz, 2);
	assert_int_equal(config->perf[pipeline->receivers[1].index].frequency_hz, 1);
	assert_int_equal(pipeline->receivers[2].type, CONFIG_COMPONENT_PERF_FILES);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(config->exporters[pipeline->exporters[i].index].component.name,
				    pipeline->exporter_names[i]);
	unload(&loaded);
}

static void config_warns_of_what_has_no_effect(void **state)
{
	(void)state;
	struct loaded loaded;
	must_load(&loaded,
		  "receivers: {perf: {}, perf/b: {}}\n"
		  "exporters: {pyroscope: {endpoint: h, sending_queue: {max_age: 2h}}}\n"
		  "service: {pipelines: {profiles: {receivers: [perf], exporters: [pyroscope]}}, "
		  "telemetry: {http: {address: \"0.0.0.0:1\", enable_lifecycle: true}}}\n",
		  NULL);
	char got[1024];
	list_problems(&loaded.problems, got, sizeof(got));
	assert_string_equal(got,
			    "2:54 223 exporters.pyroscope: Pyroscope refuses profiles older than "
			    "1h unless it is told otherwise\n"
			    "3:107 224 with enable_lifecycle, whoever reaches 0.0.0.0:1 can stop "
			    "perfpipe\n"
			    "1:23 225 receivers.perf/b is in no pipeline: it has no effect\n");
	unload(&loaded);
	must_load(&loaded, "# nothing\n", NULL);
	list_problems(&loaded.problems, got, sizeof(got));
	assert_string_equal(got, "0:0 222 no exporters: profiles can only be fetched from "
				 "http://127.0.0.1:9917/debug/pprof\n");
	unload(&loaded);
}

static void config_takes_anchors_and_byte_order_marks(void **state)
{
	(void)state;
	struct loaded loaded;
	must_load(&loaded,
		  "\xef\xbb\xbf"
		  "receivers: {perf/a: &a {frequency: 7}, perf/b: *a}\n" EXPORTER,
		  NULL);
	assert_int_equal(loaded.config->perf[1].frequency_hz, 7);
	unload(&loaded);
}

static void command_line_comes_before_environment(void **state)
{
	(void)state;
	static const struct config_override overrides[] = {
		{"service.telemetry.logs.level", "error", "--log-level"},
		{"service.node", "here", "--node"},
	};
	struct config_options options = options_with(whole_environment);
	options.overrides = overrides;
	options.n_overrides = ARRAY_LEN(overrides);
	struct config_problems problems;
	config_problems_init(&problems);
	struct config *config;
	static const char text[] = EXPORTER "service: {telemetry: {logs: {level: info}}}\n";
	assert_true(config_load_text("f", text, strlen(text), &options, &problems, &config));
	assert_int_equal(config->service.log_level, CONFIG_LOG_ERROR);
	assert_string_equal(config->service.node, "here");
	config_free(config);
	config_problems_fini(&problems);
}

static void bad_values_of_the_environment_are_told_by_variable(void **state)
{
	(void)state;
	static const char *const environment[] = {"PERFPIPE_LOG_LEVEL", "loud", NULL};
	struct loaded loaded;
	load(&loaded, EXPORTER, environment);
	assert_int_equal(loaded.problems.n, 1);
	assert_string_equal(loaded.problems.problems[0].place.file,
			    "environment PERFPIPE_LOG_LEVEL");
	assert_string_equal(loaded.problems.problems[0].text,
			    "service.telemetry.logs.level is \"loud\", expected debug, info, warn "
			    "or error");
	unload(&loaded);
}

/* --- files --- */

static void write_file(struct temp_dir *dir, const char *name, const char *text)
{
	FILE *file = fopen(temp_dir_path(dir, name), "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void load_folder(struct loaded *loaded, struct temp_dir *dir)
{
	const struct config_options options = options_with(NULL);
	config_problems_init(&loaded->problems);
	loaded->is_good = config_load(temp_dir_path(dir, "perfpipe.yaml"), &options,
				      &loaded->problems, &loaded->config);
}

static void maps_of_conf_d_are_merged(void **state)
{
	(void)state;
	struct temp_dir dir;
	temp_dir_init(&dir);
	write_file(&dir, "perfpipe.yaml",
		   EXPORTER "receivers:\nservice: {node: a}\n"
			    "tests: [{name: 1, input: {a: b}, expect: {}}]\n");
	write_file(&dir, "conf.d/20.yaml", "receivers: {perf/b: {}}\n");
	write_file(&dir, "conf.d/10.yaml",
		   "receivers: {perf/a: {}}\nservice: {external_labels: {x: y}}\n"
		   "tests: [{name: 2, input: {a: b}, expect: {a: b}}]\n");
	write_file(&dir, "conf.d/ignored.yml", "receivers: {perf/c: {}}\n");
	struct loaded loaded;
	load_folder(&loaded, &dir);
	assert_true(loaded.is_good);
	assert_int_equal(loaded.config->n_perf, 2);
	assert_string_equal(loaded.config->perf[0].component.name, "perf/a");
	assert_string_equal(loaded.config->perf[1].component.name, "perf/b");
	assert_string_equal(loaded.config->service.node, "a");
	assert_int_equal(loaded.config->service.n_external_labels, 1);
	assert_int_equal(loaded.config->n_tests, 2);
	unload(&loaded);
	temp_dir_fini(&dir);
}

static void one_value_in_two_files_names_both(void **state)
{
	(void)state;
	struct temp_dir dir;
	temp_dir_init(&dir);
	write_file(&dir, "perfpipe.yaml", EXPORTER "service: {node: a}\n");
	write_file(&dir, "conf.d/x.yaml", "service:\n  node: a\n");
	struct loaded loaded;
	load_folder(&loaded, &dir);
	assert_false(loaded.is_good);
	assert_int_equal(loaded.problems.n, 1);
	char want[512];
	snprintf(want, sizeof(want), "service.node is set twice: here and in %s:2",
		 temp_dir_path(&dir, "perfpipe.yaml"));
	assert_string_equal(loaded.problems.problems[0].text, want);
	assert_int_equal(loaded.problems.problems[0].number, 203);
	assert_string_equal(loaded.problems.problems[0].place.file,
			    temp_dir_path(&dir, "conf.d/x.yaml"));
	assert_int_equal(loaded.problems.problems[0].place.line, 2);
	unload(&loaded);
	temp_dir_fini(&dir);
}

static void a_file_that_is_missing_is_told(void **state)
{
	(void)state;
	struct temp_dir dir;
	temp_dir_init(&dir);
	struct loaded loaded;
	load_folder(&loaded, &dir);
	assert_false(loaded.is_good);
	assert_int_equal(loaded.problems.n, 1);
	assert_int_equal(loaded.problems.problems[0].number, 210);
	unload(&loaded);
	temp_dir_fini(&dir);
}

static void files_are_put_into_values_and_stay_secret(void **state)
{
	(void)state;
	struct temp_dir dir;
	temp_dir_init(&dir);
	write_file(&dir, "name", "from a file\n");
	char text[512];
	snprintf(text, sizeof(text), EXPORTER "service: {node: \"${file:%s}\"}\n",
		 temp_dir_path(&dir, "name"));
	struct loaded loaded;
	must_load(&loaded, text, NULL);
	assert_string_equal(loaded.config->service.node, "from a file");
	char *printed;
	size_t n;
	FILE *out = open_memstream(&printed, &n);
	config_print(loaded.config, out);
	fclose(out);
	assert_non_null(strstr(printed, "node: \"<redacted>\""));
	assert_null(strstr(printed, "from a file"));
	free(printed);
	unload(&loaded);
	temp_dir_fini(&dir);
}

/* --- print, tests, examples --- */

static void what_is_printed_means_the_same(void **state)
{
	(void)state;
	struct loaded loaded;
	char *text = mem_copy_string(whole);
	memcpy(strstr(text, "-${1}"), "-(11)", 5);
	must_load(&loaded, text, whole_environment);
	mem_free(text);
	char *printed[2];
	for (int i = 0; i < 2; i++) {
		size_t n;
		FILE *out = open_memstream(&printed[i], &n);
		config_print(loaded.config, out);
		fclose(out);
		unload(&loaded);
		must_load(&loaded, printed[i], whole_environment);
	}
	unload(&loaded);
	/* The same but for the origins. */
	for (char *a = printed[0], *b = printed[1]; *a && *b;) {
		size_t n_a = strcspn(a, "#\n");
		size_t n_b = strcspn(b, "#\n");
		assert_int_equal(n_a, n_b);
		assert_memory_equal(a, b, n_a);
		a += strcspn(a, "\n") + 1;
		b += strcspn(b, "\n") + 1;
	}
	free(printed[0]);
	free(printed[1]);
}

static void tests_of_the_configuration_are_run(void **state)
{
	(void)state;
	struct loaded loaded;
	must_load(&loaded,
		  EXPORTER "processors: {relabel: {relabel_configs: [{source_labels: [a], "
			   "target_label: b}, {source_labels: [a], regex: x, action: drop}]}}\n"
			   "tests:\n"
			   "  - {name: good, input: {a: \"1\"}, expect: {b: \"1\", c: \"\"}}\n"
			   "  - {name: dropped, input: {a: x}, dropped: true}\n"
			   "  - {name: other, input: {a: \"2\"}, expect: {b: \"1\", d: \"1\"}}\n"
			   "  - {name: kept, input: {a: y}, dropped: true}\n"
			   "  - {name: lost, input: {a: x}, expect: {a: x}}\n",
		  NULL);
	assert_int_equal(relabel_case_run_all(loaded.config, &loaded.problems), 2);
	char got[1024];
	list_problems(&loaded.problems, got, sizeof(got));
	assert_string_equal(got, "6:48 209 test \"other\": b is \"2\", expected \"1\"\n"
				 "6:56 209 test \"other\": there is no label d, expected \"1\"\n"
				 "7:42 209 test \"kept\": the sample is kept, expected to be "
				 "dropped\n"
				 "8:41 209 test \"lost\": the sample is dropped\n");
	unload(&loaded);
}

/* Whether a key is written anywhere below the maps of the tree that have these keys. */
static bool is_written(const struct config_node *node, const struct config_key *keys,
		       const struct config_key *wanted, bool is_components)
{
	for (const struct config_node *child = node ? node->first : NULL; child;
	     child = child->next) {
		const struct config_key *key =
			is_components ? config_schema_find_component(keys, child->key)
				      : config_schema_find(keys, child->key);
		if (!key)
			continue;
		if (key == wanted)
			return child->origin == NULL;
		if (key->keys && key->type != CONFIG_TYPE_MAPS &&
		    is_written(child, key->keys, wanted, key->type == CONFIG_TYPE_COMPONENTS))
			return true;
		const struct config_node *element =
			key->type == CONFIG_TYPE_MAPS ? child->first : NULL;
		for (; element; element = element->next) {
			if (is_written(element, key->keys, wanted, false))
				return true;
		}
	}
	return false;
}

static void check_written(const struct config_node *root, const struct config_key *keys)
{
	for (const struct config_key *key = keys; key->name; key++) {
		/* The keys of the servers stand spread over several of them: look for the name. */
		bool is_there = is_written(root, config_schema, key, false);
		const char *const kinds[] = {"parca", "pyroscope", "otlp"};
		for (size_t i = 0; i < ARRAY_LEN(kinds) && !is_there; i++) {
			char path[64];
			snprintf(path, sizeof(path), "exporters.%s", kinds[i]);
			const struct config_key *twin =
				config_schema_find(config_schema_find_path(path)->keys, key->name);
			is_there = twin && twin->offset == key->offset && twin->type == key->type &&
				   is_written(root, config_schema, twin, false);
		}
		if (!is_there)
			fail_msg("configs/full.yaml has no %s", key->name);
		if (key->keys)
			check_written(root, key->keys);
	}
}

static void full_yaml_has_every_key(void **state)
{
	(void)state;
	static const char *const environment[] = {"CREDENTIALS_DIRECTORY", "/run/cred", NULL};
	const struct config_options options = options_with(environment);
	struct loaded loaded;
	config_problems_init(&loaded.problems);
	loaded.is_good = config_load(TEST_SOURCE_DIR "/configs/full.yaml", &options,
				     &loaded.problems, &loaded.config);
	assert_true(loaded.is_good);
	assert_int_equal(loaded.problems.n, 0);
	check_written(loaded.config->root, config_schema);
	unload(&loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_names_unknown_keys_and_the_nearest),
		cmocka_unit_test(config_checks_types_and_bounds),
		cmocka_unit_test(config_refuses_what_is_no_plain_yaml),
		cmocka_unit_test(config_refuses_what_is_set_twice_or_refers_to_nothing),
		cmocka_unit_test(config_refuses_settings_that_do_not_fit_together),
		cmocka_unit_test(config_tells_no_error_that_follows_from_another),
		cmocka_unit_test(config_fills_receivers_and_processors),
		cmocka_unit_test(config_fills_exporters_storage_and_service),
		cmocka_unit_test(config_has_a_pipeline_when_none_is_written),
		cmocka_unit_test(config_refers_across_types_by_place),
		cmocka_unit_test(config_warns_of_what_has_no_effect),
		cmocka_unit_test(config_takes_anchors_and_byte_order_marks),
		cmocka_unit_test(command_line_comes_before_environment),
		cmocka_unit_test(bad_values_of_the_environment_are_told_by_variable),
		cmocka_unit_test(maps_of_conf_d_are_merged),
		cmocka_unit_test(one_value_in_two_files_names_both),
		cmocka_unit_test(a_file_that_is_missing_is_told),
		cmocka_unit_test(files_are_put_into_values_and_stay_secret),
		cmocka_unit_test(what_is_printed_means_the_same),
		cmocka_unit_test(tests_of_the_configuration_are_run),
		cmocka_unit_test(full_yaml_has_every_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
