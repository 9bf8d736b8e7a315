# SPDX-License-Identifier: Apache-2.0
"""Programs without frame pointers that are hard to unwind, and how they are built."""
from support_live import *

# Deep recursion, and our code called back by the C library's.
RECURSION_C = r"""
#include <stdlib.h>
#define WORK __attribute__((noinline, noclone)) static
volatile unsigned sink;
/* The volatile local makes even a leaf have a frame, where frames have pointers. */
WORK unsigned leaf(unsigned n) { volatile unsigned s = n; for (unsigned i = 0; i < 500; i++) s = s * 31 + i; sink += s; return s; }
WORK unsigned deep(unsigned n) { unsigned r = n ? deep(n - 1) + 1 : leaf(n); sink += r; return r + leaf(n); }
WORK int compare(const void *a, const void *b)
{
	unsigned x = leaf(*(const unsigned *)a) % 7, y = leaf(*(const unsigned *)b) % 7;
	return (int)x - (int)y;
}
WORK void sort(unsigned n)
{
	unsigned values[64];
	for (unsigned i = 0; i < 64; i++)
		values[i] = i * n;
	qsort(values, 64, sizeof(unsigned), compare);
	sink += values[5];
}
int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 250;
	for (unsigned i = 0; i < rounds; i++) {
		sort(i);
		for (unsigned j = 0; j < 8; j++)
			deep(argc > 2 ? (unsigned)atoi(argv[2]) : 30);
	}
	return 0;
}
"""

# Exceptions through 40 frames with destructors, and templates of the standard library.
EXCEPTION_CC = r"""
#include <algorithm>
#include <stdexcept>
#include <vector>
volatile unsigned sink;
struct guard { ~guard() { for (unsigned i = 0; i < 300; i++) sink = sink + i; } };
template<int N> struct deep {
	__attribute__((noinline)) static unsigned go(unsigned x)
	{
		guard g;
		std::vector<unsigned> v(64);
		for (auto &e : v)
			e = x *= 2654435761u;
		std::sort(v.begin(), v.end());
		return deep<N - 1>::go(v[3]) + N;
	}
};
template<> struct deep<0> {
	__attribute__((noinline)) static unsigned go(unsigned x)
	{
		if (x % 3 == 0)
			throw std::runtime_error("third");
		return x;
	}
};
int main()
{
	for (unsigned i = 0; i < 4000; i++) {
		try {
			sink = sink + deep<40>::go(i);
		} catch (const std::exception &e) {
			sink = sink + (unsigned)e.what()[0];
		}
	}
}
"""

# Stacks that are realigned (the CFA lies in a register or in memory) or grow while a function runs.
REALIGNED_C = r"""
#include <alloca.h>
#include <string.h>
#define WORK __attribute__((noinline, noclone)) static
volatile unsigned sink;
typedef double vector __attribute__((vector_size(64)));
WORK void burn(volatile char *p, unsigned n) { for (unsigned i = 0; i < 2000; i++) p[i % n] += (char)i; }
WORK void grow(unsigned n)
{
	char *p = alloca(n * 16 + 16);
	memset(p, (int)n, n * 16 + 16);
	burn(p, n * 16 + 16);
	sink += (unsigned)p[3];
}
WORK void align(unsigned n)
{
	vector x[4] __attribute__((aligned(64)));
	memset(&x, 0, sizeof(x));
	burn((char *)x, sizeof(x));
	grow(n);
	sink += (unsigned)x[0][0];
	if (n > 1)
		align(n - 1);
	burn((char *)x, sizeof(x));
}
int main(void)
{
	for (int i = 0; i < 4000; i++)
		align(8);
	return 0;
}
"""

# Handlers that interrupt anything, on the same stack or with an argument on one of their own, and longjmp.
SIGNAL_C = r"""
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#define WORK __attribute__((noinline, noclone)) static
volatile unsigned sink;
static jmp_buf env;
WORK void burn(unsigned n) { for (unsigned i = 0; i < n; i++) sink += i; }
WORK void in_handler(int d) { if (d) in_handler(d - 1); burn(300000); sink++; }
static void handler(int s) { (void)s; in_handler(3); sink++; }
WORK void jump(int d) { if (!d) longjmp(env, 1); burn(5000); jump(d - 1); sink++; }
WORK void work(int d)
{
	if (d)
		work(d - 1);
	else if (!setjmp(env))
		jump(10);
	burn(20000);
	sink++;
}
int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
		sigaltstack(&stack, 0);
	}
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | (argc > 1 ? SA_ONSTACK : 0)};
	sigaction(SIGALRM, &action, 0);
	struct itimerval often = {{0, 4000}, {0, 4000}};
	setitimer(ITIMER_REAL, &often, 0);
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		work(12);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - begin.tv_sec < 2);
	return 0;
}
"""

