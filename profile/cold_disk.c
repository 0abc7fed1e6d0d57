/* A small disk of our own for copies of images, and laying them over files.
 *
 * The disk is a file without a name (O_TMPFILE), made ext4 by mkfs, on a loop
 * device.  Nothing of it has a place in anybody's file tree: the file system is
 * mounted by fsmount(2), which gives a descriptor and needs no folder.  When the last
 * descriptor and the last process of the mount namespace are gone, the kernel takes
 * the mount, the device and the file away, also after SIGKILL.
 *
 * Laying a copy over a file needs a mount of that copy alone (OPEN_TREE_CLONE), which
 * older kernels make only of what is mounted in the caller's namespace (up to Linux
 * 6.14).  So the disk is mounted over the place's folder for the moment of that call:
 * in this namespace there is nobody yet who could see it.
 *
 * Rejected: a symbolic link in place of the user's file (a kill would leave it);
 * a copy of the program's folder (its name is part of what programs do).
 */
#include "cold_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OVERHEAD_BYTES = 8 << 20, COPY_BYTES = 1 << 20 };

static enum status fail(struct diag *diag, int err, const char *what)
{
	return diag_fail_errno(diag, STATUS_COMMAND, err, "no disk of our own: cannot %s",
			       what);
}

/* ---- the file behind the disk ---- */

