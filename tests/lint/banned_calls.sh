#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Calls that have a better replacement in base, and what belongs in one place: banned_calls.sh ROOT
set -eu
cd "$1"

faults=0
folders=$(for folder in proto collector symcache converter forwarder pipeline; do [ ! -d $folder ] || echo $folder; done)

# Lines "FILE:LINE:TEXT" without comments and with empty strings.
code=$(mktemp)
trap 'rm -f "$code"' EXIT
find $folders base -name '*.[ch]' | sort | xargs awk '
	{
		gsub(/"([^"\\]|\\.)*"/, "\"\"")
		gsub(/\/\*.*\*\//, "")
		sub(/\/\/.*/, "")
		if ($0 !~ /^[ \t]*(\/\*|\*)/) print FILENAME ":" FNR ":" $0
	}' >"$code"

# ban WHY REGEX WHERE: WHERE is an expression for file names.
ban() {
	local hits
	hits=$(grep -E "^($3)" "$code" | grep -E "$2" || true)
	if [ -n "$hits" ]; then
		printf '%s\n  %s\n' "$hits" "$1"
		faults=1
	fi
}

outside_base=$(echo $folders | tr ' ' '|')
word='[^A-Za-z0-9_]'
ban "base/mem.h is the one place that takes memory" "$word(malloc|calloc|realloc|reallocarray|strdup|strndup|asprintf|alloca)[[:space:]]*\(" "$outside_base"
ban "no bound: snprintf, buf" "$word(sprintf|vsprintf|strcpy|strcat|strncpy|strncat|gets)[[:space:]]*\(" "$outside_base"
ban "no error: strtol and its kin" "$word(atoi|atol|atoll|atof)[[:space:]]*\(" "$outside_base"
ban "hidden state" "$word(strtok|asctime|ctime|localtime|gmtime|rand|srand)[[:space:]]*\(" "$outside_base"
ban "only main may end the program" "$word(exit|abort|errx?|warnx?)[[:space:]]*\(" "$outside_base"
atomics=$(grep -E 'stdatomic\.h|__atomic_|__sync_' "$code" | grep -vE '^(collector/perf_ring|base/mailbox|base/stats)\.c:' || true)
if [ -n "$atomics" ]; then
	printf '%s\n  atomics only in perf_ring.c, mailbox.c and stats.c\n' "$atomics"
	faults=1
fi
mapfile -t all < <(find $folders base -name '*.[ch]' | sort)
for file in "${all[@]}"; do
	open_ends=$(grep -nE '\b(TODO|FIXME|XXX)\b' "$file" | grep -vE '(TODO|FIXME) ?\(?#[0-9]+' || true)
	if [ -n "$open_ends" ]; then
		echo "$file: an open end names its issue: $open_ends"
		faults=1
	fi
	if ! head -n 1 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0'; then
		echo "$file: the first line is the SPDX line"
		faults=1
	fi
done
[ $faults = 0 ] && echo "no banned calls in ${#all[@]} files"
exit $faults
