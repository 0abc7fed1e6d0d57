/* appulse-profile: runs programs with instrumented images, and keeps and shows
 * what they touched. */
#include "cli/tool.h"
#include "commands.h"
#include "trace/db.h"

int main(int argc, char **argv)
{
	static const struct subcommand subcommands[] = {
		{"run", "run a command and record what it touches", run_command},
		{"import", "take in trace files made elsewhere", import_command},
		{"list", "list runs and images", list_command},
		{"merge", "add databases together", merge_command},
		{"diff", "say what changed between two builds", diff_command},
		{"report", "show what runs touched of an image", report_command},
		{"query", "ask a database in SQL", query_command},
		{"pages", "run a command and record the code pages it touches", pages_command},
		{"faults", "run a command and record the pages that it reads from the disk",
		 faults_command},
		{"compare", "run a command with two images and say which is faster",
		 compare_command},
		{"breakpoints", "run a command and record its functions by breakpoints",
		 breakpoints_command},
	};
	const struct library libraries[] = {{"SQLite", db_sqlite_version()}};
	struct tool tool = {
		.name = "appulse-profile",
		.description =
			"Runs programs whose images appulse-instrument has prepared, and keeps "
			"in a trace database which functions they touched, and in which order.",
		.libraries = libraries,
		.library_count = 1,
		.subcommands = subcommands,
		.subcommand_count = sizeof(subcommands) / sizeof(*subcommands),
	};

	return tool_main(&tool, argc, argv);
}
