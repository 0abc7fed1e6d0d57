/* The steps of `appulse optimize`, each by the tool for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "optimize.h"

const char *const optimize_placements[] = {"exchange", "append", NULL};

/* ---- a tool's words ---- */

/* Borrowed words; running out of memory is sticky and found by words_run. */
struct words {
	char **data;
	uint32_t len, cap;
	bool failed;
};

static void words_add(struct words *w, const char *word)
{
	if (!vec_push(w, (char *)word))
		w->failed = true;
}

static void words_add_pair(struct words *w, const char *option, const char *value)
{
	words_add(w, option);
	words_add(w, value);
}

/* Runs the tool with the words and what all tools get; the words are spent. */
static enum status words_run(struct optimize *o, const char *tool, struct words *w,
			     char **command, json_t **ret_object, struct diag *diag)
{
	enum status status;

	*ret_object = NULL;
	words_add(w, "--json");
	words_add(w, "--quiet");
	if (command)
		words_add(w, "--");
	for (; command && *command; command++)
		words_add(w, *command);
	words_add(w, NULL);
	status = w->failed ? diag_no_memory(diag)
			   : subtool_run(&o->subtools, tool, w->data, ret_object, diag);
	vec_release(w);
	return status;
}

/* ---- failures of the command ---- */

/* Puts the failure in its place, and shows what the command said itself. */
static enum status say_where(struct optimize *o, enum status status, const char *where,
			     struct diag *diag)
{
	char message[sizeof(diag->message)];

	subtools_show_log(&o->subtools);
	memcpy(message, diag->message, sizeof(message));
	return diag_fail(diag, status, "%s: %s", where, message);
}

/* Whether the failure is the command's own. */
static bool is_command_s(const struct optimize *o, enum status status)
{
	return status == STATUS_COMMAND && !o->subtools.interrupted;
}

