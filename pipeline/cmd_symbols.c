/* SPDX-License-Identifier: Apache-2.0 */
/* The store of symbol files: what is in it, what it says of an address, and its upkeep. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "pipeline/command.h"
#include "pipeline/conversion.h"
#include "pipeline/explain.h"
#include "pipeline/progress.h"
#include "pipeline/remote_options.h"
#include "pipeline/remote_symbols.h"
#include "pipeline/symbols_fetch.h"
#include "pipeline/symbols_print.h"
#include "pipeline/symbols_upload.h"
#include "symcache/symcache.h"

enum option_id {
	OPTION_CACHE = 1,
	OPTION_MAX_SIZE,
	OPTION_DEBUG_ROOT,
	OPTION_DEBUGINFOD,
	OPTION_DEBUGINFOD_WAIT,
	OPTION_TO,
	OPTION_WAIT,
};

enum { WORDS_MAX = 256 };
#define OPTION_BIT(id) (UINT64_C(1) << (id))
#define OPTIONS_REMOTE UINT64_C(1) /* any of remote_options_table */

static const struct cli_option options[] = {
	{OPTION_CACHE, "symbol-cache", "DIR",
	 "where symbols are kept (default\n~/.cache/perfpipe/symbols)", 0, true},
	{OPTION_MAX_SIZE, "max-size", "SIZE",
	 "for gc: what may stay, as 512M or 2G; the least\nrecently used go first", 0, true},
	{OPTION_DEBUG_ROOT, "debug-root", "DIR",
	 "for add, show and fetch: where separate debug\nfiles are (default /usr/lib/debug); may "
	 "be "
	 "repeated",
	 0, true},
	{OPTION_DEBUGINFOD, "debuginfod", "[=URLS]",
	 "for add, show and fetch: servers to ask (fetch:\ndefault $DEBUGINFOD_URLS)", 0, true},
	{OPTION_DEBUGINFOD_WAIT, "debuginfod-wait", "TIME", REMOTE_SYMBOLS_WAIT_WHAT, 0, true},
	{OPTION_TO, "to", "URL",
	 "for upload: parca://HOST:PORT (TLS),\nparca+insecure://HOST:PORT, parca+unix:/PATH", 0,
	 true},
	{OPTION_WAIT, "wait", NULL,
	 "for upload: keep trying until the server has or\nrefuses all of it", 'w', true},
};

struct symbols_options {
	const char *action;
	uint64_t given; /* bits of option ids that were */
	const char *words[WORDS_MAX];
	size_t n_words;
	const char *cache_path;
	uint64_t max_bytes;
	const char *debug_roots[CONVERSION_DEBUG_ROOTS_MAX + 1];
	size_t n_debug_roots;
	bool is_remote;
	struct symcache_debuginfod debuginfod;
	const char *url;
	struct remote_options remote;
	bool has_wait;
};

static struct error *add_word(struct symbols_options *symbols, const char *word)
{
	if (!symbols->action) {
		symbols->action = word;
		return NULL;
	}
	if (symbols->n_words == WORDS_MAX)
		return cli_usage("symbols takes %d words", WORDS_MAX);
	symbols->words[symbols->n_words++] = word;
	return NULL;
}

static struct error *set(void *context, int id, const char *value)
{
	struct symbols_options *symbols = context;
	bool has_unit;
	if (id != CLI_POSITIONAL)
		symbols->given |= remote_options_has(id) ? OPTIONS_REMOTE : OPTION_BIT(id);
	switch (id) {
	case OPTION_CACHE:
		symbols->cache_path = value;
		return NULL;
	case OPTION_MAX_SIZE:
		return cli_parse_size("--max-size", value, &symbols->max_bytes, &has_unit);
	case OPTION_DEBUG_ROOT:
		if (symbols->n_debug_roots == CONVERSION_DEBUG_ROOTS_MAX)
			return cli_usage("--debug-root can be given %d times",
					 CONVERSION_DEBUG_ROOTS_MAX);
		symbols->debug_roots[symbols->n_debug_roots++] = value;
		return NULL;
	case OPTION_DEBUGINFOD:
		symbols->is_remote = true;
		return remote_symbols_set_urls(&symbols->debuginfod, value);
	case OPTION_DEBUGINFOD_WAIT:
		return remote_symbols_set_wait(&symbols->debuginfod, value);
	case OPTION_TO:
		if (symbols->url)
			return cli_usage("symbols upload: --to can be given once");
		symbols->url = value;
		return NULL;
	case OPTION_WAIT:
		symbols->has_wait = true;
		return NULL;
	default:
		if (remote_options_has(id))
			return remote_options_set(&symbols->remote, id, value);
		return add_word(symbols, value);
	}
}

