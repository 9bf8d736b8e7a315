#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The layout is clang-format's: format.sh ROOT
set -eu
cd "$1"
if ! command -v clang-format-14 >/dev/null; then
	echo "skipped: no clang-format-14"
	exit 77
fi
folders=$(for folder in base proto collector symcache converter forwarder pipeline tests; do [ ! -d $folder ] || echo $folder; done)
find $folders -name '*.[ch]' -print0 | xargs -0 clang-format-14 --dry-run -Werror
echo "layout as clang-format has it"