static int open_nameless(const char *folder)
{
	char path[4096];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	snprintf(path, sizeof(path), "%s/appulse-disk-XXXXXX", folder);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

/* Runs mkfs.ext4 on the file; its exit code, or -1 when it cannot be started. */
static int run_mkfs(int backing)
{
	static const char *const programs[] = {"mkfs.ext4", "/sbin/mkfs.ext4",
					       "/usr/sbin/mkfs.ext4"};
	posix_spawn_file_actions_t actions;
	char path[64];
	char *words[] = {"mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-N", "64", "-O",
			 "^has_journal", "-E", "nodiscard,lazy_itable_init=0", path, NULL};
	pid_t pid = 0;
	int err = ENOENT, status = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), backing);
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -1;
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs) && err == ENOENT; i++)
		err = posix_spawnp(&pid, programs[i], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (err) {
		errno = err;
		return -1;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static enum status make_backing(uint64_t bytes, int *ret_fd, struct diag *diag)
{
	const char *folder = getenv("TMPDIR");
	int fd = open_nameless(folder && folder[0] ? folder : "/tmp"), code;

	if (fd < 0)
		return fail(diag, errno, "make a temporary file");
	/* Holes: only what is copied takes room. */
	if (ftruncate(fd, (off_t)(bytes + bytes / 4 + OVERHEAD_BYTES)) != 0) {
		code = errno;
		close(fd);
		return fail(diag, code, "make a temporary file");
	}
	code = run_mkfs(fd);
	if (code != 0) {
		int err = errno;

		close(fd);
		return code < 0 ? fail(diag, err, "run 'mkfs.ext4'")
				: diag_fail(diag, STATUS_COMMAND,
					    "no disk of our own: 'mkfs.ext4' ended with exit "
					    "code %d", code);
	}
	*ret_fd = fd;
	return STATUS_OK;
}

/* ---- mounting ---- */

/* A mount of the device that is nowhere yet; a descriptor, or -1 with errno. */
static int mount_nowhere(const char *device)
{
	int context = fsopen("ext4", FSOPEN_CLOEXEC), mount = -1, err;

	if (context < 0)
		return -1;
	if (fsconfig(context, FSCONFIG_SET_STRING, "source", device, 0) == 0 &&
	    fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mount = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOATIME);
	err = errno;
	close(context);
	errno = err;
	return mount;
}

static enum status enter_namespace(struct diag *diag)
{
	if (unshare(CLONE_NEWNS) != 0)
		return fail(diag, errno, "enter a mount namespace of our own");
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return fail(diag, errno, "make the mount namespace private");
	return STATUS_OK;
}

enum status cold_disk_open(struct cold_disk *disk, uint64_t bytes, unsigned read_ahead_kib,
			   struct diag *diag)
{
	int backing = -1;
	enum status status;

	*disk = (struct cold_disk){.loop.fd = -1, .root = -1};
	if (geteuid() != 0)
		return diag_fail(diag, STATUS_COMMAND,
				 "no disk of our own: only root can mount one");
	status = make_backing(bytes, &backing, diag);
	if (status == STATUS_OK)
		status = loop_device_open(&disk->loop, backing, read_ahead_kib, diag);
	if (backing >= 0)
		close(backing);
	if (status == STATUS_OK) {
		disk->root = mount_nowhere(disk->loop.path);
		if (disk->root < 0)
			status = fail(diag, errno, "mount it");
	}
	if (status == STATUS_OK)
		status = enter_namespace(diag);
	if (status != STATUS_OK)
		cold_disk_close(disk);
	return status;
}

void cold_disk_close(struct cold_disk *disk)
{
	if (disk->root >= 0)
		close(disk->root);
	disk->root = -1;
	loop_device_close(&disk->loop);
}

/* ---- copies ---- */

static enum status copy_bytes(int from, int to, const char *path, struct diag *diag)
{
	ssize_t n;

	do {
		n = copy_file_range(from, NULL, to, NULL, COPY_BYTES, 0);
	} while (n > 0);
	/* Across file systems that cannot (copy_file_range(2), EXDEV). */
	if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP)) {
		static const size_t size = COPY_BYTES;
		char *buffer = malloc(size);

		if (!buffer)
			return diag_no_memory(diag);
		while ((n = read(from, buffer, size)) > 0)
			if (write(to, buffer, (size_t)n) != n) {
				n = -1;
				break;
			}
		free(buffer);
	}
	if (n < 0 || fsync(to) != 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot copy '%s'", path);
	return STATUS_OK;
}

enum status cold_disk_copy(struct cold_disk *disk, const char *path, uint32_t *ret_file,
			   int *ret_fd, struct diag *diag)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), to;
	char name[16];
	struct stat st;
	enum status status;

	if (from < 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot open '%s'", path);
	snprintf(name, sizeof(name), "%u", disk->files);
	to = openat(disk->root, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (to < 0) {
		status = diag_fail_errno(diag, STATUS_IO, errno, "cannot copy '%s'", path);
		close(from);
		return status;
	}
	status = copy_bytes(from, to, path, diag);
	if (status == STATUS_OK && fstat(from, &st) == 0 &&
	    (fchown(to, st.st_uid, st.st_gid) != 0 || fchmod(to, st.st_mode & 07777) != 0))
		status = diag_fail_errno(diag, STATUS_IO, errno, "cannot copy '%s'", path);
	close(from);
	if (status != STATUS_OK) {
		close(to);
		return status;
	}
	*ret_file = disk->files++;
	*ret_fd = to;
	return STATUS_OK;
}

/* ---- laying over ---- */

/* A mount of the copy alone, made while the disk is mounted over `folder`. */
static int clone_copy(struct cold_disk *disk, uint32_t file, const char *folder)
{
	int mount = mount_nowhere(disk->loop.path), clone = -1, err;
	char name[16];

	snprintf(name, sizeof(name), "%u", file);
	if (mount < 0)
		return -1;
	if (move_mount(mount, "", AT_FDCWD, folder, MOVE_MOUNT_F_EMPTY_PATH) == 0) {
		clone = open_tree(mount, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		err = errno;
		umount2(folder, MNT_DETACH);
		errno = err;
	}
	err = errno;
	close(mount);
	errno = err;
	return clone;
}

enum status cold_disk_lay(struct cold_disk *disk, uint32_t file, const char *place,
			  struct diag *diag)
{
	char *full = realpath(place, NULL), *slash;
	int clone = -1, err;

	if (!full)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot find '%s'", place);
	slash = strrchr(full, '/');
	if (slash == full) {
		free(full);
		return diag_fail(diag, STATUS_COMMAND,
				 "cannot lay a copy over '%s': it lies in the root folder",
				 place);
	}
	*slash = '\0';
	clone = clone_copy(disk, file, full);
	err = errno;
	*slash = '/';
	if (clone >= 0 &&
	    move_mount(clone, "", AT_FDCWD, full, MOVE_MOUNT_F_EMPTY_PATH) == 0)
		err = 0;
	else if (clone >= 0)
		err = errno;
	if (clone >= 0)
		close(clone);
	free(full);
	return err ? diag_fail_errno(diag, STATUS_COMMAND, err,
				     "cannot lay a copy over '%s'", place)
		   : STATUS_OK;
}

void cold_disk_lift(const char *place)
{
	char *full = realpath(place, NULL);

	if (full)
		umount2(full, MNT_DETACH);
	free(full);
}
