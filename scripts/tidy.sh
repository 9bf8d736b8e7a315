#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy over the product's sources, or over the files named.
set -eu

cd "$(dirname "$0")/.."
cmake --preset dev >/dev/null
if [ $# = 0 ]; then
	set -- {base,proto,collector,symcache,converter,pipeline}/*.c
fi
printf '%s\n' "$@" | xargs -P "$(nproc)" -n 4 clang-tidy-14 -p build/dev --quiet --warnings-as-errors='*'
