/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/fetcher_jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symcache/confinement.h"

enum { MAX_DESCRIPTORS = 256 };
/* The client, TLS and a thread for each name that is looked up. */
#define MAX_MEMORY_BYTES ((uint64_t)1 << 30)

static const int denied_calls[] = {
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(process_madvise),
	SCMP_SYS(kcmp),
	SCMP_SYS(kill),
	SCMP_SYS(tkill),
	SCMP_SYS(pidfd_open),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(pidfd_send_signal),
	SCMP_SYS(rt_sigqueueinfo),
	SCMP_SYS(rt_tgsigqueueinfo),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(bpf),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register),
	SCMP_SYS(add_key),
	SCMP_SYS(request_key),
	SCMP_SYS(keyctl),
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(move_mount),
	SCMP_SYS(open_tree),
	SCMP_SYS(fsopen),
	SCMP_SYS(fspick),
	SCMP_SYS(fsmount),
	SCMP_SYS(mount_setattr),
	SCMP_SYS(unshare),
	SCMP_SYS(setns),
	SCMP_SYS(personality),
	SCMP_SYS(open_by_handle_at),
	SCMP_SYS(name_to_handle_at),
	SCMP_SYS(quotactl),
	SCMP_SYS(acct),
	SCMP_SYS(swapon),
	SCMP_SYS(swapoff),
	SCMP_SYS(reboot),
	SCMP_SYS(kexec_load),
	SCMP_SYS(kexec_file_load),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(delete_module),
	SCMP_SYS(syslog),
	SCMP_SYS(listen),
	SCMP_SYS(accept),
	SCMP_SYS(accept4),
};

static const int new_namespaces[] = {CLONE_NEWNS,  CLONE_NEWUSER,   CLONE_NEWPID, CLONE_NEWNET,
				     CLONE_NEWUTS, CLONE_NEWCGROUP, CLONE_NEWIPC};

static struct error *deny(scmp_filter_ctx filter)
{
	int result = 0;
	for (size_t i = 0; i < ARRAY_LEN(denied_calls) && result >= 0; i++)
		result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), denied_calls[i], 0);
	for (size_t i = 0; i < ARRAY_LEN(new_namespaces) && result >= 0; i++) {
		scmp_datum_t flag = (scmp_datum_t)new_namespaces[i];
		result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
					  SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
	}
	/* Its flags lie in memory, where a filter does not look; libc then uses clone. */
	if (result >= 0)
		result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	/* Unix (name services), IP, and netlink, by which getaddrinfo asks for addresses. */
	for (scmp_datum_t family = 0; family < AF_NETLINK && result >= 0; family++) {
		if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
			result =
				seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT),
						 SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, family));
	}
	if (result >= 0)
		result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
					  SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
	return result < 0 ? error_errno(-result, "seccomp rule") : NULL;
}

static struct error *load_filter(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	if (!filter)
		return error_new(ERROR_UNSUPPORTED, "seccomp_init failed");
	struct error *err = deny(filter);
	if (!err) {
		int result = seccomp_load(filter);
		if (result < 0)
			err = error_errno(-result, "seccomp filter");
	}
	seccomp_release(filter);
	return err;
}

struct error *fetcher_jail_enter(void)
{
	struct error *err = confinement_drop_rights();
	if (!err)
		err = confinement_set_limit(RLIMIT_NOFILE, MAX_DESCRIPTORS);
	return err ? err : load_filter();
}

/* What is there of it, below which a client of servers finds settings, libraries and names. */
static const char *const readable_folders[] = {
	"/etc", "/usr", "/lib", "/lib64", "/run", "/opt", "/nix/store", "/var/lib/ca-certificates",
};
static const char *const readable_files[] = {"/dev/null", "/dev/urandom", "/dev/random"};

#define READ_FILES   ((uint64_t)LANDLOCK_ACCESS_FS_READ_FILE)
#define READ_FOLDERS (READ_FILES | LANDLOCK_ACCESS_FS_READ_DIR)
#define WORK                                                                                       \
	(READ_FOLDERS | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |            \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                            \
	 LANDLOCK_ACCESS_FS_MAKE_REG)
/* All of the first version of Landlock, each version having what those before it had. */
#define ALL                                                                                        \
	(WORK | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |                        \
	 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |                             \
	 LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)

static struct error *allow_below(int rules, int fd, uint64_t access)
{
	const struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return error_errno(errno, "landlock rule");
	return NULL;
}

static struct error *allow_paths(int rules, const char *const *paths, size_t n, uint64_t access)
{
	struct error *err = NULL;
	for (size_t i = 0; i < n && !err; i++) {
		CLEANUP(cleanup_fd) int fd = open(paths[i], O_PATH | O_CLOEXEC);
		if (fd >= 0)
			err = allow_below(rules, fd, access);
	}
	return err;
}

static struct error *restrict_files(int folder)
{
	const struct landlock_ruleset_attr attr = {.handled_access_fs = ALL};
	CLEANUP(cleanup_fd)
	int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (rules < 0)
		return NULL; /* a kernel without: the user and the filter still hold */
	struct error *err =
		allow_paths(rules, readable_folders, ARRAY_LEN(readable_folders), READ_FOLDERS);
	if (!err)
		err = allow_paths(rules, readable_files, ARRAY_LEN(readable_files), READ_FILES);
	if (!err)
		err = allow_below(rules, folder, WORK);
	if (!err && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		err = error_errno(errno, "landlock");
	return err;
}

struct error *fetcher_jail_enter_worker(int folder, uint64_t max_file_bytes)
{
	/* More than the limit is then an error of write(2), which the client reports. */
	signal(SIGXFSZ, SIG_IGN);
	struct error *err = confinement_set_limit(RLIMIT_FSIZE, max_file_bytes);
	if (!err && !CONFINEMENT_IS_INSTRUMENTED)
		err = confinement_set_limit(RLIMIT_DATA, MAX_MEMORY_BYTES);
	return err ? err : restrict_files(folder);
}
