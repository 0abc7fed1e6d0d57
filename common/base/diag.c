#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void diag_init(struct diag *diag)
{
	memset(diag, 0, sizeof(*diag));
}

static void record(struct diag *diag, enum status status, const char *fmt, va_list args)
{
	diag_init(diag);
	diag->status = status;
	vsnprintf(diag->message, sizeof(diag->message), fmt, args);
}

enum status diag_fail(struct diag *diag, enum status status, const char *fmt, ...)
{
	va_list args;

	if (!diag)
		return status;
	va_start(args, fmt);
	record(diag, status, fmt, args);
	va_end(args);
	return status;
}

enum status diag_fail_at(struct diag *diag, enum status status, struct rva rva,
			 const char *fmt, ...)
{
	va_list args;

	if (!diag)
		return status;
	va_start(args, fmt);
	record(diag, status, fmt, args);
	va_end(args);
	diag->has_rva = true;
	diag->rva = rva;
	return status;
}

enum status diag_fail_errno(struct diag *diag, enum status status, int err,
			    const char *fmt, ...)
{
	va_list args;
	size_t used;

	if (!diag)
		return status;
	va_start(args, fmt);
	record(diag, status, fmt, args);
	va_end(args);
	used = strlen(diag->message);
	snprintf(diag->message + used, sizeof(diag->message) - used, ": %s",
		 strerror(err));
	return status;
}

enum status diag_no_memory(struct diag *diag)
{
	return diag_fail(diag, STATUS_NO_MEMORY, "out of memory");
}

static void set_once(char *field, size_t size, const char *text)
{
	if (field[0] == '\0' && text)
		snprintf(field, size, "%s", text);
}

void diag_set_file(struct diag *diag, const char *path)
{
	if (diag)
		set_once(diag->file, sizeof(diag->file), path);
}

void diag_set_function(struct diag *diag, const char *name)
{
	if (diag)
		set_once(diag->function, sizeof(diag->function), name);
}

void diag_set_values(struct diag *diag, const char *expected, const char *found)
{
	if (!diag)
		return;
	set_once(diag->expected, sizeof(diag->expected), expected);
	set_once(diag->found, sizeof(diag->found), found);
}

/* Appends to text at *used; what does not fit is cut. */
static void append(char *text, unsigned size, unsigned *used, const char *fmt, ...)
{
	va_list args;
	int n;

	if (*used >= size)
		return;
	va_start(args, fmt);
	n = vsnprintf(text + *used, size - *used, fmt, args);
	va_end(args);
	if (n > 0)
		*used += (unsigned)n;
}

/* Whether the message says itself which file it is about. */
static bool names_file(const struct diag *diag)
{
	char quoted[sizeof(diag->file) + 2];

	snprintf(quoted, sizeof(quoted), "'%s'", diag->file);
	return strstr(diag->message, quoted) != NULL;
}

void diag_format(const struct diag *diag, char *ret_text, unsigned size)
{
	unsigned used = 0;
	const char *separator = " (";

	ret_text[0] = '\0';
	if (diag->file[0] && !names_file(diag))
		append(ret_text, size, &used, "'%s': ", diag->file);
	append(ret_text, size, &used, "%s", diag->message);
	if (diag->function[0]) {
		append(ret_text, size, &used, "%sin '%s'", separator, diag->function);
		separator = ", ";
	}
	if (diag->has_rva) {
		append(ret_text, size, &used, "%sat RVA 0x%x", separator, diag->rva.v);
		separator = ", ";
	}
	if (diag->expected[0]) {
		append(ret_text, size, &used, "%sexpected %s", separator, diag->expected);
		separator = ", ";
	}
	if (diag->found[0]) {
		append(ret_text, size, &used, "%sfound %s", separator, diag->found);
		separator = ", ";
	}
	if (separator[0] == ',')
		append(ret_text, size, &used, ")");
}
