/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/conversion.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/stats.h"
#include "pipeline/interruption.h"
#include "pipeline/progress.h"
#include "pipeline/remote_symbols.h"
#include "pipeline/unnamed.h"

const struct cli_option conversion_symbol_options[] = {
	{CONVERSION_LABELS, "labels", "LIST",
	 "of comm,pid,tid,thread,process,cpu,cgroup,cmdline,\nor none (default comm,pid)", 0,
	 false},
	{CONVERSION_NO_SYMBOLS, "no-symbols", NULL, "addresses only", 0, false},
	{CONVERSION_DEBUG_ROOT, "debug-root", "DIR",
	 "where separate debug files are (default\n/usr/lib/debug); may be repeated", 0, false},
	{CONVERSION_DEBUGINFOD, "debuginfod", "[=URLS]", REMOTE_SYMBOLS_WHAT, 0, false},
	{CONVERSION_DEBUGINFOD_WAIT, "debuginfod-wait", "TIME", REMOTE_SYMBOLS_WAIT_WHAT, 0, false},
	{CONVERSION_VMLINUX, "vmlinux", "FILE", "kernel image with symbols", 0, false},
	{CONVERSION_DEMANGLE, "demangle", "HOW", "full, normal (default) or none", 0, false},
	{CONVERSION_SYMBOL_CACHE, "symbol-cache", "DIR",
	 "where symbols are kept (default\n~/.cache/perfpipe/symbols)", 0, false},
	{CONVERSION_NO_SYMBOL_CACHE, "no-symbol-cache", NULL, "keep no symbols, use none kept", 0,
	 false},
	{0},
};

const struct cli_option conversion_file_options[] = {
	{CONVERSION_EVENT, "event", "NAME", "only this event of the file", 0, true},
	{CONVERSION_STRICT, "strict", NULL, "damaged input is an error (exit 65)", 0, true},
	{CONVERSION_TRUST_PATHS, "trust-paths", NULL,
	 "believe that files still are what they were when\nthe record cannot prove it", 0, false},
	{CONVERSION_SYSROOT, "sysroot", "DIR",
	 "prefix for the paths in the file, for recordings\nof another machine", 0, false},
	{CONVERSION_KALLSYMS, "kallsyms", "FILE", "kernel symbols (default /proc/kallsyms)", 0,
	 false},
	{0},
};

uint32_t conversion_label_of(const char *name)
{
	for (unsigned i = 0; i < CONVERTER_LABEL_N; i++) {
		if (strcmp(converter_label_name(i), name) == 0)
			return 1u << i;
	}
	return 0;
}

void conversion_options_init(struct conversion_options *options)
{
	*options = (struct conversion_options){.labels = CONVERTER_LABEL_DEFAULT};
}

static struct error *parse_labels(const char *list, uint32_t *out)
{
	const char *names[CONVERTER_LABEL_N + 1] = {"none"};
	for (unsigned i = 0; i < CONVERTER_LABEL_N; i++)
		names[i + 1] = converter_label_name(i);
	uint32_t set = 0;
	char word[32];
	if (list[0] == '\0')
		return cli_usage("--labels has an empty list; \"none\" means no labels");
	while (cli_next_word(&list, word, sizeof(word))) {
		size_t index;
		struct error *err =
			cli_parse_choice("--labels", word, names, ARRAY_LEN(names), &index);
		if (err)
			return err;
		set |= index ? 1u << (index - 1) : 0;
	}
	*out = set;
	return NULL;
}

static struct error *parse_demangle(const char *text, enum symcache_demangle *out)
{
	static const char *const names[] = {"full", "normal", "none"};
	static const enum symcache_demangle values[] = {
		SYMCACHE_DEMANGLE_FULL, SYMCACHE_DEMANGLE_NORMAL, SYMCACHE_DEMANGLE_NONE};
	size_t index;
	struct error *err = cli_parse_choice("--demangle", text, names, ARRAY_LEN(names), &index);
	if (!err)
		*out = values[index];
	return err;
}

static struct error *add_debug_root(struct conversion_options *options, const char *path)
{
	if (options->n_debug_roots == CONVERSION_DEBUG_ROOTS_MAX)
		return cli_usage("--debug-root can be given %d times", CONVERSION_DEBUG_ROOTS_MAX);
	options->debug_roots[options->n_debug_roots++] = path;
	options->symbols.debug_roots = options->debug_roots;
	return NULL;
}

static const char *name_of(int id)
{
	const struct cli_option *const tables[] = {conversion_symbol_options,
						   conversion_file_options};
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		for (const struct cli_option *option = tables[i]; option->name; option++) {
			if (option->id == id)
				return option->name;
		}
	}
	return NULL;
}

