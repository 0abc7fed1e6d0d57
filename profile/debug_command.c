#include "debug_command.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* wine, wine64, wine-stable, wine64-8.0, ...; not winecfg or winetricks. */
static bool is_wine(const char *word)
{
	const char *name = basename(word);

	if (strncmp(name, "wine", 4) != 0)
		return false;
	name += 4;
	while (isdigit((unsigned char)*name))
		name++;
	return *name == 0 || *name == '-';
}

static bool is_windows_program(const char *word)
{
	size_t length = strlen(word);

	return length > 4 && strcasecmp(word + length - 4, ".exe") == 0;
}

static size_t count_words(char **words)
{
	size_t count = 0;

	while (words[count])
		count++;
	return count;
}

enum status debug_command_make(char **command, char **debugger, char ***ret_command,
			       struct diag *diag)
{
	size_t count = count_words(command), inserted = count_words(debugger), at = 0;
	char **made;

	while (at < count && !is_wine(command[at]))
		at++;
	at = at < count ? at + 1 : 0;
	if (at == 0 && !is_windows_program(command[0]))
		return diag_fail(diag, STATUS_USAGE,
				 "cannot tell where the Windows program stands in the command, "
				 "start it as 'wine PROGRAM'");
	if (at == count)
		return diag_fail(diag, STATUS_USAGE, "no program follows '%s'",
				 command[at - 1]);
	made = calloc(count + inserted + 1, sizeof(*made));
	if (!made)
		return diag_no_memory(diag);
	memcpy(made, command, at * sizeof(*made));
	memcpy(made + at, debugger, inserted * sizeof(*made));
	memcpy(made + at + inserted, command + at, (count - at) * sizeof(*made));
	*ret_command = made;
	return STATUS_OK;
}
