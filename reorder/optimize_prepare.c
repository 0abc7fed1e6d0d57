/* Before the first run of `appulse optimize`, and after the last. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/swap_tell.h"
#include "optimize.h"

enum { MAX_OPEN_FOLDERS = 16 };

char *path_join(const char *folder, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/* ---- the images ---- */

/* The folder of an absolute path; it is the caller's to free. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* A killed run may have left no file under the image's own name (swap.c tells when). */
static void restore_missing(struct tool *tool, const char *image)
{
	char *copy = strdup(image), *slash = copy ? strrchr(copy, '/') : NULL;
	struct swap_folder folder;

	if (slash)
		*slash = '\0';
	if (copy) {
		(void)swap_folder_open(&folder, slash ? copy : ".", SWAP_WAIT,
				       swap_tell, tool, NULL);
		swap_folder_close(&folder);
	}
	free(copy);
}

static enum status find_image(struct optimize *o, const char *given, char **ret_path,
			      struct diag *diag)
{
	struct stat st;

	*ret_path = realpath(given, NULL);
	if (!*ret_path && errno == ENOENT) {
		restore_missing(o->tool, given);
		*ret_path = realpath(given, NULL);
	}
	if (!*ret_path || stat(*ret_path, &st) != 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot open '%s'", given);
	if (!S_ISREG(st.st_mode))
		return diag_fail(diag, STATUS_IO, "'%s' is not a regular file", given);
	return STATUS_OK;
}

/* All outputs share a folder, so names must differ. */
static enum status check_distinct(const struct optimize *o, uint32_t index,
				  struct diag *diag)
{
	const struct subject *s = &o->subjects[index];

	for (uint32_t i = 0; i < index; i++) {
		const struct subject *other = &o->subjects[i];

		if (strcmp(other->path, s->path) == 0)
			return diag_fail(diag, STATUS_USAGE,
					 "'%s' and '%s' are the same image", other->given,
					 s->given);
		if (strcasecmp(other->name, s->name) == 0)
			return diag_fail(
				diag, STATUS_USAGE,
				"two images are called '%s', optimize them one by one",
				s->name);
	}
	return STATUS_OK;
}

static enum status find_images(struct optimize *o, struct diag *diag)
{
	const struct string_list *images = &o->options->images;

	o->subjects = calloc(images->len, sizeof(*o->subjects));
	o->folders = calloc(images->len, sizeof(*o->folders));
	if (!o->subjects || !o->folders)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < images->len; i++) {
		struct subject *s = &o->subjects[i];
		enum status status;

		s->given = images->data[i];
		s->name = basename(s->given);
		s->figures.code_pages = s->figures.pages_before = s->figures.pages_after =
			UNKNOWN_COUNT;
		o->subject_count++;
		status = find_image(o, s->given, &s->path, diag);
		if (status == STATUS_OK)
			status = check_distinct(o, i, diag);
		if (status != STATUS_OK)
			return status;
	}
	return STATUS_OK;
}

/* ---- their folders ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum status open_folder(struct optimize *o, const char *path, struct diag *diag)
{
	struct swap_folder *folder = &o->folders[o->folder_count++];
	enum status status =
		swap_folder_open(folder, path, SWAP_WAIT, swap_tell, o->tool, diag);

	/* Better said now than after the first run. */
	if (status == STATUS_OK && access(path, W_OK) != 0)
		return diag_fail_errno(
			diag, STATUS_IO, errno,
			"cannot swap images in '%s', let COMMAND run a copy of "
			"the program's folder",
			path);
	return status;
}

/* Opens each folder once, sorted: two runs cannot wait for each other. */
static enum status open_folders(struct optimize *o, struct diag *diag)
{
	char **paths = calloc(o->subject_count, sizeof(*paths));
	enum status status = paths ? STATUS_OK : diag_no_memory(diag);

	for (uint32_t i = 0; status == STATUS_OK && i < o->subject_count; i++) {
		paths[i] = folder_of(o->subjects[i].path);
		if (!paths[i])
			status = diag_no_memory(diag);
	}
	if (status == STATUS_OK)
		qsort(paths, o->subject_count, sizeof(*paths), by_text);
	for (uint32_t i = 0; status == STATUS_OK && i < o->subject_count; i++)
		if (i == 0 || strcmp(paths[i], paths[i - 1]) != 0)
			status = open_folder(o, paths[i], diag);
	for (uint32_t i = 0; paths && i < o->subject_count; i++)
		free(paths[i]);
	free(paths);
	return status;
}

