#include "cli/swap_tell.h"

#include "cli/tool.h"

void swap_tell(void *with, enum swap_event event, const char *path)
{
	struct tool *tool = with;

	switch (event) {
	case SWAP_WAITS:
		tool_note(tool, "waiting for another run, which works in '%s'", path);
		break;
	case SWAP_UNLOCKED:
		tool_warn(tool,
			  "'%s' cannot be locked, see to it that no other run works there",
			  path);
		break;
	case SWAP_RESTORED:
		tool_note(tool, "put back '%s', which a run that was killed had swapped",
			  path);
		break;
	case SWAP_CHANGED:
		tool_warn(tool,
			  "'%s' was written by somebody else meanwhile and stays as it is; "
			  "the "
			  "original is kept as '%s" SWAP_ORIGINAL "'",
			  path, path);
		break;
	}
}