const struct cli_spec cmd_symbols_spec = {
	.command = "symbols",
	.usage = "[OPTIONS] ls | show ID|FILE [ADDRESS...] | add FILE... |\n       "
		 "         fetch FILE|ID|PROFILE... | upload FILE|ID... --to URL |\n               "
		 " verify | gc",
	.summary = "Shows and tends the symbols that are kept by build-id.",
	.examples = "  perfpipe symbols ls                    what is kept\n"
		    "  perfpipe symbols show /usr/bin/git 0x1c2d0\n"
		    "  perfpipe symbols add /usr/lib/*/libc.so.6\n"
		    "  perfpipe symbols fetch perf.data       ask debuginfod servers\n"
		    "  perfpipe symbols upload /usr/bin/git --to parca://parca.example:7070\n"
		    "  perfpipe symbols gc --max-size 500M    drop what was not used for long\n",
	.notes = "ID is a build-id or the beginning of one; ADDRESS is one in the ELF file, as\n"
		 "objdump shows it. fetch gets what a binary, or all binaries of a profile or\n"
		 "perf.data, lack on this host; only GNU build-ids are sent. upload gives a Parca\n"
		 "server what it needs to name addresses, of the binary or its debug file, unless\n"
		 "it has that already. All that is kept can\n"
		 "be deleted at any time: it is made anew.\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.shared = {remote_options_table},
	.set = set,
	.formats = CLI_FORMAT_TEXT | CLI_FORMAT_JSON,
};

struct run {
	const struct symbols_options *symbols;
	const struct cli *cli;
	struct store *store;
	struct symbols_print print;
};

/* ---- ls, verify, gc ---- */

static struct error *print_entry(void *context, const struct store_entry *entry)
{
	struct run *run = context;
	symbols_print_entry(&run->print, entry);
	return NULL;
}

static struct error *run_ls(struct run *run)
{
	symbols_print_list_begin(&run->print, store_get_path(run->store));
	struct error *err = store_walk(run->store, print_entry, run);
	symbols_print_list_end(&run->print);
	return err;
}

static void print_removed(void *context, const char *name, const char *reason)
{
	struct run *run = context;
	symbols_print_removed(&run->print, name, reason);
}

static uint64_t max_bytes(const struct symbols_options *symbols)
{
	return symbols->max_bytes ? symbols->max_bytes : SYMCACHE_DEFAULT_CACHE_BYTES;
}

static struct error *tend(struct run *run,
			  struct error *(*upkeep)(struct store *, const struct store_listener *,
						  struct store_summary *))
{
	struct store_summary summary = {0};
	const struct store_listener listener = {.removed = print_removed, .context = run};
	symbols_print_upkeep_begin(&run->print);
	struct error *err = upkeep(run->store, &listener, &summary);
	if (!err)
		err = symcache_tend_fetched(store_get_path(run->store), max_bytes(run->symbols),
					    &listener, &summary);
	if (!err || run->print.is_json)
		symbols_print_summary(&run->print, &summary);
	return err;
}

static struct error *run_verify(struct run *run)
{
	return tend(run, store_verify);
}

static struct error *run_gc(struct run *run)
{
	return tend(run, store_collect);
}

/* ---- add, show ---- */

static struct symcache_config make_config(const struct symbols_options *symbols)
{
	return (struct symcache_config){
		.trust_paths = true,
		.retry_failures = true, /* asked for by name */
		.cache_path = symbols->cache_path,
		.debug_roots = symbols->n_debug_roots ? symbols->debug_roots : NULL,
		.debuginfod = symbols->is_remote ? &symbols->debuginfod : NULL,
	};
}

static struct symcache *open_symcache(const struct run *run)
{
	const struct symcache_config config = make_config(run->symbols);
	return symcache_new(&config);
}