struct error *conversion_options_set(struct conversion_options *options, int id, const char *value)
{
	bool may_be_idle = id == CONVERSION_STRICT || id == CONVERSION_NO_SYMBOLS ||
			   id == CONVERSION_TRUST_PATHS;
	if (!options->first && !may_be_idle)
		options->first = name_of(id);
	switch (id) {
	case CONVERSION_EVENT:
		options->event = value;
		break;
	case CONVERSION_LABELS:
		return parse_labels(value, &options->labels);
	case CONVERSION_STRICT:
		options->is_strict = true;
		break;
	case CONVERSION_NO_SYMBOLS:
		options->symbols.no_symbols = true;
		break;
	case CONVERSION_TRUST_PATHS:
		options->symbols.trust_paths = true;
		break;
	case CONVERSION_SYSROOT:
		options->symbols.sysroot = value;
		break;
	case CONVERSION_DEBUG_ROOT:
		return add_debug_root(options, value);
	case CONVERSION_VMLINUX:
		options->symbols.vmlinux = value;
		break;
	case CONVERSION_KALLSYMS:
		options->symbols.kallsyms = value;
		break;
	case CONVERSION_SYMBOL_CACHE:
		options->symbols.cache_path = value;
		break;
	case CONVERSION_NO_SYMBOL_CACHE:
		options->symbols.no_cache = true;
		break;
	case CONVERSION_DEBUGINFOD:
		options->symbols.debuginfod = &options->debuginfod;
		return remote_symbols_set_urls(&options->debuginfod, value);
	case CONVERSION_DEBUGINFOD_WAIT:
		return remote_symbols_set_wait(&options->debuginfod, value);
	case CONVERSION_DEMANGLE:
		return parse_demangle(value, &options->symbols.demangle);
	default:
		break;
	}
	return NULL;
}

static struct error *unusable(const char *option, const char *path, const char *why)
{
	return error_number(error_new(ERROR_NO_ENTRY, "--%s %s: %s", option, path, why), 614);
}

static struct error *check_folder(const char *option, const char *path)
{
	struct stat st;
	if (!path)
		return NULL;
	if (stat(path, &st) < 0)
		return unusable(option, path, strerrordesc_np(errno));
	return S_ISDIR(st.st_mode) ? NULL : unusable(option, path, "not a folder");
}

static struct error *check_file(const char *option, const char *path, bool is_elf)
{
	if (!path)
		return NULL;
	int fd CLEANUP(cleanup_fd) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return unusable(option, path, strerrordesc_np(errno));
	if (!S_ISREG(st.st_mode))
		return unusable(option, path, "not a file");
	char magic[4] = "";
	size_t n = 0;
	struct error *err = file_read_at(fd, 0, magic, sizeof(magic), &n);
	if (err)
		return error_number(error_wrap(err, "--%s %s", option, path), 614);
	if (n == 0)
		return unusable(option, path, "empty");
	if (is_elf && memcmp(magic, "\177ELF", sizeof(magic)) != 0)
		return unusable(option, path, "not an ELF file");
	return NULL;
}

/* The usual cache may fail in silence, one that was named may not. */
static struct error *check_cache(const char *path)
{
	const struct store_config config = {.path = path,
					    .max_bytes = SYMCACHE_DEFAULT_CACHE_BYTES};
	struct store *store;
	struct error *err = store_open(&config, &store);
	if (err)
		return error_number(err, 621);
	store_close(store);
	return NULL;
}

struct error *conversion_options_check(const struct conversion_options *options)
{
	struct error *err = check_file("kallsyms", options->symbols.kallsyms, false);
	if (!err)
		err = check_file("vmlinux", options->symbols.vmlinux, true);
	if (!err)
		err = check_folder("sysroot", options->symbols.sysroot);
	for (size_t i = 0; !err && i < options->n_debug_roots; i++)
		err = check_folder("debug-root", options->debug_roots[i]);
	if (!err && options->symbols.cache_path)
		err = check_cache(options->symbols.cache_path);
	return err;
}

void conversion_open(struct conversion *conversion, const struct conversion_options *options,
		     const struct perf_source_info *info)
{
	struct symcache_config symbols = options->symbols;
	symbols.is_live = info->is_live;
	struct converter_config config = {.labels = options->labels,
					  .event = options->event,
					  .main_path = options->main_path};
	conversion->is_live = info->is_live;
	conversion->has_names = !symbols.no_symbols;
	conversion->cache = symcache_new(&symbols);
	conversion->converter = converter_new(&config, info, conversion->cache);
}

struct pipeline_sink conversion_sink(struct conversion *conversion)
{
	return (struct pipeline_sink){.add = converter_feed, .context = conversion->converter};
}

