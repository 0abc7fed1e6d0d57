#include "cli/companion.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/version.h"

/* The folder of the running program, without a slash at its end. */
static enum status own_folder(char ret_folder[PATH_MAX], struct diag *diag)
{
	ssize_t n = readlink("/proc/self/exe", ret_folder, PATH_MAX - 1);
	char *slash;

	if (n < 0)
		return diag_fail_errno(diag, STATUS_IO, errno,
				       "cannot tell where this program stands");
	ret_folder[n] = 0;
	slash = strrchr(ret_folder, '/');
	if (slash)
		*slash = 0;
	return STATUS_OK;
}

/* FOLDER/SUBFOLDER/NAME on the heap when that file can be read, else NULL. */
static char *find_in(const char *folder, const char *subfolder, const char *name)
{
	char *path;

	/* An absolute libexec folder stands for itself. */
	if (asprintf(&path, "%s/%s/%s", subfolder[0] == '/' ? "" : folder, subfolder,
		     name) < 0)
		return NULL;
	if (access(path, R_OK) == 0)
		return path;
	free(path);
	return NULL;
}

enum status companion_find(const struct companion *companion, char **ret_path,
			   struct diag *diag)
{
	const char *given = getenv(companion->variable);
	const char *const subfolders[] = {companion->folder, APPULSE_LIBEXEC, "."};
	char folder[PATH_MAX];
	enum status status;

	if (given && given[0]) {
		char *copy;

		if (access(given, R_OK) != 0)
			return diag_fail(diag, STATUS_NOT_FOUND,
					 "cannot find '%s', which %s names", given,
					 companion->variable);
		copy = strdup(given);

		if (!copy)
			return diag_no_memory(diag);
		*ret_path = copy;
		return STATUS_OK;
	}
	status = own_folder(folder, diag);
	if (status != STATUS_OK)
		return status;
	for (size_t i = 0; i < sizeof(subfolders) / sizeof(subfolders[0]); i++) {
		char *path = find_in(folder, subfolders[i], companion->name);

		if (path) {
			*ret_path = path;
			return STATUS_OK;
		}
	}
	return diag_fail(diag, STATUS_NOT_FOUND,
			 "cannot find '%s' near '%s', set %s to its path", companion->name,
			 folder, companion->variable);
}
