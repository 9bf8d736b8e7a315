#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every header compiles by itself: headers_alone.sh ROOT
set -eu
cd "$1"
find base proto collector symcache converter forwarder pipeline -name '*.h' 2>/dev/null | sort | xargs -P "$(nproc)" -n 8 sh -c '
	for header in "$@"; do
		printf "#include \"%s\"\n#include \"%s\"\n" "$header" "$header" |
			cc -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-unused-function -I. -fsyntax-only -x c - || { echo "$header does not compile alone"; exit 255; }
	done' sh
echo "all headers compile alone"
