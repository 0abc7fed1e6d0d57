/* appulse-instrument: adds first-touch probes to the functions of an image. */
#include "cli/tool.h"
#include "commands.h"
#include "decode/insn.h"
#include "pe/lief.h"
#include "trace/db.h"

int main(int argc, char **argv)
{
	static const struct subcommand subcommands[] = {
		{NULL, "instrument an image", instrument_command},
	};
	const struct decode_version zydis = decode_version();
	const struct library libraries[] = {
		{"LIEF", lief_version()},
		{"Zydis", zydis.text},
		{"SQLite", db_sqlite_version()},
	};
	struct tool tool = {
		.name = "appulse-instrument",
		.description =
			"Prepares a Windows image for recording: every function gets a probe that "
			"notes its first touch.",
		.libraries = libraries,
		.library_count = sizeof(libraries) / sizeof(*libraries),
		.subcommands = subcommands,
		.subcommand_count = sizeof(subcommands) / sizeof(*subcommands),
	};

	return tool_main(&tool, argc, argv);
}
