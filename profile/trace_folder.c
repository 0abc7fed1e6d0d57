/* Folders of trace files.
 *
 * Where.  A run's folder stands beside the database and bears its name, so that
 * `import` finds what a killed collector left without being told, and a user sees
 * what it belongs to.  /tmp was rejected: it may be too small or be emptied at a
 * restart, and nobody would look there.
 *
 * The agent runs under Wine and needs the folder in a form that it understands.
 * Z: is not mapped in every prefix; \\?\unix\... always is (observed: Wine 8.0).
 */
#include "trace_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "trace/ingest.h"
#include "trace/trace_format.h"

enum { NOTE_VERSION = 1 };

#define LEFTOVER_MARK ".traces-"

/* "folder/name" on the heap, NULL when memory is out. */
static char *join(const char *folder, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/* ---- making ---- */

static enum status make_kept(const char *keep, char **ret_path, struct diag *diag)
{
	struct dirent **entries;
	int n;

	if (mkdir(keep, 0777) != 0 && errno != EEXIST)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot make folder '%s'",
				       keep);
	n = scandir(keep, &entries, NULL, NULL);
	if (n < 0)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot read folder '%s'",
				       keep);
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	if (n > 2)
		return diag_fail(diag, STATUS_EXISTS,
				 "folder '%s' is not empty, name a new one", keep);
	*ret_path = realpath(keep, NULL);
	return *ret_path ? STATUS_OK
			 : diag_fail_errno(diag, STATUS_IO, errno,
					   "cannot read folder '%s'", keep);
}

static enum status make_beside(const char *database, char **ret_path, struct diag *diag)
{
	char *name;
	enum status status = STATUS_OK;

	if (asprintf(&name, "%s" LEFTOVER_MARK "XXXXXX", database) < 0)
		return diag_no_memory(diag);
	if (!mkdtemp(name)) {
		status = diag_fail_errno(diag, STATUS_IO, errno,
					 "cannot make a folder for traces beside '%s'",
					 database);
	} else {
		*ret_path = realpath(name, NULL);
		if (!*ret_path) {
			rmdir(name);
			status = diag_no_memory(diag);
		}
	}
	free(name);
	return status;
}

/* A Unix path as Wine's programs can open it, on the heap. */
static char *wine_path(const char *path)
{
	char *value;

	if (asprintf(&value, "\\\\?\\unix%s", path) < 0)
		return NULL;
	for (char *p = value; *p; p++)
		if (*p == '/')
			*p = '\\';
	return value;
}

static enum status write_note(const struct trace_folder *folder, const struct db_run *run,
			      struct diag *diag)
{
	struct result note;
	char *path = join(folder->path, RUN_NOTE), *text = NULL;
	enum status status = STATUS_OK;

	result_init(&note);
	result_put_count(&note, note.root, "appulse_run", NOTE_VERSION);
	result_put_text(&note, note.root, "identity", run->identity);
	result_put_text(&note, note.root, "kind", db_run_kind_name(run->kind));
	result_put_text(&note, note.root, "scenario", run->scenario);
	result_put_real(&note, note.root, "weight", run->weight);
	result_put_text(&note, note.root, "command", run->command);
	result_put_text(&note, note.root, "host", run->host);
	result_put_count(&note, note.root, "started_ns", (uint64_t)run->started_ns);
	if (!note.failed)
		text = json_dumps(note.root, JSON_INDENT(2));
	if (!path || !text)
		status = diag_no_memory(diag);
	else
		status = file_write(path, text, strlen(text), false, diag);
	free(text);
	free(path);
	result_release(&note);
	return status;
}