THREADS_C = r"""
#include <pthread.h>
volatile unsigned sink;
__attribute__((noinline)) static void burn(unsigned n) { for (unsigned i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) static void recurse(int d) { if (d) recurse(d - 1); burn(20000); sink++; }
static void *go(void *p) { for (int i = 0; i < 150; i++) recurse(20); return p; }
int main(void)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], 0, go, 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], 0);
	return 0;
}
"""

GO = r"""
package main

import (
	"fmt"
	"sort"
	"strings"
	"sync"
)

func recurse(n int) int {
	if n == 0 {
		return len(strings.Repeat("ab", 100))
	}
	x := make([]int, 50)
	for i := range x {
		x[i] = (i*7919 + n) % 101
	}
	sort.Ints(x)
	return recurse(n-1) + x[3]
}

func main() {
	var group sync.WaitGroup
	for g := 0; g < 4; g++ {
		group.Add(1)
		go func() {
			defer group.Done()
			s := 0
			for i := 0; i < 6000; i++ {
				s += recurse(20)
			}
			fmt.Println(s)
		}()
	}
	group.Wait()
}
"""

RUST = r"""
use std::collections::HashMap;
fn recurse(n: u32, m: &mut HashMap<u32, String>) -> usize {
    if n == 0 {
        return m.len();
    }
    let mut v: Vec<u32> = (0..60u32).map(|x| x.wrapping_mul(2654435761u32.wrapping_mul(n)) % 1009).collect();
    v.sort();
    m.insert(v[7] % 50, format!("{:?}", v));
    recurse(n - 1, m) + v[1] as usize
}
fn main() {
    let mut total = 0;
    for i in 0..1500 {
        let mut m = HashMap::new();
        total += recurse(20 + i % 3, &mut m);
    }
    println!("{}", total);
}
"""

# Code made at run time, with a frame pointer, between two functions without.
JIT_C = r"""
#include <string.h>
#include <sys/mman.h>
#define WORK __attribute__((noinline, noclone)) static
volatile unsigned sink;
WORK void burn(void) { for (unsigned i = 0; i < 20000; i++) sink += i; }
int main(void)
{
	/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
	void *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, code, sizeof(code));
	for (int i = 0; i < 30000; i++)
		((void (*)(void (*)(void)))page)(burn);
	return 0;
}
"""

# The last thing that caller() does is a call that never returns: its return address is the next function's first byte.
NORETURN_C = r"""
#include <stdlib.h>
#define WORK __attribute__((noinline))
volatile unsigned sink;
WORK __attribute__((noreturn)) void spin(void) { for (unsigned i = 0; i < 300000000; i++) sink += i; exit(0); }
WORK void caller(int n) { sink += n; spin(); }
WORK void innocent(int n) { sink += n; }
int main(int argc, char **argv) { (void)argv; if (argc > 9) innocent(argc); caller(argc); }
"""

OPTIMIZED = ("-O2", "-fomit-frame-pointer", "-w")


def build(name, source, *flags, compiler="gcc", suffix=".c"):
    """A program of ours; Skip when this host has not what it takes."""
    need(compiler.split()[0])
    there = folder()
    text, path = os.path.join(there, name + suffix), os.path.join(there, name)
    with open(text, "w") as out:
        out.write(source)
    done = subprocess.run([*compiler.split(), *flags, "-o", path, text], capture_output=True, text=True, cwd=there,
                          env=dict(os.environ, GOFLAGS="-mod=mod", GO111MODULE="off", GOCACHE=os.path.join(there, "go")))
    if done.returncode:
        raise Skip("%s: %s" % (name, done.stderr.strip()[-200:]))
    return path


def summary(messages):
    """What -v says of unwinding: {"unwound": n, reason: n}."""
    found = {reason: int(n) for n, reason in re.findall(r"^perfpipe: (\d+) ended: (.*)$", messages, re.M)}
    unwound = re.search(r"(\d+) user stacks unwound", messages)
    return dict(found, unwound=int(unwound.group(1)) if unwound else 0)


def record(path, *words, hz=1999, stack=None, check=0):
    """perfpipe record -g dwarf into path; the recording and what -v said."""
    how = "dwarf" + (",%s" % stack if stack else "")
    done = run("record", "-v", "-g", how, "-F", str(hz), "-o", path, *words, check=check)
    return Recording(path), summary(done.stderr)


def paths(recording, names):
    """{call path, leaf first, of the functions in names alone: share of samples}"""
    found, total = {}, 0
    for frames, values, _ in recording.stacks:
        path = tuple(f.name for f in frames if f.name in names)
        if path:
            found[path] = found.get(path, 0) + values[0]
            total += values[0]
    return {path: n / total for path, n in found.items()}
