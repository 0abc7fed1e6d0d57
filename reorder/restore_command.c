/* appulse restore: puts right what a killed `appulse optimize` or `appulse-profile compare`
 * left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/options.h"
#include "cli/swap_tell.h"
#include "driver_commands.h"
#include "optimize.h"

struct restore {
	struct tool *tool;
	json_t *restored, *changed; /* arrays, borrowed */
	uint32_t count;
};

static void tell(void *with, enum swap_event event, const char *path)
{
	struct restore *r = with;

	if (event == SWAP_RESTORED) {
		r->count++;
		result_add_text(&r->tool->result, r->restored, path);
		if (!r->tool->json)
			printf("put back %s\n", path);
		return;
	}
	if (event == SWAP_CHANGED)
		result_add_text(&r->tool->result, r->changed, path);
	swap_tell(r->tool, event, path);
}

/* A folder as it is, of a file (which may be missing) its folder. */
static char *folder_of(const char *given)
{
	struct stat st;
	const char *slash = strrchr(given, '/');

	if (stat(given, &st) == 0 && S_ISDIR(st.st_mode))
		return strdup(given);
	if (!slash)
		return strdup(".");
	return slash == given ? strdup("/") : strndup(given, (size_t)(slash - given));
}

static enum status restore_at(struct restore *r, const char *given, struct diag *diag)
{
	char *path = folder_of(given);
	struct swap_folder folder;
	enum status status;

	if (!path)
		return diag_no_memory(diag);
	status = swap_folder_open(&folder, path, SWAP_BUSY, tell, r, diag);
	swap_folder_close(&folder);
	free(path);
	return status;
}

enum status restore_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	const struct option_spec options[] = {OPTIONS_COMMON(tool)};
	const struct command_spec spec = {
		.description = "Puts back the images that a run of 'appulse optimize' or "
			       "'appulse-profile compare' had swapped when it was killed. PLACE "
			       "is an image or its folder; the whole folder is put right. A "
			       "later run of either does the same by itself.",
		.arguments = "PLACE...",
		.min = 1,
		.max = ARGUMENTS_ANY,
		.options = options,
		.option_count = OPTION_COUNT(options),
	};
	struct restore r = {.tool = tool};
	struct command_line line;
	enum status status = command_line_parse(tool, &spec, argc, argv, &line, diag);

	if (status == STATUS_OK && !line.answered) {
		r.restored = result_put_array(&tool->result, tool->result.root, "restored");
		r.changed = result_put_array(&tool->result, tool->result.root, "changed");
		for (uint32_t i = 0; i < line.arguments.len && status == STATUS_OK; i++)
			status = restore_at(&r, line.arguments.data[i], diag);
		if (status == STATUS_OK && r.count == 0 && !tool->json)
			puts("nothing to put back");
	}
	command_line_release(&line);
	return status;
}
