/* appulse: all of it in one command, and a front for the other tools. */
#include "cli/tool.h"
#include "decode/insn.h"
#include "driver_commands.h"
#include "pe/lief.h"

int main(int argc, char **argv)
{
	static const struct subcommand subcommands[] = {
		{"optimize", "all in one: profile a command, relink its images",
		 optimize_command},
		{"doctor", "tell what an image is, and what can be done with it",
		 doctor_command},
		{"restore", "put back images that a killed run left swapped",
		 restore_command},
		{"instrument", "appulse-instrument: add first-touch probes", front_command},
		{"profile", "appulse-profile: record what programs touch", front_command},
		{"reorder", "appulse-reorder: relink in the order of a profile",
		 front_command},
	};
	const struct decode_version zydis = decode_version();
	const struct library libraries[] = {{"LIEF", lief_version()},
					    {"Zydis", zydis.text}};
	struct tool tool = {
		.name = "appulse",
		.description =
			"Makes Windows programs start faster: relinks their images so that "
			"the "
			"functions that a start touches lie together, in the order of "
			"their first "
			"touch. No source, no symbols and no linker are needed.\n\n"
			"To begin: appulse optimize --image app.dll -- wine app.exe ARG",
		.libraries = libraries,
		.library_count = sizeof(libraries) / sizeof(*libraries),
		.subcommands = subcommands,
		.subcommand_count = sizeof(subcommands) / sizeof(*subcommands),
	};

	return tool_main(&tool, argc, argv);
}
