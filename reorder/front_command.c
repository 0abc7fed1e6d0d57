/* appulse TOOL ARGS: the same as appulse-TOOL ARGS. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver_commands.h"
#include "subtools.h"

enum status front_command(struct tool *tool, int argc, char **argv, struct diag *diag)
{
	char *name = NULL, *path = NULL;
	enum status status;

	(void)argc;
	if (asprintf(&name, "%s-%s", tool->name, tool->subcommand) < 0)
		return diag_no_memory(diag);
	status = subtool_find(name, &path, diag);
	if (status == STATUS_OK) {
		argv[0] = name;
		execv(path, argv);
		status = diag_fail_errno(diag, STATUS_IO, errno, "cannot start '%s'", path);
	}
	free(path);
	free(name);
	return status;
}
