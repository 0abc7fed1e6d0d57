/* The Wine server that a command of ours would use.
 *
 * Wine's server opens the files of all programs of a prefix (observed: Wine 8.0), so
 * a server that is there already decides what a program finds under a name, not the
 * mount namespace of the program.  It is found by the lock that it holds in its
 * folder, server-DEVICE-INODE, which is named after the prefix.  That folder is in
 * /tmp/.wine-UID; Debian's Wine has it in /run/user/UID/wine, or where that is missing
 * in a temporary folder, whose name it writes into the prefix (observed: Wine 8.0,
 * Debian 8.0~repack-4).
 */
#include "wine_server.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { POLL_NS = 50000000, POLLS_PER_SECOND = 20, PATH_BYTES = 4096 };

static const char *or_else(const char *variable, const char *otherwise)
{
	const char *value = getenv(variable);

	return value && value[0] ? value : otherwise;
}

/* Who holds the lock of the server whose folder is in `parent`; 0: nobody. */
static int lock_holder(const char *parent, const struct stat *prefix)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	char path[PATH_BYTES + 64];
	int fd, pid = 0;

	snprintf(path, sizeof(path), "%s/server-%lx-%lx/lock", parent,
		 (unsigned long)prefix->st_dev, (unsigned long)prefix->st_ino);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
		pid = (int)lock.l_pid;
	close(fd);
	return pid;
}

/* Debian's temporary folder, as its name in the prefix says; "" when there is none. */
static void temporary_folder(const char *prefix, char ret_path[PATH_BYTES])
{
	char name[64] = "", path[PATH_BYTES];
	ssize_t n;
	int fd;

	ret_path[0] = '\0';
	snprintf(path, sizeof(path), "%s/wineserver", prefix);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, name, sizeof(name) - 1);
	close(fd);
	if (n > 0 && !strchr(name, '/'))
		snprintf(ret_path, PATH_BYTES, "%s/%.63s", or_else("TMPDIR", "/tmp"), name);
}

int wine_server_pid(void)
{
	char prefix[PATH_BYTES / 2], parent[PATH_BYTES];
	struct stat st;
	int pid;

	if (getenv("WINEPREFIX") && getenv("WINEPREFIX")[0])
		snprintf(prefix, sizeof(prefix), "%s", getenv("WINEPREFIX"));
	else
		snprintf(prefix, sizeof(prefix), "%s/.wine", or_else("HOME", ""));
	if (stat(prefix, &st) != 0)
		return 0;
	snprintf(parent, sizeof(parent), "/tmp/.wine-%u", (unsigned)getuid());
	pid = lock_holder(parent, &st);
	if (!pid) {
		snprintf(parent, sizeof(parent), "/run/user/%u/wine", (unsigned)getuid());
		pid = lock_holder(parent, &st);
	}
	if (!pid) {
		temporary_folder(prefix, parent);
		pid = parent[0] ? lock_holder(parent, &st) : 0;
	}
	return pid;
}

int wine_server_wait(double seconds)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	int pid = wine_server_pid();

	for (int i = 0; pid && i < seconds * POLLS_PER_SECOND; i++) {
		nanosleep(&pause, NULL);
		pid = wine_server_pid();
	}
	return pid;
}