/* The symbols are there, and could not be put into the store. */
static struct error *not_kept(const struct run *run, const char *word)
{
	return error_number(error_new(ERROR_IO, "%s: its symbols could not be kept in %s", word,
				      store_get_path(run->store)),
			    621);
}

static struct error *add_files(struct run *run, struct symcache *cache, struct module **modules)
{
	const struct symbols_options *symbols = run->symbols;
	for (size_t i = 0; i < symbols->n_words; i++)
		modules[i] = symbols_fetch_open_file(cache, symbols->words[i]);
	struct progress progress;
	progress_begin(&progress, run->cli->has_progress, PROGRESS_COUNT, "reading symbols");
	symcache_prepare(cache, modules, symbols->n_words, progress_update, &progress);
	progress_end(&progress);
	remote_symbols_state(&run->cli->message, cache);
	symbols_print_list_begin(&run->print, store_get_path(run->store));
	struct error *first = NULL;
	for (size_t i = 0; i < symbols->n_words; i++) {
		struct store_entry entry;
		struct error *err = symbols_fetch_check(modules[i], symbols->words[i]);
		if (!err)
			err = store_find(run->store, module_get_symbols_id(modules[i]), &entry);
		if (!err && !entry.has_file)
			err = not_kept(run, symbols->words[i]);
		if (!err)
			symbols_print_entry(&run->print, &entry);
		if (first)
			error_free(err);
		else
			first = err;
	}
	symbols_print_list_end(&run->print);
	return first;
}

static struct error *run_add(struct run *run)
{
	struct symcache *cache = open_symcache(run);
	struct module **modules = mem_zalloc(run->symbols->n_words, sizeof(struct module *));
	struct error *err = add_files(run, cache, modules);
	mem_free(modules);
	symcache_free(cache);
	return err;
}

struct prefix_search {
	const char *prefix;
	struct build_id found;
	size_t n;
};

static struct error *match_prefix(void *context, const struct store_entry *entry)
{
	struct prefix_search *search = context;
	char name[SYMBOLS_PRINT_ID_BYTES];
	symbols_print_id(&entry->build_id, name);
	if (strncmp(name, search->prefix, strlen(search->prefix)) == 0) {
		search->found = entry->build_id;
		search->n++;
	}
	return NULL;
}

static struct error *find_by_prefix(struct run *run, const char *prefix, struct build_id *out)
{
	struct prefix_search search = {.prefix = prefix};
	struct error *err = store_walk(run->store, match_prefix, &search);
	if (err)
		return err;
	if (search.n > 1)
		return cli_usage("%zu build-ids begin with \"%s\"", search.n, prefix);
	if (search.n == 0)
		return error_number(error_new(ERROR_NO_ENTRY, "nothing is kept of \"%s\"", prefix),
				    620);
	*out = search.found;
	return NULL;
}

static struct error *parse_address(const char *word, uint64_t *out)
{
	char *end;
	errno = 0;
	*out = strtoull(word, &end, 16);
	/* strtoull(3) takes signs and blanks. */
	if (!isxdigit((unsigned char)*word) || *end || errno)
		return cli_usage("not an address: \"%s\"", word);
	return NULL;
}

static struct error *print_symbols(struct run *run, struct symbol_file *file)
{
	const struct symbols_options *symbols = run->symbols;
	const struct symbol_file_info info = symbol_file_get_info(file);
	struct error *err = NULL;
	symbols_print_file(&run->print, &info);
	for (size_t i = 1; i < symbols->n_words && !err; i++) {
		uint64_t address;
		struct symbol_result result;
		err = parse_address(symbols->words[i], &address);
		if (err)
			break;
		(void)symbol_file_lookup(file, address, &result);
		symbols_print_address(&run->print, address, &result);
	}
	symbols_print_file_end(&run->print);
	return err;
}

/* Symbols of a file are made when they are not there, and need no store. */
static struct error *show_path(struct run *run, const char *path)
{
	struct symcache *cache = open_symcache(run);
	struct module *module = symbols_fetch_open_file(cache, path);
	symcache_prepare(cache, &module, 1, NULL, NULL);
	remote_symbols_state(&run->cli->message, cache);
	struct error *err = symbols_fetch_check(module, path);
	struct symbol_file *file = module_get_symbols(module);
	if (!err && !file)
		err = error_number(error_new(ERROR_BAD_DATA, "%s: no symbols", path), 622);
	if (!err)
		err = print_symbols(run, file);
	symcache_free(cache);
	return err;
}