/* Members of a tool's object; what is missing is 0. */
static uint64_t count_at(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* The status of a tool that has run the command, given the exit code that the user
 * expects. */
static enum status judge_exit(const struct optimize *o, enum status status,
			      const json_t *object, struct diag *diag)
{
	const json_t *end = json_object_get(object, "command_exit");
	const char *class = json_string_value(json_object_get(end, "class"));
	uint64_t expected = o->options->exit_code & EXIT_CODE_MASK;
	bool as_expected = class && strcmp(class, "exited") == 0 &&
			   (count_at(end, "code") & EXIT_CODE_MASK) == expected;

	if (is_command_s(o, status) && as_expected)
		return STATUS_OK;
	if (status == STATUS_OK && !as_expected)
		return diag_fail(diag, STATUS_COMMAND,
				 "'%s' ended with exit code 0, not %u",
				 o->options->command[0], (unsigned)o->options->exit_code);
	return status;
}

/* ---- pins ---- */

/* What the word pins in this image: the word, or what stands behind its name and '='.
 * NULL: nothing. */
static const char *pin_for(const struct optimize *o, const struct subject *s,
			   const char *word)
{
	size_t length = strlen(s->name);

	if (strncasecmp(word, s->name, length) == 0 && word[length] == '=')
		return word + length + 1;
	return o->subject_count == 1 ? word : NULL;
}

static void words_add_pins(struct words *w, const struct optimize *o,
			   const struct subject *s)
{
	for (uint32_t i = 0; i < o->options->pins.len; i++) {
		const char *word = pin_for(o, s, o->options->pins.data[i]);

		if (word)
			words_add_pair(w, "--pin", word);
	}
}

enum status optimize_check_pins(const struct optimize *o, struct diag *diag)
{
	for (uint32_t i = 0; i < o->options->pins.len; i++) {
		const char *word = o->options->pins.data[i];
		bool found = false;

		for (uint32_t s = 0; s < o->subject_count; s++)
			found |= pin_for(o, &o->subjects[s], word) != NULL;
		if (!found)
			return diag_fail(diag, STATUS_USAGE,
					 "option '--pin': '%s' names none of the images, "
					 "as in '%s=%s'",
					 word, o->subjects[0].name, word);
	}
	return STATUS_OK;
}

/* ---- instrument ---- */

static enum status instrument_image(struct optimize *o, const struct subject *s,
				    struct diag *diag)
{
	struct words w = {0};
	json_t *object;
	enum status status;

	words_add(&w, s->given);
	words_add_pair(&w, "--db", o->database);
	words_add_pair(&w, "--output", s->instrumented);
	words_add_pins(&w, o, s);
	status = words_run(o, "appulse-instrument", &w, NULL, &object, diag);
	if (status == STATUS_OK && !o->agent) {
		const char *agent = json_string_value(
			json_object_get(json_object_get(object, "output"), "agent"));

		o->agent = strdup(agent ? agent : "");
		if (!o->agent)
			status = diag_no_memory(diag);
	}
	json_decref(object);
	return status;
}

enum status optimize_instrument(struct optimize *o, struct diag *diag)
{
	enum status status = STATUS_OK;

	progress_step(&o->tool->progress, "instrumenting");
	for (uint32_t i = 0; i < o->subject_count && status == STATUS_OK; i++)
		status = instrument_image(o, &o->subjects[i], diag);
	return status;
}

/* ---- page runs ---- */

/* Takes the page counts of each image, in the order of the command line. */
static enum status take_pages(struct optimize *o, const json_t *object, bool before,
			      struct diag *diag)
{
	const json_t *images = json_object_get(object, "images");

	for (uint32_t i = 0; i < o->subject_count; i++) {
		struct subject *s = &o->subjects[i];
		const json_t *image = json_array_get(images, i);

		if (count_at(image, "loads") == 0)
			return diag_fail(diag, STATUS_NOT_FOUND,
					 "the command did not load '%s'",
					 before ? s->given : s->relinked);
		if (before) {
			s->figures.code_pages = count_at(image, "code_pages");
			s->figures.pages_before = count_at(image, "touched_pages");
		} else {
			s->figures.pages_after = count_at(image, "touched_pages");
		}
	}
	return STATUS_OK;
}

static enum status run_pages(struct optimize *o, bool before, const char *output,
			     struct diag *diag)
{
	struct words w = {0};
	json_t *object;
	enum status status;

	words_add_pair(&w, "pages", "--db");
	words_add(&w, o->database);
	if (o->options->scenario)
		words_add_pair(&w, "--scenario", o->options->scenario);
	words_add_pair(&w, "--stdout", output);
	for (uint32_t i = 0; i < o->subject_count; i++)
		words_add_pair(&w, "--image",
			       before ? o->subjects[i].given : o->subjects[i].relinked);
	status = words_run(o, "appulse-profile", &w, o->options->command, &object, diag);
	status = judge_exit(o, status, object, diag);
	if (status == STATUS_OK)
		status = take_pages(o, object, before, diag);
	json_decref(object);
	return status;
}

/* A run outside the profile, to see whether the command works. */
static enum status run_plainly(struct optimize *o, bool before, const char *output,
			       struct diag *diag)
{
	if (!o->options->no_pages)
		return run_pages(o, before, output, diag);
	return subtools_run_command(&o->subtools, o->options->command, output,
				    (uint32_t)o->options->exit_code, diag);
}

enum status optimize_measure(struct optimize *o, struct diag *diag)
{
	enum status status;

	progress_step(&o->tool->progress, o->options->no_pages
						  ? "running the command as it is"
						  : "measuring the code pages before");
	status = run_plainly(o, true, o->stdout_before, diag);
	if (is_command_s(o, status))
		return say_where(o, status,
				 "the command fails as it is, nothing was changed", diag);
	if (status == STATUS_NOT_FOUND)
		subtools_show_log(&o->subtools); /* it may tell why it did not get there */
	return status;
}

/* ---- swapped runs ---- */

static enum status add_images(struct optimize *o, bool instrumented, struct diag *diag)
{
	for (uint32_t i = 0; i < o->subject_count; i++) {
		struct subject *s = &o->subjects[i];
		enum status status = swap_folder_add(
			&o->folders[s->folder], strrchr(s->path, '/') + 1,
			instrumented ? s->instrumented : s->relinked, false, diag);

		if (status != STATUS_OK)
			return status;
	}
	return STATUS_OK;
}

static bool same_files(const char *a, const char *b)
{
	struct mapped_file x, y;
	bool same;

	if (mapped_file_open(&x, a, NULL) != STATUS_OK)
		return false;
	same = mapped_file_open(&y, b, NULL) == STATUS_OK;
	if (same) {
		same = x.size == y.size &&
		       (x.size == 0 || memcmp(x.data, y.data, x.size) == 0);
		mapped_file_close(&y);
	}
	mapped_file_close(&x);
	return same;
}

/* Lays the agent beside the images.  One that is there already stays. */
static enum status add_agent(struct optimize *o, struct diag *diag)
{
	const char *name = strrchr(o->agent, '/');
	enum status status = STATUS_OK;

	name = name ? name + 1 : o->agent;
	for (uint32_t i = 0; i < o->folder_count && status == STATUS_OK; i++) {
		char *place = path_join(o->folders[i].path, name);

		if (!place)
			return diag_no_memory(diag);
		if (!same_files(place, o->agent))
			status =
				swap_folder_add(&o->folders[i], name, o->agent, true, diag);
		free(place);
	}
	return status;
}

static enum status swap_all_out(struct optimize *o, struct diag *diag)
{
	enum status first = STATUS_OK;

	for (uint32_t i = 0; i < o->folder_count; i++) {
		enum status status =
			swap_out(&o->folders[i], first == STATUS_OK ? diag : NULL);

		if (first == STATUS_OK)
			first = status;
	}
	return first;
}

/* On failure what was swapped is put back by optimize_release at the latest. */
static enum status swap_all_in(struct optimize *o, bool instrumented, struct diag *diag)
{
	enum status status = add_images(o, instrumented, diag);

	if (status == STATUS_OK && instrumented)
		status = add_agent(o, diag);
	for (uint32_t i = 0; i < o->folder_count && status == STATUS_OK; i++)
		status = swap_in(&o->folders[i], diag);
	return status;
}

/* Ends a step with swapped images: puts the originals back in any case; the first
 * failure counts. */
static enum status end_swapped(struct optimize *o, enum status status, struct diag *diag)
{
	enum status back = swap_all_out(o, status == STATUS_OK ? diag : NULL);

	return status == STATUS_OK ? back : status;
}

/* ---- profile ---- */

static enum status profile_once(struct optimize *o, struct diag *diag)
{
	struct words w = {0};
	char wait[24];
	json_t *object;
	enum status status;

	words_add_pair(&w, "run", "--db");
	words_add(&w, o->database);
	if (o->options->scenario)
		words_add_pair(&w, "--scenario", o->options->scenario);
	words_add_pair(&w, "--stdout", o->stdout_now);
	snprintf(wait, sizeof(wait), "%llu", (unsigned long long)o->options->wait);
	if (o->options->has_wait)
		words_add_pair(&w, "--wait", wait);
	status = words_run(o, "appulse-profile", &w, o->options->command, &object, diag);
	status = judge_exit(o, status, object, diag);
	json_decref(object);
	o->varies |= !same_files(o->stdout_before, o->stdout_now);
	return status;
}

enum status optimize_profile(struct optimize *o, struct diag *diag)
{
	enum status status;

	progress_step(&o->tool->progress, "profiling");
	status = swap_all_in(o, true, diag);
	for (uint64_t i = 0; i < o->options->runs && status == STATUS_OK; i++) {
		progress_fraction(&o->tool->progress, i, o->options->runs);
		status = profile_once(o, diag);
		if (is_command_s(o, status))
			status = say_where(o, status, "the command fails when instrumented",
					   diag);
	}
	return end_swapped(o, status, diag);
}

/* ---- relink ---- */

static void take_relink(struct subject *s, const json_t *object)
{
	const json_t *image = json_object_get(object, "image");
	const json_t *order = json_object_get(object, "order");
	struct image_figures *f = &s->figures;

	f->functions = count_at(image, "functions");
	f->movable_functions = count_at(image, "movable_functions");
	f->bytes = count_at(image, "bytes");
	f->movable_bytes = count_at(image, "movable_bytes");
	f->runs = count_at(order, "runs");
	f->touched_functions = count_at(order, "touched_functions");
	f->touched_bytes = count_at(order, "touched_bytes");
	f->size_before = count_at(image, "size");
	f->size_after = count_at(json_object_get(object, "output"), "size");
	s->pins = json_incref(json_object_get(image, "pins"));
}

static enum status relink_image(struct optimize *o, struct subject *s, struct diag *diag)
{
	struct words w = {0};
	json_t *object;
	enum status status;

	words_add(&w, s->given);
	words_add_pair(&w, "--db", o->database);
	words_add_pair(&w, "--placement", optimize_placements[o->options->placement]);
	words_add_pair(&w, "--output", s->relinked);
	words_add_pins(&w, o, s);
	status = words_run(o, "appulse-reorder", &w, NULL, &object, diag);
	if (status == STATUS_OK)
		take_relink(s, object);
	json_decref(object);
	return status;
}

enum status optimize_relink(struct optimize *o, struct diag *diag)
{
	enum status status = STATUS_OK;

	progress_step(&o->tool->progress, "relinking and verifying");
	for (uint32_t i = 0; i < o->subject_count && status == STATUS_OK; i++)
		status = relink_image(o, &o->subjects[i], diag);
	return status;
}

/* ---- check ---- */

static void compare_output(struct optimize *o)
{
	if (same_files(o->stdout_before, o->stdout_now))
		o->match = OUTPUT_SAME;
	else
		o->match = o->varies ? OUTPUT_VARIES : OUTPUT_DIFFERS;
	if (o->match == OUTPUT_DIFFERS)
		tool_warn(o->tool,
			  "the command prints something else with the relinked images, "
			  "but the same in all runs before");
}

enum status optimize_check(struct optimize *o, struct diag *diag)
{
	enum status status;

	progress_step(&o->tool->progress, o->options->no_pages
						  ? "running the relinked images"
						  : "measuring the code pages after");
	status = swap_all_in(o, false, diag);
	if (status == STATUS_OK) {
		status = run_plainly(o, false, o->stdout_now, diag);
		if (is_command_s(o, status))
			status = say_where(o, STATUS_VERIFY,
					   "the command fails when relinked", diag);
	}
	if (status == STATUS_OK)
		compare_output(o);
	return end_swapped(o, status, diag);
}
