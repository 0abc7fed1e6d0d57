/* appulse-reorder: relinks images so that the code that a start-up touches lies
 * together, and proves that nothing else has changed. */
#include "cli/tool.h"
#include "commands.h"
#include "decode/insn.h"
#include "pe/lief.h"
#include "trace/db.h"

int main(int argc, char **argv)
{
	static const struct subcommand subcommands[] = {
		{NULL, "relink an image", reorder_command},
		{"verify", "prove that an image is another one, relinked", verify_command},
		{"simulate", "predict the page faults of orders and relinks", simulate_command},
		{"prefetch-plan", "write which pages a start-up needs, for its loader",
		 prefetch_command},
		{"order-file", "write the order of recorded runs for a linker",
		 order_file_command},
		{"translate", "turn old RVAs into new ones, and back", translate_command},
	};
	const struct decode_version zydis = decode_version();
	const struct library libraries[] = {
		{"LIEF", lief_version()},
		{"Zydis", zydis.text},
		{"SQLite", db_sqlite_version()},
	};
	struct tool tool = {
		.name = "appulse-reorder",
		.description =
			"Relinks a Windows image so that the functions that its recorded runs "
			"touched lie together, in the order of their first touch.",
		.libraries = libraries,
		.library_count = sizeof(libraries) / sizeof(*libraries),
		.subcommands = subcommands,
		.subcommand_count = sizeof(subcommands) / sizeof(*subcommands),
	};

	return tool_main(&tool, argc, argv);
}
