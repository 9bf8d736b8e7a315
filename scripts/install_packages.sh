#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that are missing: install_packages.sh build | test
# "test" contains "build". Nothing is asked, and apt is left alone when all are there.
set -eu

build="build-essential cmake ninja-build pkg-config zlib1g-dev libdeflate-dev libzstd-dev liblzma-dev libxxhash-dev
	libpcre2-dev libiberty-dev libcap-dev libseccomp-dev libpfm4-dev libdebuginfod-dev libuv1-dev libnghttp2-dev
	libssl-dev libprotobuf-c-dev protobuf-c-compiler libyaml-dev libmicrohttpd-dev"
# libclang-rt-14-dev and lld-14: fuzz targets and odd ELF files; golang-go: go tool pprof;
# debuginfod, grpcio, nghttp2: servers to talk to; elfutils, binutils, llvm, protobuf: other eyes on what we read and
# write; strace fails system calls; prometheus has promtool.
# libdw-dev: the unwinder that ours is compared with; musl-tools, mold: programs to unwind.
test="libcmocka-dev protobuf-compiler python3-grpcio python3-protobuf python3-yaml nghttp2-server nghttp2-proxy openssl
	linux-perf golang-go elfutils libdw-dev musl-tools mold g++ binutils xz-utils clang-14 llvm-14 clang-tidy-14
	clang-format-14 libclang-rt-14-dev lld-14 stress-ng strace python3 nodejs libcap2-bin mandoc debuginfod dwz
	prometheus"

case "${1-}" in
build) wanted=$build ;;
test) wanted="$build $test" ;;
*)
	echo "usage: $0 build | test" >&2
	exit 2
	;;
esac

missing=
for package in $wanted; do
	status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
	[ "$status" = "install ok installed" ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

root=
if [ "$(id -u)" != 0 ]; then
	root="sudo -n env"
	if ! sudo -n true 2>/dev/null; then
		echo "$0: missing packages, and no root to install them; run as root:" >&2
		echo "  apt-get install$missing" >&2
		exit 1
	fi
fi
export DEBIAN_FRONTEND=noninteractive
apt() {
	$root DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" </dev/null
}
[ -n "$root" ] || root=env
apt update
# shellcheck disable=SC2086 # a list of words
apt install -y --no-install-recommends $missing
