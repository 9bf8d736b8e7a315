#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Calls that have a better replacement in base, and what belongs in one place: banned_calls.sh ROOT
set -eu
cd "$1"

faults=0
folders=$(for folder in proto collector symcache converter forwarder pipeline; do [ ! -d $folder ] || echo $folder; done)

# ban WHY REGEX FILE...: comments and strings do not count.
ban() {
	local why=$1 regex=$2
	shift 2
	local hits
	hits=$(for file in "$@"; do
		sed -E -e 's/"([^"\\]|\\.)*"/""/g' -e 's|//.*||' -e 's|/\*.*\*/||' -e '/^[[:space:]]*(\/\*|\*)/s/.*//' "$file" |
			grep -nE "$regex" | sed "s|^|$file:|" || true
	done)
	if [ -n "$hits" ]; then
		printf '%s\n  %s\n' "$hits" "$why"
		faults=1
	fi
}

mapfile -t sources < <(find $folders -name '*.[ch]' | sort)
word='(^|[^A-Za-z0-9_])'
ban "base/mem.h is the one place that takes memory" "$word(malloc|calloc|realloc|reallocarray|strdup|strndup|asprintf|alloca)[[:space:]]*\(" "${sources[@]}"
ban "no bound: snprintf, buf" "$word(sprintf|vsprintf|strcpy|strcat|strncpy|strncat|gets)[[:space:]]*\(" "${sources[@]}"
ban "no error: strtol and its kin" "$word(atoi|atol|atoll|atof)[[:space:]]*\(" "${sources[@]}"
ban "hidden state" "$word(strtok|asctime|ctime|localtime|gmtime|rand|srand)[[:space:]]*\(" "${sources[@]}"
ban "only main may end the program" "$word(exit|abort|errx?|warnx?)[[:space:]]*\(" "${sources[@]}"
mapfile -t no_atomics < <(printf '%s\n' "${sources[@]}" | grep -v -x 'collector/perf_ring\.c')
ban "atomics only in perf_ring.c, mailbox.c and stats.c" "stdatomic\.h|__atomic_|__sync_" "${no_atomics[@]}"
mapfile -t base < <(find base -name '*.[ch]' ! -name 'mailbox.c' ! -name 'stats.c' | sort)
ban "atomics only in perf_ring.c, mailbox.c and stats.c" "stdatomic\.h|__atomic_|__sync_" "${base[@]}"
mapfile -t all < <(printf '%s\n' "${sources[@]}" "${base[@]}")
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
