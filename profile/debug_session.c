/* Running a command under the debugger program.
 *
 * The debugger is a Windows program and knows neither the database nor which of
 * several files named alike is meant.  So it gets file names and writes a log in a
 * folder of ours, and this side reads the log, hashes the files that it names, and
 * stores what belongs to the images asked for.  A file that is gone by then is
 * known by its header fields alone.
 *
 * The database is written after the run and not during it: a page run takes as
 * long as the program's start, and its log is on disk at any moment.
 */
#include "debug_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/human.h"

/* How long to wait for what outlives the debugger, which waits for all processes
 * that it debugs. */
#define PATIENCE_SECONDS 10.0

/* ---- before the run ---- */

static const char *base_name(const char *path)
{
	const char *name = path;

	for (; *path; path++)
		if (*path == '/' || *path == '\\')
			name = path + 1;
	return name;
}

static enum status open_images(struct debug_session *s, const struct string_list *paths,
			       struct diag *diag)
{
	s->images = calloc(paths->len, sizeof(*s->images));
	if (!s->images)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < paths->len; i++) {
		struct debug_image *image = &s->images[i];
		enum status status = image_open(&image->image, paths->data[i], diag);

		if (status != STATUS_OK)
			return status;
		s->image_count++;
		image->name = base_name(paths->data[i]);
		image->hash = sha256_of(image->image.bytes, image->image.size);
		image->seen = calloc(image->image.headers.size_of_image / 8 + 1, 1);
		if (!image->seen)
			return diag_no_memory(diag);
		for (uint32_t k = 0; k < i; k++)
			if (!memcmp(&s->images[k].hash, &image->hash, sizeof(image->hash)))
				return diag_fail(diag, STATUS_USAGE,
						 "'%s' and '%s' are the same image",
						 paths->data[k], paths->data[i]);
	}
	return STATUS_OK;
}

enum status debug_session_init(struct debug_session *session, enum debugger_mode mode,
			       const struct string_list *paths, struct diag *diag)
{
	enum status status;

	memset(session, 0, sizeof(*session));
	session->mode = mode;
	if (paths->len == 0)
		return diag_fail(diag, STATUS_USAGE, "no image given, use '--image FILE'");
	status = open_images(session, paths, diag);
	return status == STATUS_OK ? debugger_run_init(&session->debugger, diag) : status;
}

void debug_session_release(struct debug_session *session)
{
	for (uint32_t i = 0; i < session->image_count; i++) {
		struct debug_image *image = &session->images[i];

		if (image->starts)
			unlink(image->starts);
		free(image->starts);
		free(image->seen);
		image_release(&image->image);
	}
	debugger_run_release(&session->debugger);
	free(session->images);
	free(session->wanted);
	run_description_release(&session->description);
	memset(session, 0, sizeof(*session));
}

/* ---- the run ---- */

/* The debugger's mode and images. */
static char **debugger_words(const struct debug_session *s)
{
	char **words = calloc(4 * (size_t)s->image_count + 2, sizeof(*words)), **w = words;

	if (!words)
		return NULL;
	*w++ = s->mode == DEBUGGER_PAGES ? "pages" : "breakpoints";
	for (uint32_t i = 0; i < s->image_count; i++) {
		*w++ = "--image";
		*w++ = (char *)s->images[i].name;
		if (s->images[i].starts) {
			*w++ = "--starts";
			*w++ = s->images[i].starts;
		}
	}
	return words;
}

static enum status run_child(struct debug_session *s, const char *output, bool json,
			     char **command, struct diag *diag)
{
	char **words = debugger_words(s);
	const struct child child = {.command = command, .output = output,
				    .output_to_stderr = json, .patience = PATIENCE_SECONDS};
	enum status status;

	if (!words)
		return diag_no_memory(diag);
	status = debugger_run_command(&s->debugger, words, &child, diag);
	free(words);
	return status;
}

/* ---- which image is which ---- */

static bool same_headers(const struct debugger_image *seen, const struct debug_image *image)
{
	const struct pe_headers *h = &image->image.headers;

	return seen->size == h->size_of_image && seen->time_stamp == h->time_date_stamp &&
	       seen->checksum == h->checksum;
}

/* The index of the image that was asked for and is `seen`, or DEBUG_OTHER. */
static uint32_t find_wanted(const struct debug_session *s, const struct debugger_image *seen)
{
	struct mapped_file file;
	struct sha256 hash;
	bool readable = mapped_file_open(&file, seen->path, NULL) == STATUS_OK;
	uint32_t i = 0;

	if (readable) {
		hash = sha256_of(file.data, file.size);
		mapped_file_close(&file);
	}
	for (; i < s->image_count; i++)
		if (strcasecmp(base_name(seen->path), s->images[i].name) == 0 &&
		    same_headers(seen, &s->images[i]) &&
		    (!readable || !memcmp(&hash, &s->images[i].hash, sizeof(hash))))
			return i;
	return DEBUG_OTHER;
}

