/* SPDX-License-Identifier: Apache-2.0 */
/* The table of numbered errors and warnings; tests/lint/error_codes.sh keeps it complete. */
#include "pipeline/explain.h"

#include "base/compiler.h"

static const struct explain_entry entries[] = {
	{'E', 1, EXIT_CODE_USAGE, "the command line is off",
	 "An option, a value or a command is not one that perfpipe knows.", "perfpipe help"},

	{'E', 101, EXIT_CODE_DENIED, "not permitted to sample",
	 "kernel.perf_event_paranoid or a missing capability keeps this user from sampling that "
	 "target: 2 and more allow own processes without the kernel only, 3 and 4 (Debian, Ubuntu) "
	 "nothing without CAP_PERFMON. Containers may forbid perf_event_open altogether.",
	 "sudo setcap cap_perfmon,cap_syslog+ep \"$(command -v perfpipe)\""},
	{'E', 102, EXIT_CODE_NO_INPUT, "no such process",
	 "The process may have exited before sampling began.",
	 "perfpipe record -G CGROUP, or record its parent: children are followed"},
	{'W', 103, 0, "kernel names hidden",
	 "The kernel hides its addresses from users without CAP_SYSLOG when kernel.kptr_restrict "
	 "is 1 "
	 "or kernel.perf_event_paranoid above 1, and from all when kptr_restrict is 2; kernel "
	 "frames "
	 "are one nameless group then.",
	 "sudo setcap cap_perfmon,cap_syslog+ep \"$(command -v perfpipe)\", and sysctl "
	 "kernel.kptr_restrict=1"},
	{'E', 104, EXIT_CODE_NO_INPUT, "cgroup not found",
	 "The path is below the cgroup2 mount (or the v1 perf_event hierarchy) as "
	 "/proc/PID/cgroup shows it.",
	 "systemd-cgls, and give the path as in: perfpipe record -G system.slice/nginx.service"},
	{'E', 105, EXIT_CODE_USAGE, "event unknown or not supported",
	 "The event has no such name, or this machine cannot count it (virtual machines often "
	 "have no hardware counters).",
	 "perfpipe record -e cpu-clock"},
	{'E', 106, EXIT_CODE_DENIED, "ring memory refused",
	 "The rings of all users' tools share kernel.perf_event_mlock_kb per CPU and "
	 "RLIMIT_MEMLOCK; even the smallest ring did not fit.",
	 "ulimit -l unlimited, or: sudo sysctl kernel.perf_event_mlock_kb=2048"},
	{'E', 107, EXIT_CODE_FAILED, "out of file descriptors",
	 "Sampling takes one descriptor per event and CPU, and per thread where processes are "
	 "followed.",
	 "ulimit -n 65536"},
	{'W', 108, 0, "no hardware cycles: cpu-clock is used",
	 "This machine (often a virtual one) gives no cycle counter; a timer samples instead. Time "
	 "spent with interrupts off is seen at their end.",
	 "none needed; -e cpu-clock asks for it directly"},
	{'W', 109, 0, "user frames only",
	 "This user may not sample the kernel, so time in system calls has no frames of its own.",
	 "sudo setcap cap_perfmon,cap_syslog+ep \"$(command -v perfpipe)\""},
	{'W', 110, 0, "execs are not watched",
	 "The tracepoint sched:sched_process_exec cannot be used, so command lines are read from "
	 "/proc and very short processes have none.",
	 "run as root or with CAP_PERFMON and readable /sys/kernel/tracing"},
	{'E', 111, EXIT_CODE_NOT_FOUND, "command not found or not executable",
	 "The command behind -- could not be started: exit 127 when there is no such file, 126 "
	 "when it may not be executed.",
	 "check its name and PATH"},
	{'W', 112, 0, "rings smaller than asked for",
	 "The rings of all users' tools share kernel.perf_event_mlock_kb per CPU and "
	 "RLIMIT_MEMLOCK; bursts may lose samples.",
	 "ulimit -l unlimited, or: sudo sysctl kernel.perf_event_mlock_kb=2048"},
	{'W', 113, 0, "fewer samples than asked for",
	 "kernel.perf_event_max_sample_rate limits all events together, so that sampling leaves "
	 "time for "
	 "what is sampled, and the kernel lowers it by itself when sampling takes too much time.",
	 "sudo sysctl kernel.perf_event_max_sample_rate=100000"},
	{'W', 114, 0, "nothing was sampled",
	 "The target used no CPU in that time, ended before its first sample, or all of its "
	 "samples were of a kind that was left out. Without CAP_PERFMON, children that live for "
	 "less "
	 "than a sampling period have no samples, as each begins a new one.",
	 "sample longer (-d) or more often (-F 999)"},

	{'W', 115, 0, "recording inside a PID namespace",
	 "The kernel shows processes outside of the recorder's PID namespace (as in a container) "
	 "as "
	 "pid 0: their samples cannot be told apart, and have neither names nor mappings.",
	 "run it on the host, or with the host's PIDs (docker run --pid=host)"},
	{'E', 116, EXIT_CODE_UNAVAILABLE, "/proc or /sys is missing",
	 "What runs already, the CPUs, the kernel's names and its limits are read from there.",
	 "mount -t proc proc /proc; mount -t sysfs sysfs /sys"},

	{'E', 117, EXIT_CODE_FAILED, "no more processes or threads",
	 "RLIMIT_NPROC counts all processes and threads of a user; the pids.max of a cgroup, those "
	 "of a service or container. Or the kernel has no memory for another one.",
	 "ulimit -u unlimited; in a systemd unit: TasksMax=infinity"},
	{'W', 118, 0, "no snapshot was taken",
	 "A snapshot is a file beside the output: its folder must be one that may be written, and "
	 "the "
	 "output a file rather than standard output or a device. Nothing is lost, the recording "
	 "goes "
	 "on.",
	 "perfpipe record -o FILE, in a folder where you may write"},

	{'W', 501, 0, "a debuginfod server failed",
	 "It did not answer, or with an error, or with something else than the file that was asked "
	 "for. After three failures in a row it is left alone for ten minutes. A failure never "
	 "counts as \"there is no such file\".",
	 "curl -I URL/metrics from this host; perfpipe symbols fetch asks again at once"},
	{'W', 502, 0, "libdebuginfod is missing",
	 "Files are fetched through elfutils' client library, which is loaded only when it is "
	 "needed.",
	 "sudo apt-get install libdebuginfod1"},
	{'E', 503, EXIT_CODE_USAGE, "no debuginfod server is named",
	 "Nothing is sent to servers that were not named for the purpose: --debuginfod=URLS, or "
	 "--debuginfod with the URLs in DEBUGINFOD_URLS, http:// or https:// each.",
	 "perfpipe … --debuginfod=https://debuginfod.debian.net"},
	{'W', 504, 0, "the fetcher cannot be confined",
	 "What talks to servers does so without rights, in a process of its own; it needs seccomp, "
	 "prctl and setuid.",
	 "in a systemd unit: SystemCallFilter=@system-service perf_event_open seccomp"},
	{'W', 505, 0, "the time for fetching was over",
	 "All files that a command fetches have three minutes together.",
	 "perfpipe … --debuginfod-wait 30m; what was fetched is kept"},
	{'W', 506, 0, "a file was too large to fetch", "Files of more than 2 GiB are not fetched.",
	 "install the debug symbols instead, or name their folder with --debug-root"},
	{'E', 507, EXIT_CODE_UNAVAILABLE, "the symbols could not be fetched",
	 "No server has a file of that build-id, or those that may have it failed. Only GNU "
	 "build-ids of 8 bytes and more are asked for.",
	 "readelf -n FILE shows the build-id; name other servers: --debuginfod=URLS"},

	{'E', 201, EXIT_CODE_CONFIG, "unknown key in the configuration",
	 "Keys that nobody reads are errors, because they are mostly misspelt ones.",
	 "perfpipe check-config --schema lists all keys; man perfpipe.yaml"},
	{'E', 202, EXIT_CODE_CONFIG, "a setting has a value that cannot be used",
	 "It is of another type, outside of its bounds, or not one of its choices.",
	 "man perfpipe.yaml says what each key takes"},
	{'E', 203, EXIT_CODE_CONFIG, "something is set twice",
	 "A key stands twice in one map, or in two files: maps of perfpipe.yaml and conf.d are "
	 "merged, but a value can have one place only.",
	 "remove one of both places"},
	{'E', 204, EXIT_CODE_CONFIG, "a name in the configuration refers to nothing",
	 "Pipelines and tests name components and pipelines that have to be defined.",
	 "perfpipe check-config --print shows what is defined"},
	{'E', 205, EXIT_CODE_CONFIG, "a reference ${…} cannot be replaced",
	 "${env:X} needs a variable that is set, ${file:/path} a file that can be read, "
	 "${credential:x} a systemd unit with LoadCredential=x.",
	 "set what is missing, or give a default: ${env:X:-default}"},
	{'E', 206, EXIT_CODE_CONFIG, "the configuration is not YAML of the kind that is read",
	 "It breaks YAML's grammar, or uses tags, several documents, keys that are no text, or "
	 "more "
	 "depth and entries than any configuration needs.",
	 "indent with spaces, and quote texts with ': ', ' #', '{', '[' or '*' in them"},
	{'E', 207, EXIT_CODE_CONFIG, "settings that do not fit together",
	 "One needs another that is missing, or contradicts it.",
	 "the message names both; man perfpipe.yaml"},
	{'E', 208, EXIT_CODE_CONFIG, "a relabel rule cannot be used",
	 "A field is missing or of no use for its action, a name is no label's, or the regex is "
	 "not "
	 "one of RE2: look-around, back-references, atomic groups and possessive repetition are "
	 "refused, because Prometheus would refuse them.",
	 "man perfpipe-labels; try rules with perfpipe relabel --explain"},
	{'E', 209, EXIT_CODE_CONFIG, "a test of the configuration failed",
	 "The relabel rules make other labels of its input than it expects.",
	 "perfpipe relabel --explain --config FILE --input NAME=VALUE…"},
	{'E', 210, EXIT_CODE_CONFIG, "the configuration cannot be read",
	 "The file or conf.d beside it is missing, too large, or this user may not read it.",
	 "perfpipe check-config FILE"},
	{'E', 211, EXIT_CODE_CONFIG, "the configuration is for a newer perfpipe",
	 "schema_version counts changes that older programs would misread.",
	 "upgrade perfpipe, or go back to the file of this version"},
	{'W', 221, 0, "a credential cannot be checked",
	 "systemd sets CREDENTIALS_DIRECTORY for its services only; perfpipe run needs it.",
	 "none needed; systemd-run -p LoadCredential=NAME:FILE perfpipe check-config checks it "
	 "too"},
	{'W', 222, 0, "no exporters are configured",
	 "Nothing is sent; profiles can be fetched from the local server.",
	 "add a section exporters, as in configs/minimal.yaml"},
	{'W', 223, 0, "profiles may be too old for their server",
	 "Pyroscope's default refuses what is older than an hour: what waits longer is rejected.",
	 "sending_queue: {max_age: 55m}"},
	{'W', 224, 0, "lifecycle requests are open to the network",
	 "POST /-/quit and /-/reload ask for no password.",
	 "address: \"127.0.0.1:9917\", or enable_lifecycle: false"},
	{'W', 225, 0, "a component is in no pipeline", "Only what service.pipelines names is run.",
	 "add it to a pipeline, or remove it"},

	{'E', 301, EXIT_CODE_TEMPORARY, "no trusted TLS connection",
	 "The server's certificate is not signed by anybody that is trusted, is not for that host, "
	 "has expired, or the other side speaks no TLS or no HTTP/2.",
	 "openssl s_client -connect HOST:PORT -alpn h2, then --ca-file FILE or the right host "
	 "name"},
	{'E', 302, EXIT_CODE_DENIED, "the server refused our credentials",
	 "Token, password, client certificate or tenant is missing, wrong or out of date (401, "
	 "403, "
	 "UNAUTHENTICATED, PERMISSION_DENIED). Nothing is dropped: what was not taken waits.",
	 "replace the token file (it is re-read), or give --token-file FILE, --tenant ID"},
	{'E', 303, EXIT_CODE_FAILED, "the server refused a profile for good",
	 "It will not take it however often it is sent: a limit on age, size or labels, or a form "
	 "that it does not know. It is kept beside the spool with what the server said.",
	 "perfpipe spool ls, and after mending the cause: perfpipe spool retry ID"},
	{'E', 304, EXIT_CODE_TEMPORARY, "the answer is not gRPC",
	 "A web page, a proxy or another service answers at that address.",
	 "check host and port: Parca 7070, Pyroscope 4040, OTLP 4317; plaintext needs "
	 "KIND+insecure://"},
	{'E', 305, EXIT_CODE_TEMPORARY, "not delivered for now",
	 "The server cannot be reached, is overloaded, or did not answer in time. What is spooled "
	 "waits on disk.",
	 "perfpipe push --wait …, or the same command again later"},
	{'E', 306, EXIT_CODE_FAILED, "debug information is not taken",
	 "The file holds nothing that names addresses or is not what its build-id says, or the "
	 "server takes no uploads, or none of that size.",
	 "readelf -S FILE shows what it has; symbols show FILE what perfpipe reads of it"},
	{'E', 307, EXIT_CODE_TEMPORARY, "debug information not uploaded for now",
	 "The server cannot be reached, is overloaded, or somebody else uploads the same file.",
	 "perfpipe symbols upload --wait …, or the same command again later"},

	{'E', 401, EXIT_CODE_CANNOT_CREATE, "the spool cannot be used",
	 "Its folder cannot be made or written, or is held by other processes.",
	 "choose a folder of your own: --spool DIR"},
	{'E', 402, EXIT_CODE_NO_INPUT, "nothing of that name is spooled",
	 "There is no spool at that place, or nothing in it has that number or path.",
	 "perfpipe spool ls"},
	{'E', 403, EXIT_CODE_BAD_INPUT, "a spooled file cannot be read",
	 "It is damaged, or of a version or kind that this perfpipe does not know.",
	 "perfpipe spool drop ID"},
	{'W', 401, 0, "spooled requests were dropped",
	 "They were older than the server takes, the spool or its disk was full, or somebody "
	 "removed them.",
	 "perfpipe spool ls shows what is left; more room: --spool DIR"},
	{'E', 404, EXIT_CODE_IO, "a profile could not be kept",
	 "The disk is full or failed, or a bound of the spool dropped it before it was delivered. "
	 "Nothing of it was acknowledged.",
	 "make room, or choose another disk: --spool DIR, and push the file again"},

	{'E', 405, EXIT_CODE_CANNOT_CREATE, "cannot listen for HTTP",
	 "Another program, maybe another perfpipe, has that address and port, or this host does "
	 "not have the address.",
	 "perfpipe run --http 127.0.0.1:PORT, or --http none"},
	{'E', 406, EXIT_CODE_UNAVAILABLE, "no perfpipe answers there",
	 "perfpipe run listens on 127.0.0.1:9917 unless --http says otherwise.",
	 "perfpipe status --http HOST:PORT"},

	{'E', 601, EXIT_CODE_BAD_INPUT, "damaged perf.data",
	 "Nothing of it can be used, or --strict refuses what is damaged: the recorder was "
	 "probably "
	 "killed, the disk was full, or a copy was cut.",
	 "record again, or copy the file again"},
	{'W', 601, 0, "damaged perf.data, read in part",
	 "The file ends early or a part of it is broken: perf record was probably killed, the disk "
	 "was full, or a copy was cut. What is intact was used.",
	 "none needed; --strict turns this into exit 65"},
	{'W', 602, 0, "unknown records or features were skipped",
	 "The file was written by a perf newer than this version, or by another tool.",
	 "none needed; samples are unaffected"},
	{'E', 603, EXIT_CODE_BAD_INPUT, "not a perf.data file",
	 "A perf.data file begins with PERFILE2; this one does not.",
	 "perfpipe record, or: perf record -g"},
	{'E', 604, EXIT_CODE_BAD_INPUT, "empty input",
	 "There is not a single byte in it: the recorder probably failed before it wrote.",
	 "look at the messages of the program that wrote it"},
	{'E', 605, EXIT_CODE_BAD_INPUT, "decompression failed",
	 "A compressed part is damaged, or would unpack to more than is sane.",
	 "copy the file again; gunzip -t or zstd -t tells whether it is whole"},
	{'W', 605, 0, "a compressed record could not be unpacked",
	 "A compressed part is damaged, or would unpack to more than is sane; what came before it "
	 "was used.",
	 "none needed; --strict turns this into exit 65"},
	{'W', 606, 0, "samples were lost",
	 "The kernel had no room in the ring when the samples came, or perfpipe could not keep up. "
	 "The profile's comments state how many.",
	 "perfpipe record -m 4M, or a lower -F"},
	{'W', 607, 0, "malformed samples were skipped",
	 "Fields of these records do not fit into their size.",
	 "none needed; they are counted in the profile's comments"},
	{'E', 608, EXIT_CODE_BAD_INPUT, "unknown dialect of the pipe format",
	 "The stream begins like perf's pipe mode but its records are of no kind that perf writes.",
	 "record to a file instead: perf record -o perf.data"},
	{'W', 609, 0, "samples of no known event",
	 "Their ids belong to no event that the file describes.",
	 "none needed; they are counted in the profile's comments"},
	{'E', 610, EXIT_CODE_BAD_INPUT, "neither a pprof profile nor a perf.data file",
	 "The input is no protobuf of the form profile.proto (gzip or plain) and has no perf.data "
	 "header.",
	 "perfpipe convert -i perf.data -o out.pb.gz, then: perfpipe report out.pb.gz"},
	{'E', 611, EXIT_CODE_BAD_INPUT, "damaged pprof profile",
	 "The file begins like a profile, but ends early or refers to things that are not in it.",
	 "write or copy it again"},
	{'E', 612, EXIT_CODE_BAD_INPUT, "no such event in the input",
	 "--event takes the name of an event of that file.", "perfpipe inspect FILE"},
	{'E', 613, EXIT_CODE_NO_INPUT, "the input cannot be opened",
	 "There is no such file, or this user may not read it.", "check the path: ls -l FILE"},
	{'E', 614, EXIT_CODE_NO_INPUT, "a file or folder named by an option cannot be used",
	 "--kallsyms, --vmlinux, --debug-root and --sysroot name what names are taken from; "
	 "without "
	 "it they would be missing in silence.",
	 "check the path: ls -l FILE"},
	{'W', 615, 0, "records came too late to be put in order",
	 "They are older than what was passed on before them, so a mapping or name may count too "
	 "late; reading rings lagged far behind, or the file was put together badly.",
	 "perfpipe record -m 4M, or a lower -F"},
	{'W', 616, 0, "processes or mappings were forgotten",
	 "There are bounds on what is kept in memory; samples of what was forgotten show as "
	 "unmapped.",
	 "perfpipe record -p PID or -G CGROUP, or shorter recordings"},
	{'W', 617, 0, "files with names of JIT code were not used",
	 "Anybody can put a file into /tmp, so it has to be a regular file of the process's user "
	 "that nobody else may write to, not mounted there, and younger than the process. Times of "
	 "a jitdump fit those of samples only on the same clock.",
	 "umask 022 for the program; perf record -k mono; --trust-paths for a recording of your "
	 "own"},
	{'E', 620, EXIT_CODE_NO_INPUT, "no such symbols are kept",
	 "Symbols are kept by build-id, once a recording or perfpipe symbols add needed them.",
	 "perfpipe symbols ls, or: perfpipe symbols add FILE"},
	{'E', 621, EXIT_CODE_CANNOT_CREATE, "the symbol cache cannot be used",
	 "Its folder cannot be made, or belongs to another user, or others may write there.",
	 "choose a folder of your own: --symbol-cache DIR"},
	{'E', 622, EXIT_CODE_BAD_INPUT, "no symbols could be read from the file",
	 "It is no ELF file, or its tables are damaged or take more than is sane.",
	 "readelf -S FILE shows what it has"},
	{'E', 623, EXIT_CODE_UNAVAILABLE, "the symbols of the file could not be built",
	 "The builder, a process of its own, ran into a limit, was killed, or may not confine "
	 "itself "
	 "(it needs seccomp, prctl, setuid and memfd_create).",
	 "try again without ulimits; in a systemd unit: SystemCallFilter=@system-service "
	 "perf_event_open seccomp"},
	{'E', 624, EXIT_CODE_NO_INPUT, "no symbol cache there",
	 "The folder does not exist: a recording, convert or perfpipe symbols add makes it.",
	 "check the name behind --symbol-cache, or: perfpipe symbols add FILE"},

	{'E', 701, EXIT_CODE_CANNOT_CREATE, "the output cannot be created",
	 "The folder does not exist or may not be written, the name is a folder's, or there is a "
	 "file of that name that may not be replaced.",
	 "perfpipe … -o /tmp/perfpipe.pb.gz"},
	{'E', 702, EXIT_CODE_IO, "writing failed",
	 "The disk is full, a quota is reached, or the reader of a pipe went away.",
	 "df -h ., and choose another place with -o"},
};

const struct explain_entry *explain_find(enum explain_severity severity, int number)
{
	const struct explain_entry *other = NULL;
	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		if (entries[i].number != number)
			continue;
		if (entries[i].severity == (char)severity)
			return &entries[i];
		other = &entries[i];
	}
	return other;
}

const struct explain_entry *explain_list(size_t *n_out)
{
	*n_out = ARRAY_LEN(entries);
	return entries;
}