/* Waits: an import may be looking whether the note is locked just now. */
static int lock_note(const char *folder)
{
	char *path = join(folder, RUN_NOTE);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	free(path);
	if (fd >= 0 && flock(fd, LOCK_EX) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

enum status trace_folder_make(const char *database, const char *keep,
			      const struct db_run *run, struct trace_folder *ret_folder,
			      struct diag *diag)
{
	struct trace_folder folder = {.lock = -1};
	enum status status = keep ? make_kept(keep, &folder.path, diag)
				  : make_beside(database, &folder.path, diag);

	if (status != STATUS_OK)
		return status;
	folder.value = wine_path(folder.path);
	status = folder.value ? write_note(&folder, run, diag) : diag_no_memory(diag);
	if (status == STATUS_OK) {
		folder.lock = lock_note(folder.path);
		*ret_folder = folder;
	} else {
		if (!keep)
			trace_folder_remove(&folder);
		trace_folder_release(&folder);
	}
	return status;
}

/* Whether the file is one of ours. */
static bool is_trace(const char *name)
{
	size_t length = strlen(name), suffix = strlen(TRACE_FILE_SUFFIX);

	return length > suffix && strcmp(name + length - suffix, TRACE_FILE_SUFFIX) == 0;
}

void trace_folder_remove(struct trace_folder *folder)
{
	struct path_list files = {0};
	char *note = join(folder->path, RUN_NOTE);

	if (trace_folder_files(folder->path, &files, NULL) == STATUS_OK)
		for (uint32_t i = 0; i < files.len; i++)
			unlink(files.data[i]);
	if (note)
		unlink(note);
	rmdir(folder->path);
	free(note);
	path_list_release(&files);
}

void trace_folder_release(struct trace_folder *folder)
{
	if (folder->lock >= 0)
		close(folder->lock);
	free(folder->path);
	free(folder->value);
	*folder = (struct trace_folder){.lock = -1};
}

/* ---- notes ---- */

static enum status read_note_members(struct run_note *note, const char *path,
				     struct diag *diag)
{
	json_t *json = note->json;
	const char *kind = json_string_value(json_object_get(json, "kind"));
	json_t *started = json_object_get(json, "started_ns");

	note->run.identity = json_string_value(json_object_get(json, "identity"));
	note->run.scenario = json_string_value(json_object_get(json, "scenario"));
	note->run.weight = json_number_value(json_object_get(json, "weight"));
	note->run.command = json_string_value(json_object_get(json, "command"));
	note->run.host = json_string_value(json_object_get(json, "host"));
	note->run.started_ns = json_integer_value(started);
	note->run.kind = DB_RUN_KIND_COUNT;
	for (unsigned i = 0; kind && i < DB_RUN_KIND_COUNT; i++)
		if (strcmp(kind, db_run_kind_name(i)) == 0)
			note->run.kind = i;
	if (json_integer_value(json_object_get(json, "appulse_run")) != NOTE_VERSION)
		return diag_fail(diag, STATUS_BAD_TRACE,
				 "'%s' is not a note of this version about a run", path);
	if (!note->run.identity || !note->run.identity[0] || !json_is_integer(started) ||
	    note->run.kind == DB_RUN_KIND_COUNT || !isfinite(note->run.weight) ||
	    note->run.weight <= 0)
		return diag_fail(diag, STATUS_BAD_TRACE,
				 "'%s' lacks an identity, kind, weight or start", path);
	note->found = true;
	return STATUS_OK;
}

enum status run_note_read(const char *folder, struct run_note *ret_note, struct diag *diag)
{
	struct run_note note = {0};
	struct mapped_file file;
	json_error_t error;
	char *path = join(folder, RUN_NOTE);
	enum status status = STATUS_OK;

	if (!path)
		return diag_no_memory(diag);
	if (access(path, F_OK) != 0 && errno == ENOENT) {
		*ret_note = note;
	} else if ((status = mapped_file_open(&file, path, diag)) == STATUS_OK) {
		note.json = json_loadb((const char *)file.data, file.size,
				       JSON_REJECT_DUPLICATES, &error);
		mapped_file_close(&file);
		if (!json_is_object((json_t *)note.json))
			status = diag_fail(diag, STATUS_BAD_TRACE,
					   "'%s' is not a note about a run", path);
		else
			status = read_note_members(&note, path, diag);
		if (status == STATUS_OK)
			*ret_note = note;
		else
			run_note_release(&note);
	}
	free(path);
	return status;
}

void run_note_release(struct run_note *note)
{
	json_decref(note->json);
	memset(note, 0, sizeof(*note));
}

bool trace_folder_is_busy(const char *folder)
{
	char *path = join(folder, RUN_NOTE);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	bool busy = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	free(path);
	return busy;
}

/* ---- listing ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void path_list_release(struct path_list *list)
{
	for (uint32_t i = 0; i < list->len; i++)
		free(list->data[i]);
	vec_release(list);
}

/* Lists `folder`/NAME for the names that begin with `prefix` and, when asked,
 * are trace files. */
static enum status list_folder(const char *folder, const char *prefix, bool traces,
			       struct path_list *ret_list, struct diag *diag)
{
	struct path_list list = {0};
	const struct dirent *entry;
	DIR *dir = opendir(folder);
	enum status status = STATUS_OK;

	if (!dir)
		return diag_fail_errno(diag, STATUS_IO, errno, "cannot read folder '%s'",
				       folder);
	while (status == STATUS_OK && (errno = 0, entry = readdir(dir))) {
		char *path;

		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
		    (traces && !is_trace(entry->d_name)))
			continue;
		path = join(folder, entry->d_name);
		if (!path || !vec_push(&list, path)) {
			free(path);
			status = diag_no_memory(diag);
		}
	}
	if (status == STATUS_OK && errno != 0)
		status = diag_fail_errno(diag, STATUS_IO, errno, "cannot read folder '%s'",
					 folder);
	closedir(dir);
	if (status == STATUS_OK) {
		if (list.len)
			qsort(list.data, list.len, sizeof(*list.data), by_text);
		*ret_list = list;
	} else {
		path_list_release(&list);
	}
	return status;
}

enum status trace_folder_files(const char *folder, struct path_list *ret_files,
			       struct diag *diag)
{
	return list_folder(folder, "", true, ret_files, diag);
}

enum status trace_folder_leftovers(const char *database, struct path_list *ret_folders,
				   struct diag *diag)
{
	const char *slash = strrchr(database, '/');
	const char *name = slash ? slash + 1 : database;
	char *folder =
		slash ? strndup(database, (size_t)(slash - database) + 1) : strdup(".");
	char *prefix;
	enum status status;

	if (!folder || asprintf(&prefix, "%s" LEFTOVER_MARK, name) < 0) {
		free(folder);
		return diag_no_memory(diag);
	}
	/* "/t.db" stands in "/", else the folder's name needs no slash at its end. */
	if (slash && slash > database)
		folder[slash - database] = '\0';
	status = list_folder(folder, prefix, false, ret_folders, diag);
	free(prefix);
	free(folder);
	return status;
}

/* ---- taking in ---- */

/* Reads a trace file and the hash of its content. */
static enum status read_trace(const char *path, struct trace_file *ret_trace,
			      char ret_hash[SHA256_HEX_SIZE], struct diag *diag)
{
	struct mapped_file file;
	enum status status = mapped_file_open(&file, path, diag);
	struct sha256 hash;

	if (status != STATUS_OK)
		return status;
	status = trace_file_parse(file.data, file.size, ret_trace, diag);
	if (status == STATUS_OK) {
		hash = sha256_of(file.data, file.size);
		sha256_hex(&hash, ret_hash);
	} else if (diag) {
		diag_set_file(diag, path);
	}
	mapped_file_close(&file);
	return status;
}

static void count_in(struct intake *intake, const struct ingested *ingested)
{
	if (ingested->empty) {
		intake->empty++;
		return;
	}
	intake->run = ingested->run;
	if (ingested->fate == DB_TRACE_KNOWN) {
		intake->known++;
		return;
	}
	if (ingested->fate == DB_TRACE_NEW)
		intake->fresh++;
	else
		intake->longer++;
	intake->touches += ingested->touches;
	intake->cut_short += ingested->cut_short;
}

enum status intake_file(struct tool *tool, struct db *db, const struct db_run *run,
			const char *path, struct intake *intake, struct diag *diag)
{
	struct trace_file trace;
	struct ingested ingested;
	char hash[SHA256_HEX_SIZE], text[sizeof(struct diag)];
	enum status status = read_trace(path, &trace, hash, diag);

	if (status == STATUS_NO_MEMORY)
		return status;
	if (status != STATUS_OK) {
		diag_format(diag, text, sizeof(text));
		tool_warn(tool, "%s", text);
		intake->bad++;
		return STATUS_OK;
	}
	status = ingest_trace(db, run, &trace, hash, &ingested, diag);
	trace_file_release(&trace);
	if (status == STATUS_OK) {
		intake->files++;
		count_in(intake, &ingested);
	}
	return status;
}

void intake_put(struct result *result, json_t *object, const struct intake *intake)
{
	result_put_count(result, object, "trace_files", intake->files);
	result_put_count(result, object, "new", intake->fresh);
	result_put_count(result, object, "longer", intake->longer);
	result_put_count(result, object, "known", intake->known);
	result_put_count(result, object, "empty", intake->empty);
	result_put_count(result, object, "bad", intake->bad);
	result_put_count(result, object, "touches", intake->touches);
	result_put_count(result, object, "cut_short", intake->cut_short);
}