/* Fills `wanted`; each file is hashed once. */
static enum status identify(struct debug_session *s, struct tool *tool, struct diag *diag)
{
	const struct debugger_image *seen = s->debugger.log.images.data;

	s->wanted = calloc((size_t)s->debugger.log.images.len + 1, sizeof(*s->wanted));
	if (!s->wanted)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < s->debugger.log.images.len; i++) {
		uint32_t k = 0;

		while (k < i && (strcmp(seen[k].path, seen[i].path) != 0 ||
				 seen[k].checksum != seen[i].checksum ||
				 seen[k].time_stamp != seen[i].time_stamp ||
				 seen[k].size != seen[i].size))
			k++;
		s->wanted[i] = k < i ? s->wanted[k] : find_wanted(s, &seen[i]);
		if (s->wanted[i] == DEBUG_OTHER && k == i)
			tool_warn(tool, "the program loaded '%s', which is another image "
				  "than the one named", seen[i].path);
	}
	return STATUS_OK;
}

static void count_loads(struct debug_session *s)
{
	for (uint32_t i = 0; i < s->debugger.log.images.len; i++) {
		const struct debugger_image *seen = &s->debugger.log.images.data[i];
		struct debug_image *image;
		bool first = true;

		if (s->wanted[i] == DEBUG_OTHER || seen->other_build)
			continue;
		image = &s->images[s->wanted[i]];
		for (uint32_t k = 0; k < i; k++)
			first &= s->wanted[k] != s->wanted[i] ||
				 s->debugger.log.images.data[k].process != seen->process;
		image->loads++;
		image->processes += first;
		image->places = seen->places;
		image->watched = seen->watched;
	}
}

static enum status check_loaded(struct debug_session *s, struct tool *tool,
				struct diag *diag)
{
	uint32_t loaded = 0;

	for (uint32_t i = 0; i < s->image_count; i++)
		loaded += s->images[i].loads > 0;
	if (loaded == 0)
		return diag_fail(diag, STATUS_NOT_FOUND,
				 "the program did not load '%s', and ended with exit code %d",
				 s->images[0].image.path, s->debugger.exit.code);
	for (uint32_t i = 0; i < s->image_count; i++)
		if (s->images[i].loads == 0)
			tool_warn(tool, "the program did not load '%s'",
				  s->images[i].image.path);
	if (!s->debugger.log.ended)
		tool_warn(tool, "the debugger was ended before the program: the run is "
				"incomplete");
	return STATUS_OK;
}

enum status debug_session_run(struct debug_session *session, struct tool *tool,
			      const struct run_options *options, char **command,
			      struct diag *diag)
{
	enum db_run_kind kind = session->mode == DEBUGGER_PAGES ? DB_RUN_PAGES
								: DB_RUN_BREAKPOINTS;
	enum status status = run_describe(options, kind, command, &session->description, diag);

	if (status == STATUS_OK)
		status = run_child(session, options->output, tool->json, command,
				   diag);
	if (status == STATUS_OK)
		status = identify(session, tool, diag);
	if (status != STATUS_OK)
		return status;
	count_loads(session);
	return check_loaded(session, tool, diag);
}

/* ---- telling ---- */

void debug_session_tell(struct debug_session *session, struct tool *tool,
			const char *database)
{
	struct result *r = &tool->result;
	json_t *exit;

	result_put_text(r, r->root, "db", database);
	result_put_count(r, r->root, "run", (uint64_t)session->run);
	result_put_text(r, r->root, "kind",
			db_run_kind_name(session->description.run.kind));
	exit = result_put_object(r, r->root, "command_exit");
	result_put_text(r, exit, "class", db_exit_name(session->debugger.exit.exit));
	result_put_count(r, exit, "code", (uint32_t)session->debugger.exit.code);
	result_put_real(r, exit, "wall_seconds", session->debugger.exit.wall_seconds);
	result_put_flag(r, r->root, "complete", session->debugger.log.ended);
	result_put_count(r, r->root, "processes", session->debugger.log.processes.len);
	tool_note(tool, "run %lld: %s, stored in '%s'", (long long)session->run,
		  human_seconds(session->debugger.exit.wall_seconds).text, database);
}

json_t *debug_session_tell_image(const struct debug_session *session, uint32_t index,
				 struct result *r, json_t *images)
{
	const struct debug_image *image = &session->images[index];
	json_t *object = result_add_object(r, images);
	char hash[SHA256_HEX_SIZE];

	sha256_hex(&image->hash, hash);
	result_put_text(r, object, "path", image->image.path);
	result_put_text(r, object, "sha256", hash);
	result_put_count(r, object, "processes", image->processes);
	result_put_count(r, object, "loads", image->loads);
	return object;
}