static struct error *show_id(struct run *run, const struct build_id *id)
{
	struct store_entry entry;
	struct symbol_file *file;
	char name[SYMBOLS_PRINT_ID_BYTES];
	struct error *err = store_find(run->store, id, &entry);
	if (err)
		return error_number(err, 621);
	symbols_print_id(id, name);
	if (entry.has_file)
		err = store_load(run->store, id, SYMCACHE_DEMANGLE_NORMAL, &file);
	if (err && error_get_code(err) == ERROR_NO_ENTRY) {
		error_free(err);
		return error_number(
			error_new(ERROR_NO_ENTRY, "%s: the file was damaged, and is removed", name),
			620);
	}
	if (err)
		return error_number(err, 621);
	if (entry.has_file) {
		err = print_symbols(run, file);
		symbol_file_close(file);
		return err;
	}
	if (!entry.has_failure)
		return error_number(error_new(ERROR_NO_ENTRY, "nothing is kept of \"%s\"", name),
				    620);
	symbols_print_list_begin(&run->print, store_get_path(run->store));
	symbols_print_entry(&run->print, &entry);
	symbols_print_list_end(&run->print);
	return NULL;
}

/* A word of hex digits alone may be a build-id. */
static bool may_be_id(const char *word)
{
	return strspn(word, "0123456789abcdef") == strlen(word) ||
	       (!strchr(word, '/') && access(word, F_OK) < 0);
}

static struct error *run_show(struct run *run)
{
	const char *word = run->symbols->words[0];
	struct build_id id;
	for (size_t i = 1; i < run->symbols->n_words; i++) {
		uint64_t address;
		struct error *err = parse_address(run->symbols->words[i], &address);
		if (err)
			return err;
	}
	if (!may_be_id(word))
		return show_path(run, word);
	struct error *err = run->store ? find_by_prefix(run, word, &id) : error_no_entry;
	if (!err)
		return show_id(run, &id);
	/* Nothing is kept of such an id: then it is a file of that name. */
	if (error_get_code(err) == ERROR_NO_ENTRY && access(word, F_OK) == 0) {
		error_free(err);
		return show_path(run, word);
	}
	return err;
}

static struct error *run_fetch(struct run *run)
{
	struct symbols_options symbols = *run->symbols;
	struct error *err = NULL;
	/* The command says it all: no option is needed beside it. */
	if (!symbols.is_remote)
		err = remote_symbols_set_urls(&symbols.debuginfod, NULL);
	if (err)
		return err;
	symbols.is_remote = true;
	const struct symbols_fetch fetch = {
		.words = symbols.words,
		.n_words = symbols.n_words,
		.config = make_config(&symbols),
		.store = run->store,
		.print = &run->print,
		.cli = run->cli,
	};
	return symbols_fetch_run(&fetch);
}

static struct error *run_upload(struct run *run)
{
	const struct symbols_options *symbols = run->symbols;
	struct symbols_upload upload = {
		.words = symbols->words,
		.n_words = symbols->n_words,
		.url = symbols->url,
		.remote = &symbols->remote,
		.has_wait = symbols->has_wait,
		.config = make_config(symbols),
		.cli = run->cli,
	};
	upload.config.no_symbols = true; /* files alone */
	return symbols_upload_run(&upload);
}

#define OPTIONS_STORE  OPTION_BIT(OPTION_CACHE)
#define OPTIONS_UPKEEP (OPTIONS_STORE | OPTION_BIT(OPTION_MAX_SIZE))
#define OPTIONS_BUILD                                                                              \
	(OPTIONS_STORE | OPTION_BIT(OPTION_DEBUG_ROOT) | OPTION_BIT(OPTION_DEBUGINFOD) |           \
	 OPTION_BIT(OPTION_DEBUGINFOD_WAIT))
#define OPTIONS_UPLOAD                                                                             \
	(OPTION_BIT(OPTION_DEBUG_ROOT) | OPTION_BIT(OPTION_TO) | OPTION_BIT(OPTION_WAIT) |         \
	 OPTIONS_REMOTE)