void conversion_close(struct conversion *conversion)
{
	converter_free(conversion->converter);
	symcache_free(conversion->cache);
	*conversion = (struct conversion){0};
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Counters of the whole program; a command has one source. */
static void warn_of_counters(const struct cli *cli)
{
	char text[200];
	uint64_t n_late = stats_get(STAT_RECORDS_OUT_OF_ORDER);
	uint64_t n_maps = stats_get(STAT_MAPS_EVICTED);
	uint64_t n_processes = stats_get(STAT_PROCESSES_EVICTED);
	if (n_late) {
		snprintf(text, sizeof(text), "%" PRIu64 " records came too late to be put in order",
			 n_late);
		message_warning(&cli->message, 615, text, NULL);
	}
	if (n_maps || n_processes) {
		snprintf(text, sizeof(text),
			 "%" PRIu64 " mappings and %" PRIu64
			 " processes were forgotten: there were too many",
			 n_maps, n_processes);
		message_warning(&cli->message, 616, text, NULL);
	}
}

void conversion_warn_of_losses(const struct cli *cli, const struct converter_totals *totals,
			       struct pipeline_losses losses)
{
	char text[200];
	/* Both count the same losses; the larger one is nearer to the truth. */
	uint64_t lost = totals->lost_samples > totals->lost_events ? totals->lost_samples
								   : totals->lost_events;
	uint64_t all = totals->taken + lost + losses.samples;
	if (lost) {
		snprintf(text, sizeof(text),
			 "the kernel lost %" PRIu64 " records (%.1f %%) before they were read",
			 lost, percent(lost, all));
		message_warning(&cli->message, 606, text, NULL);
	}
	if (losses.samples || losses.others) {
		snprintf(text, sizeof(text),
			 "dropped %" PRIu64 " samples (%.1f %%) and %" PRIu64
			 " other records: converting could not keep up",
			 losses.samples, percent(losses.samples, all), losses.others);
		message_warning(&cli->message, 606, text, NULL);
	}
	if (totals->malformed) {
		snprintf(text, sizeof(text), "skipped %" PRIu64 " malformed samples (%.1f %%)",
			 totals->malformed, percent(totals->malformed, totals->taken));
		message_warning(&cli->message, 607, text, NULL);
	}
	if (totals->no_event) {
		snprintf(text, sizeof(text),
			 "left out %" PRIu64 " samples (%.1f %%) that belong to no known event",
			 totals->no_event, percent(totals->no_event, totals->taken));
		message_warning(&cli->message, 609, text, NULL);
	}
	if (totals->malformed_records) {
		snprintf(text, sizeof(text), "skipped %" PRIu64 " malformed records",
			 totals->malformed_records);
		message_warning(&cli->message, 607, text, NULL);
	}
	warn_of_counters(cli);
}

static void warn_of_jit_file(const struct cli *cli, const char *what, const char *why, uint64_t n,
			     int32_t pid)
{
	char text[200];
	if (n == 1)
		snprintf(text, sizeof(text), "the %s of pid %d is not used: %s", what, pid, why);
	else
		snprintf(text, sizeof(text),
			 "the %s of %" PRIu64 " processes (pid %d, ...) is not used: %s", what, n,
			 pid, why);
	if (n)
		message_warning(&cli->message, 617, text, NULL);
}

/* That there is no map is normal: hardly a runtime writes one unasked. */
static void warn_of_jit_files(const struct cli *cli, const struct jit_totals *jit)
{
	for (int i = 0; i < JIT_FILE_STATE_N; i++) {
		const char *why = jit_file_state_text((enum jit_file_state)i);
		if (jit_file_is_refused((enum jit_file_state)i))
			warn_of_jit_file(cli, "JIT map", why, jit->maps[i], jit->map_pids[i]);
		if (i != JIT_FILE_OK)
			warn_of_jit_file(cli, "jitdump", why, jit->dumps[i], jit->dump_pids[i]);
	}
	for (int i = 0; i < JIT_DUMP_STATE_N; i++) {
		if (i != JIT_DUMP_OK && i != JIT_DUMP_DAMAGED)
			warn_of_jit_file(cli, "jitdump",
					 jit_dump_state_text((enum jit_dump_state)i),
					 jit->dump_states[i], jit->dump_state_pids[i]);
	}
}

static void detail_names(const struct cli *cli, const struct converter_totals *totals)
{
	for (int reason = 0; reason < SYMBOL_REASON_N; reason++) {
		if (totals->frames[reason])
			message_detail(&cli->message, "%" PRIu64 " of %" PRIu64 " addresses: %s",
				       totals->frames[reason], totals->n_locations,
				       symbol_reason_text((enum symbol_reason)reason));
	}
}

/* Naming addresses, which a signal shortens in record: what is on servers stays there. */
struct naming {
	struct progress progress;
	struct symcache *cache;
	int signal; /* that had come before */
};

static void note_naming(void *context, uint64_t done, uint64_t total)
{
	struct naming *naming = context;
	progress_update(&naming->progress, done, total);
	if (interruption_signal() != naming->signal)
		symcache_cancel_fetches(naming->cache);
}

struct error *conversion_finish(struct conversion *conversion, const struct cli *cli,
				struct pipeline_losses losses, struct profile **out)
{
	struct naming naming = {.cache = conversion->cache, .signal = interruption_signal()};
	progress_begin(&naming.progress, cli->has_progress, PROGRESS_COUNT, "naming addresses");
	struct profile *profile;
	struct error *err = converter_finish(conversion->converter, note_naming, &naming, &profile);
	progress_end(&naming.progress);
	if (err)
		return err;
	const struct converter_totals *totals = converter_get_totals(conversion->converter);
	conversion_warn_of_losses(cli, totals, losses);
	/* A live source has said it at its start. */
	if (totals->frames[SYMBOL_HIDDEN] && !conversion->is_live)
		message_warning(&cli->message, 103, "kernel names are hidden from this user", NULL);
	warn_of_jit_files(cli, &totals->jit);
	detail_names(cli, totals);
	remote_symbols_state(&cli->message, conversion->cache);
	if (conversion->has_names)
		unnamed_state(&cli->message, profile, conversion->cache,
			      totals->frames[SYMBOL_OTHER_KERNEL] != 0);
	if (losses.samples || losses.others) {
		char *text = mem_format("perfpipe: dropped %" PRIu64 " samples and %" PRIu64
					" other records before conversion",
					losses.samples, losses.others);
		profile_add_comment(profile, text);
		mem_free(text);
	}
	*out = profile;
	return NULL;
}

struct error *conversion_state_warnings(struct record_source *source, const char *path,
					bool is_strict, const struct cli *cli)
{
	size_t n;
	const struct collector_warning *warnings = collector_file_warnings(source, &n);
	for (size_t i = 0; i < n; i++) {
		if (is_strict && warnings[i].is_damage)
			return error_number(error_new(ERROR_BAD_DATA, "%s: %s",
						      conversion_input_shown(path),
						      warnings[i].text),
					    601);
	}
	for (size_t i = 0; i < n; i++) {
		char *text = mem_format("%s: %s", conversion_input_shown(path), warnings[i].text);
		message_warning(&cli->message, warnings[i].number, text, warnings[i].why);
		mem_free(text);
	}
	return NULL;
}

const char *conversion_input_shown(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* Each binary that is looked into takes one for a while, and a few stay open. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static struct error *drain_file(struct record_source *source, struct conversion *conversion)
{
	struct pipeline_config config = {.sinks = {conversion_sink(conversion)}, .n_sinks = 1};
	struct pipeline *pipeline;
	struct error *err = pipeline_open(&config, &pipeline);
	if (err)
		return err;
	err = record_source_drain(source, pipeline_feed, pipeline);
	if (err && error_get_code(err) == ERROR_NO_ENTRY) {
		error_free(err);
		err = pipeline_finish(pipeline);
	}
	pipeline_close(pipeline);
	return err;
}

static struct error *convert_source(const struct conversion_options *options,
				    struct record_source *source, const char *path,
				    struct progress *progress, const struct cli *cli,
				    struct profile **out)
{
	struct conversion conversion;
	conversion_open(&conversion, options, record_source_info(source));
	struct error *err =
		error_wrap(drain_file(source, &conversion), "%s", conversion_input_shown(path));
	progress_end(progress);
	if (!err)
		err = conversion_state_warnings(source, path, options->is_strict, cli);
	if (!err)
		err = conversion_finish(&conversion, cli, (struct pipeline_losses){0}, out);
	conversion_close(&conversion);
	return err;
}

struct error *conversion_open_file(const char *path, struct progress *progress,
				   struct record_source **out)
{
	const struct collector_file_options options = {.progress = progress_update,
						       .progress_context = progress};
	struct error *err = collector_open_file(path, &options, out);
	/* Without a number of its own, trouble at opening means that there is no such input. */
	return err && !error_get_number(err) ? error_number(err, 613) : err;
}

struct error *conversion_read_file(const struct conversion_options *options, const char *path,
				   const struct cli *cli, struct profile **out)
{
	struct progress progress;
	raise_descriptor_limit();
	progress_begin(&progress, cli->has_progress, PROGRESS_BYTES, "reading");
	struct record_source *source;
	struct error *err = conversion_open_file(path, &progress, &source);
	if (!err) {
		err = convert_source(options, source, path, &progress, cli, out);
		record_source_close(source);
	}
	progress_end(&progress);
	return err;
}