/* Notes where each image's folder is. */
static enum status find_folders(struct optimize *o, struct diag *diag)
{
	for (uint32_t i = 0; i < o->subject_count; i++) {
		struct subject *s = &o->subjects[i];
		char *folder = folder_of(s->path);

		if (!folder)
			return diag_no_memory(diag);
		while (strcmp(o->folders[s->folder].path, folder) != 0)
			s->folder++;
		free(folder);
	}
	return STATUS_OK;
}

/* ---- the output folder ---- */

static int remove_entry(const char *path, const struct stat *st, int type,
			struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static void remove_tree(const char *path)
{
	(void)nftw(path, remove_entry, MAX_OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

static enum status open_output(struct optimize *o, struct diag *diag)
{
	const char *given = o->options->output ? o->options->output : OPTIMIZE_FOLDER;
	char *path;
	enum status status;

	o->made_output = mkdir(given, 0777) == 0;
	if (!o->made_output && errno != EEXIST)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot make folder '%s'",
				       given);
	path = realpath(given, NULL);
	if (!path)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot open '%s'", given);
	for (uint32_t i = 0; i < o->folder_count; i++)
		if (strcmp(o->folders[i].path, path) == 0) {
			free(path);
			return diag_fail(
				diag, STATUS_USAGE,
				"the output folder '%s' is that of an image, say another "
				"with --output",
				given);
		}
	status =
		swap_folder_open(&o->output, path, SWAP_BUSY, swap_tell, o->tool, diag);
	free(path);
	return status;
}

/* The folder is locked, so these are of runs that were killed. */
static void remove_leftovers(const struct optimize *o)
{
	DIR *dir = opendir(o->output.path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char *path;

		if (strncmp(entry->d_name, OPTIMIZE_WORK, strlen(OPTIMIZE_WORK)) != 0)
			continue;
		path = path_join(o->output.path, entry->d_name);
		if (path)
			remove_tree(path);
		free(path);
	}
	if (dir)
		closedir(dir);
}

/* A new name each time: what a killed run left running may write into its own. */
static enum status open_work(struct optimize *o, struct diag *diag)
{
	char *path = path_join(o->output.path, OPTIMIZE_WORK "XXXXXX");

	if (!path)
		return diag_no_memory(diag);
	if (!mkdtemp(path)) {
		enum status status = diag_fail_errno(
			diag, STATUS_IO, errno, "cannot write in '%s'", o->output.path);

		free(path);
		return status;
	}
	o->work = path;
	return STATUS_OK;
}

static enum status check_absent(const struct optimize *o, const char *path,
				struct diag *diag)
{
	struct stat st;

	if (!o->options->force && lstat(path, &st) == 0)
		return diag_fail(diag, STATUS_EXISTS,
				 "output '%s' exists, use --force to replace it", path);
	return STATUS_OK;
}

/* The paths that belong to the images, as the user writes them. */
static enum status name_outputs(struct optimize *o, const char *output, struct diag *diag)
{
	for (uint32_t i = 0; i < o->subject_count; i++) {
		struct subject *s = &o->subjects[i];
		enum status status;

		if (asprintf(&s->instrumented, "%s/instrumented/%s", o->work, s->name) <
			    0 ||
		    asprintf(&s->relinked, "%s/relinked/%s", o->work, s->name) < 0 ||
		    asprintf(&s->relinked_map, "%s.map.json", s->relinked) < 0 ||
		    asprintf(&s->output, "%s/%s", output, s->name) < 0 ||
		    asprintf(&s->output_map, "%s.map.json", s->output) < 0)
			return diag_no_memory(diag);
		status = check_absent(o, s->output, diag);
		if (status == STATUS_OK)
			status = check_absent(o, s->output_map, diag);
		if (status != STATUS_OK)
			return status;
	}
	if (o->options->database) {
		o->database = strdup(o->options->database);
		return o->database ? STATUS_OK : diag_no_memory(diag);
	}
	o->database = path_join(o->work, OPTIMIZE_DATABASE);
	o->database_output = path_join(output, OPTIMIZE_DATABASE);
	if (!o->database || !o->database_output)
		return diag_no_memory(diag);
	return check_absent(o, o->database_output, diag);
}

static enum status make_work_folder(const struct optimize *o, const char *name,
				    struct diag *diag)
{
	char *path = path_join(o->work, name);
	enum status status = STATUS_OK;

	if (!path)
		return diag_no_memory(diag);
	if (mkdir(path, 0777) != 0)
		status = diag_fail_errno(diag, STATUS_IO, errno, "cannot make folder '%s'",
					 path);
	free(path);
	return status;
}

static enum status make_work(struct optimize *o, struct diag *diag)
{
	static const char *const folders[] = {"instrumented", "relinked"};
	enum status status = STATUS_OK;

	o->stdout_before = path_join(o->work, "stdout-before");
	o->stdout_now = path_join(o->work, "stdout-now");
	if (!o->stdout_before || !o->stdout_now)
		return diag_no_memory(diag);
	for (unsigned i = 0; i < 2 && status == STATUS_OK; i++)
		status = make_work_folder(o, folders[i], diag);
	return status;
}

enum status optimize_prepare(struct optimize *o, struct diag *diag)
{
	const char *output = o->options->output ? o->options->output : OPTIMIZE_FOLDER;
	enum status status = find_images(o, diag);

	if (status == STATUS_OK)
		status = optimize_check_pins(o, diag);
	if (status == STATUS_OK)
		status = open_folders(o, diag);
	if (status == STATUS_OK)
		status = find_folders(o, diag);
	if (status == STATUS_OK)
		status = open_output(o, diag);
	if (status != STATUS_OK)
		return status;
	remove_leftovers(o);
	status = open_work(o, diag);
	if (status == STATUS_OK)
		status = name_outputs(o, output, diag);
	if (status == STATUS_OK)
		status = make_work(o, diag);
	if (status == STATUS_OK)
		status = subtools_begin(&o->subtools, o->tool, o->work, diag);
	return status;
}

/* ---- the end ---- */

static enum status move_out(const char *from, const char *to, struct diag *diag)
{
	if (rename(from, to) != 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot write '%s'", to);
	return STATUS_OK;
}

/* SQLite would read a log that stands beside a database as a part of it. */
static void remove_old_log(const char *database)
{
	static const char *const suffixes[] = {"-wal", "-shm", "-journal"};

	for (unsigned i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		char *path;

		if (asprintf(&path, "%s%s", database, suffixes[i]) < 0)
			continue;
		unlink(path);
		free(path);
	}
}

/* Each image comes after its map: who sees it finds that too. */
enum status optimize_publish(struct optimize *o, struct diag *diag)
{
	enum status status = STATUS_OK;

	if (o->database_output) {
		remove_old_log(o->database_output);
		status = move_out(o->database, o->database_output, diag);
	}
	for (uint32_t i = 0; i < o->subject_count && status == STATUS_OK; i++) {
		const struct subject *s = &o->subjects[i];

		status = move_out(s->relinked_map, s->output_map, diag);
		if (status == STATUS_OK)
			status = move_out(s->relinked, s->output, diag);
	}
	return status;
}

static void subject_release(struct subject *s)
{
	free(s->path);
	free(s->instrumented);
	free(s->relinked);
	free(s->relinked_map);
	free(s->output);
	free(s->output_map);
	json_decref(s->pins);
}

enum status optimize_release(struct optimize *o, struct diag *diag)
{
	enum status first = STATUS_OK;

	for (uint32_t i = 0; i < o->folder_count; i++) {
		enum status status =
			swap_out(&o->folders[i], first == STATUS_OK ? diag : NULL);

		if (first == STATUS_OK)
			first = status;
	}
	if (o->work)
		remove_tree(o->work);
	if (o->made_output)
		(void)rmdir(o->output.path ? o->output.path
					   : ""); /* fails when not empty */
	subtools_end(&o->subtools);
	for (uint32_t i = 0; i < o->folder_count; i++)
		swap_folder_close(&o->folders[i]);
	swap_folder_close(&o->output);
	for (uint32_t i = 0; i < o->subject_count; i++)
		subject_release(&o->subjects[i]);
	free(o->subjects);
	free(o->folders);
	free(o->work);
	free(o->agent);
	free(o->database);
	free(o->database_output);
	free(o->stdout_before);
	free(o->stdout_now);
	return first;
}
