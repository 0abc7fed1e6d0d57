#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum status mapped_file_open(struct mapped_file *file, const char *path, struct diag *diag)
{
	struct stat st;
	enum status status = STATUS_OK;
	int fd;

	memset(file, 0, sizeof(*file));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot open '%s'", path);
	if (fstat(fd, &st) != 0) {
		status = diag_fail_errno(diag, STATUS_IO, errno, "cannot read '%s'", path);
	} else if (!S_ISREG(st.st_mode)) {
		status = diag_fail(diag, STATUS_IO, "'%s' is not a regular file", path);
	} else if (st.st_size > 0) {
		void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

		if (map == MAP_FAILED)
			status = diag_fail_errno(diag, STATUS_IO, errno,
						 "cannot map '%s'", path);
		else
			*file = (struct mapped_file){map, (size_t)st.st_size};
	}
	close(fd);
	return status;
}

void mapped_file_close(struct mapped_file *file)
{
	if (file->data)
		munmap((void *)file->data, file->size);
	memset(file, 0, sizeof(*file));
}

void mapped_file_forget(const struct mapped_file *file, size_t begin, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), end;

	if (!file->data || begin >= file->size)
		return;
	end = size < file->size - begin ? begin + size : file->size;
	begin = (begin + page - 1) / page * page;
	end = end == file->size ? end : end / page * page;
	/* A request that is denied costs nothing but memory. */
	if (begin < end)
		madvise((void *)(file->data + begin), end - begin, MADV_DONTNEED);
}

/* The folder that holds what `path` names. */
static bool stat_folder(const char *path, struct stat *ret_folder)
{
	size_t length = (size_t)(basename(path) - path);
	char *folder = length ? strndup(path, length) : strdup(".");
	bool ok = folder && stat(folder, ret_folder) == 0;

	free(folder);
	return ok;
}

bool paths_meet(const char *a, const char *b)
{
	struct stat x, y;

	if (!a || !b)
		return false;
	if (strcmp(a, b) == 0)
		return true;
	if (stat(a, &x) == 0 && stat(b, &y) == 0)
		return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
	return strcmp(basename(a), basename(b)) == 0 && stat_folder(a, &x) &&
	       stat_folder(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

enum status output_file_open(struct output_file *out, const char *path, bool force,
			     struct diag *diag)
{
	size_t size = strlen(path) + sizeof(".XXXXXX");
	struct stat st;

	*out = (struct output_file){.fd = -1, .force = force};
	if (!force && access(path, F_OK) == 0)
		return diag_fail(diag, STATUS_EXISTS,
				 "output '%s' exists, use --force to replace it", path);
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return diag_fail(diag, STATUS_IO,
				 "cannot replace '%s': it is no regular file", path);
	out->path = strdup(path);
	out->temporary = malloc(size);
	if (!out->path || !out->temporary) {
		free(out->temporary);
		out->temporary = NULL;
		output_file_discard(out);
		return diag_no_memory(diag);
	}
	snprintf(out->temporary, size, "%s.XXXXXX", path);
	out->fd = mkostemp(out->temporary, O_CLOEXEC);
	if (out->fd < 0) {
		int err = errno;

		free(out->temporary);
		out->temporary = NULL;
		output_file_discard(out);
		return diag_fail_errno(diag, STATUS_IO, err, "cannot write '%s'", path);
	}
	return STATUS_OK;
}

enum status output_file_write(struct output_file *out, const void *data, size_t size,
			      struct diag *diag)
{
	const uint8_t *p = data;

	while (size > 0) {
		ssize_t n = write(out->fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return diag_fail_errno(diag, STATUS_IO, errno,
					       "cannot write '%s'", out->path);
		p += n;
		size -= (size_t)n;
	}
	return STATUS_OK;
}

/* The mode that a file made by open(2) would have. */
static mode_t default_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

/* Puts the temporary file in the target's place. */
static int put_in_place(const struct output_file *out)
{
	if (out->force)
		return rename(out->temporary, out->path);
	/* link(2) fails when the target has appeared meanwhile. */
	if (link(out->temporary, out->path) == 0)
		return unlink(out->temporary);
	if (errno == EEXIST)
		return -1;
	return rename(out->temporary, out->path); /* a file system without links */
}

enum status output_file_commit(struct output_file *out, unsigned mode, struct diag *diag)
{
	enum status status = STATUS_OK;
	int failed;

	failed = fchmod(out->fd, mode ? (mode_t)mode : default_mode()) != 0 ||
		 fsync(out->fd) != 0;
	if (close(out->fd) != 0)
		failed = 1;
	out->fd = -1;
	if (failed || put_in_place(out) != 0)
		status = diag_fail_errno(diag, errno == EEXIST ? STATUS_EXISTS : STATUS_IO,
					 errno, "cannot write '%s'", out->path);
	else {
		free(out->temporary);
		out->temporary = NULL;
	}
	output_file_discard(out);
	return status;
}

void output_file_discard(struct output_file *out)
{
	if (out->fd >= 0)
		close(out->fd);
	if (out->temporary)
		unlink(out->temporary);
	free(out->temporary);
	free(out->path);
	*out = (struct output_file){.fd = -1};
}

enum status file_write(const char *path, const void *data, size_t size, bool force,
		       struct diag *diag)
{
	struct output_file out;
	enum status status = output_file_open(&out, path, force, diag);

	if (status == STATUS_OK)
		status = output_file_write(&out, data, size, diag);
	if (status == STATUS_OK)
		return output_file_commit(&out, 0, diag);
	output_file_discard(&out);
	return status;
}
