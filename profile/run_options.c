#include "run_options.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum status database_option_check(const char *database, struct diag *diag)
{
	if (!database || !database[0])
		return diag_fail(diag, STATUS_USAGE, "no database given, use '--db FILE'");
	return STATUS_OK;
}

enum status run_options_check(const struct run_options *options, double *ret_weight,
			      struct diag *diag)
{
	const char *text = options->weight ? options->weight : "1";
	enum status status = database_option_check(options->database, diag);
	double weight;
	char *end;

	if (status == STATUS_OK && db_uses_path(options->database, options->output))
		status = diag_fail(diag, STATUS_USAGE,
				   "'%s' is a file of the database '%s', what the command "
				   "prints needs a place of its own", options->output,
				   options->database);
	if (status != STATUS_OK)
		return status;
	weight = strtod(text, &end);
	/* strtod takes spaces, hexadecimal, "inf" and "nan" too. */
	if (*end || strspn(text, "0123456789.eE+-") != strlen(text) || !isfinite(weight) ||
	    weight <= 0)
		return diag_fail(diag, STATUS_USAGE,
				 "option '--weight' needs a number above 0, not '%s'",
				 text);
	*ret_weight = weight;
	return STATUS_OK;
}

static bool is_plain(const char *word)
{
	if (!*word)
		return false;
	for (; *word; word++)
		if (!isalnum((unsigned char)*word) && !strchr("_-./:=+,@%", *word))
			return false;
	return true;
}

/* Appends `word`, in single quotes when a shell would take it apart. */
static char *put_word(char *to, const char *word)
{
	if (is_plain(word))
		return stpcpy(to, word);
	*to++ = '\'';
	for (; *word; word++) {
		if (*word == '\'')
			to = stpcpy(to, "'\\''");
		else
			*to++ = *word;
	}
	*to++ = '\'';
	*to = '\0';
	return to;
}

/* The command as a shell would take it, on the heap. */
static char *command_text(char **command)
{
	size_t size = 1;
	char *text, *to;

	for (char **word = command; *word; word++)
		size += 4 * strlen(*word) + 3;
	text = to = malloc(size);
	if (!text)
		return NULL;
	*to = '\0';
	for (char **word = command; *word; word++) {
		if (to > text)
			*to++ = ' ';
		to = put_word(to, *word);
	}
	return text;
}

/* Copies of the machine's name and the run's identity; false when memory is out. */
static bool name_run(struct run_description *d)
{
	char host[256] = "", identity[SHA256_HEX_SIZE];

	if (gethostname(host, sizeof(host) - 1) != 0)
		strcpy(host, "unknown");
	d->run.host = d->host = strdup(host);
	if (!d->host || !db_run_identity(&d->run, identity))
		return false;
	d->run.identity = d->identity = strdup(identity);
	return d->identity != NULL;
}

enum status run_describe(const struct run_options *options, enum db_run_kind kind,
			 char **command, struct run_description *ret_description,
			 struct diag *diag)
{
	struct run_description d = {.run = {.kind = kind,
					    .scenario = options->scenario,
					    .collector = getpid()}};
	struct timespec now;
	enum status status = run_options_check(options, &d.run.weight, diag);

	if (status != STATUS_OK)
		return status;
	clock_gettime(CLOCK_REALTIME, &now);
	d.run.started_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	d.run.command = d.command = command_text(command);
	if (!d.command || !name_run(&d)) {
		run_description_release(&d);
		return diag_no_memory(diag);
	}
	*ret_description = d;
	return STATUS_OK;
}

void run_description_release(struct run_description *description)
{
	free(description->command);
	free(description->host);
	free(description->identity);
	memset(description, 0, sizeof(*description));
}