static const struct action {
	const char *name;
	size_t min_words, max_words;
	uint64_t options; /* that mean something to it */
	struct error *(*run)(struct run *run);
} actions[] = {
	{"ls", 0, 0, OPTIONS_STORE, run_ls},
	{"show", 1, WORDS_MAX, OPTIONS_BUILD, run_show},
	{"add", 1, WORDS_MAX, OPTIONS_BUILD, run_add},
	{"fetch", 1, WORDS_MAX, OPTIONS_BUILD, run_fetch},
	{"upload", 1, WORDS_MAX, OPTIONS_UPLOAD, run_upload},
	{"verify", 0, 0, OPTIONS_UPKEEP, run_verify},
	{"gc", 0, 0, OPTIONS_UPKEEP, run_gc},
};

/* An option that would be ignored is a mistake of whoever gave it. */
static struct error *check_options(const struct symbols_options *symbols,
				   const struct action *action)
{
	uint64_t surplus = symbols->given & ~action->options;
	if (surplus & OPTIONS_REMOTE)
		return cli_usage("symbols %s sends nothing: options for servers are for upload",
				 action->name);
	for (size_t i = 0; surplus && i < ARRAY_LEN(options); i++) {
		if (surplus & OPTION_BIT(options[i].id))
			return cli_usage("symbols %s takes no --%s", action->name, options[i].name);
	}
	return NULL;
}

static struct error *choose_action(const struct symbols_options *symbols, const struct action **out)
{
	const char *names[ARRAY_LEN(actions)];
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		names[i] = actions[i].name;
	if (!symbols->action)
		return cli_usage("what to do? ls, show, add, fetch, upload, verify or gc");
	size_t index;
	struct error *err =
		cli_parse_choice("symbols", symbols->action, names, ARRAY_LEN(actions), &index);
	if (err)
		return err;
	const struct action *action = &actions[index];
	if (symbols->n_words < action->min_words)
		return cli_usage("symbols %s: what of?", action->name);
	if (symbols->n_words > action->max_words)
		return cli_usage("symbols %s takes no \"%s\"", action->name, symbols->words[0]);
	*out = action;
	return check_options(symbols, action);
}

/* A mistyped folder shall not come into being. */
static bool makes_folder(const struct action *action)
{
	return action->run == run_add || action->run == run_fetch;
}

/* What show finds without a store, it shows without; but a folder that was named is to be there. */
static bool needs_store(const struct symbols_options *symbols, const struct action *action,
			const struct error *err)
{
	const char *word = symbols->n_words ? symbols->words[0] : "";
	if (action->run != run_show || access(word, F_OK) < 0)
		return true;
	return symbols->cache_path && error_get_code(err) == ERROR_NO_ENTRY;
}

static struct error *run(const struct symbols_options *symbols, const struct cli *cli)
{
	const struct action *action = NULL;
	struct error *err = choose_action(symbols, &action);
	if (err)
		return err;
	struct run run = {.symbols = symbols,
			  .cli = cli,
			  .print = {.out = stdout, .is_json = cli->format == CLI_FORMAT_JSON}};
	if (action->run == run_upload) /* keeps nothing */
		return action->run(&run);
	const struct store_config config = {
		.path = symbols->cache_path,
		.max_bytes = max_bytes(symbols),
		.must_exist = !makes_folder(action),
	};
	err = store_open(&config, &run.store);
	if (err && !needs_store(symbols, action, err)) {
		error_free(err);
		err = NULL;
		run.store = NULL;
	}
	if (err)
		return error_number(err, error_get_code(err) == ERROR_NO_ENTRY ? 624 : 621);
	err = action->run(&run);
	store_close(run.store);
	return err;
}

int cmd_symbols(int argc, char **argv)
{
	struct symbols_options symbols = {0};
	struct cli cli;
	int exit_code;
	if (!cli_read(&cmd_symbols_spec, argc, argv, &symbols, &cli, &exit_code))
		return exit_code;
	struct error *err = run(&symbols, &cli);
	remote_options_fini(&symbols.remote);
	return err ? message_error(&cli.message, err) : EXIT_CODE_DONE;
}
