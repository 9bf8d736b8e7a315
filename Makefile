# SPDX-License-Identifier: Apache-2.0
# Thin: the work is in CMake and scripts/. SECONDS=… sets the time of each fuzz target.
JOBS ?= $(shell nproc)

.PHONY: all demo check bench fuzz format

all:
	cmake --preset release -DPERFPIPE_TESTS=OFF
	cmake --build build/release -j $(JOBS) --target perfpipe

demo:
	scripts/install_packages.sh build
	cmake --preset release -DPERFPIPE_TESTS=OFF
	cmake --build build/release -j $(JOBS)
	scripts/demo.sh build/release/perfpipe

check:
	scripts/install_packages.sh test
	cmake --preset ci
	cmake --build build/ci -j $(JOBS)
	ctest --test-dir build/ci --output-on-failure -j $(JOBS)

bench:
	scripts/install_packages.sh test
	cmake --preset release -DPERFPIPE_TESTS=ON
	tests/bench/run.sh build/release

fuzz:
	scripts/install_packages.sh test
	FUZZ_SECONDS=$(or $(SECONDS),60) scripts/fuzz.sh

format:
	find base proto collector symcache converter forwarder pipeline tests -name '*.[ch]' -print0 | xargs -0 clang-format-14 -i
