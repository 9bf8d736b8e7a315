#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who may include whom: include_graph.sh ROOT
#  - a folder includes only what stands below it (allowed, below);
#  - from outside a folder only its door FOLDER/FOLDER.h and what that includes; base and proto are
#    open throughout;
#  - no cycles between files; a stem names one pair of files in the whole tree.
# Then forbidden includes are planted in a copy, and each has to be found.
set -eu

folders="base proto collector symcache converter forwarder pipeline"

allowed() {
	case $1 in
	base) echo base ;;
	proto | collector | symcache) echo "base $1" ;;
	converter) echo "base proto symcache converter" ;;
	forwarder) echo "base proto forwarder" ;;
	pipeline) echo "$folders" ;;
	esac
}

# Lines "FILE INCLUDED" of all quoted includes.
list_includes() {
	(cd "$1" && find $folders -name '*.[ch]' 2>/dev/null | LC_ALL=C sort | xargs grep -HoE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"[^"]+"') |
		sed -E 's/^([^:]+):.*"([^"]+)"$/\1 \2/'
}

# The door and all that it includes of its own folder.
list_door() {
	awk -v folder="$1" '
		index($1, folder "/") == 1 && index($2, folder "/") == 1 { to[$1] = to[$1] " " $2 }
		END {
			n = 1; queue[1] = folder "/" folder ".h"; seen[queue[1]] = 1
			for (i = 1; i <= n; i++) {
				print queue[i]
				m = split(to[queue[i]], next_ones, " ")
				for (j = 1; j <= m; j++)
					if (!seen[next_ones[j]]++) queue[++n] = next_ones[j]
			}
		}' "$2"
}

check() {
	local root=$1 faults=0 includes doors
	includes=$(mktemp) doors=$(mktemp)
	list_includes "$root" >"$includes"
	for folder in $folders; do
		list_door "$folder" "$includes"
	done >"$doors"

	while read -r file included; do
		from=${file%%/*} to=${included%%/*}
		if [ ! -e "$root/$included" ]; then
			echo "$file: \"$included\": includes are written from the root"
			faults=1
		elif [[ " $(allowed "$from") " != *" $to "* ]]; then
			echo "$file: $from may not include $to: \"$included\""
			faults=1
		elif [ "$from" != "$to" ] && [ "$to" != base ] && [ "$to" != proto ] && ! grep -qxF "$included" "$doors"; then
			echo "$file: \"$included\" is private to $to; its door is $to/$to.h"
			faults=1
		fi
	done <"$includes"

	if ! tsort "$includes" >/dev/null 2>"$doors"; then
		echo "includes in a circle:" $(sed 's/^tsort: //' "$doors")
		faults=1
	fi

	twins=$(cd "$root" && find $folders -name '*.[ch]' 2>/dev/null | sed -E 's/\.[ch]$//' | sort -u | sed 's|.*/||' | sort | uniq -d)
	if [ -n "$twins" ]; then
		echo "stems that stand in more than one folder:" $twins
		faults=1
	fi
	rm -f "$includes" "$doors"
	return $faults
}

# plant WHAT FILE TEXT: with that line in the copy, check has to fail.
plant() {
	cp -- "$copy/$2" "$copy/saved" 2>/dev/null || : >"$copy/saved"
	echo "$3" >>"$copy/$2"
	if check "$copy" >/dev/null; then
		echo "self-check: $1 was not found"
		exit 1
	fi
	mv "$copy/saved" "$copy/$2"
}

root=$1
check "$root"

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
for folder in $folders; do
	[ -d "$root/$folder" ] && cp -r "$root/$folder" "$copy/"
done
check "$copy"
plant "base including proto" base/error.c '#include "proto/profile.h"'
plant "collector including converter" collector/record_source.h '#include "converter/converter.h"'
plant "converter including collector" converter/converter.h '#include "collector/collector.h"'
private=$(cd "$copy" && ls symcache/*.h | grep -v symcache/symcache.h | head -n 1)
plant "a private header of symcache" pipeline/main.c "#include \"$private\""
plant "a circle" base/error.h '#include "base/buf.h"'
plant "a path that is not from the root" pipeline/main.c '#include "command.h"'
: >"$copy/pipeline/error.c"
if check "$copy" >/dev/null; then
	echo "self-check: a stem used twice was not found"
	exit 1
fi
echo "include rules hold; planted faults were found"
