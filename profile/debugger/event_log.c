#include "event_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Room for all fields but the path: at most ten numbers. */
enum { FIELDS_BYTES = 512 };

bool event_log_open(struct event_log *log, const wchar_t *path, const wchar_t *mode)
{
	LARGE_INTEGER frequency;

	*log = (struct event_log){0};
	log->file = CreateFileW(path, GENERIC_WRITE, FILE_SHARE_READ, NULL, CREATE_ALWAYS,
				FILE_ATTRIBUTE_NORMAL, NULL);
	if (log->file == INVALID_HANDLE_VALUE)
		return false;
	QueryPerformanceFrequency(&frequency);
	event_log_line(log, NULL, "appulse-debugger\t%d\t%ls\t%llu", EVENT_LOG_VERSION, mode,
		       (unsigned long long)frequency.QuadPart);
	return !log->failed;
}

void event_log_close(struct event_log *log)
{
	if (log->file != INVALID_HANDLE_VALUE)
		CloseHandle(log->file);
	log->file = INVALID_HANDLE_VALUE;
}

/* Appends `path` in its written form; gives the end. */
static char *append_path(char *out, const char *path)
{
	static const char hex[] = "0123456789abcdef";

	for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
		if (*p < 0x20 || *p == 0x7f || *p == '%') {
			*out++ = '%';
			*out++ = hex[*p >> 4];
			*out++ = hex[*p & 15];
		} else {
			*out++ = (char)*p;
		}
	}
	return out;
}

void event_log_line(struct event_log *log, const wchar_t *path, const char *fmt, ...)
{
	int path_bytes = path ? WideCharToMultiByte(CP_UTF8, 0, path, -1, NULL, 0, NULL, NULL)
			      : 0;
	char *line = malloc(FIELDS_BYTES + 4 * (size_t)path_bytes);
	char *utf8 = line ? line + FIELDS_BYTES + 3 * (size_t)path_bytes : NULL;
	char *end;
	DWORD written;
	va_list args;
	int n;

	if (!line) {
		log->failed = true;
		return;
	}
	va_start(args, fmt);
	n = vsnprintf(line, FIELDS_BYTES - 2, fmt, args);
	va_end(args);
	end = line + (n < 0 ? 0 : n > FIELDS_BYTES - 3 ? FIELDS_BYTES - 3 : n);
	if (path_bytes > 0) {
		WideCharToMultiByte(CP_UTF8, 0, path, -1, utf8, path_bytes, NULL, NULL);
		*end++ = '\t';
		end = append_path(end, utf8);
	}
	*end++ = '\n';
	if (!WriteFile(log->file, line, (DWORD)(end - line), &written, NULL) ||
	    written != (DWORD)(end - line))
		log->failed = true;
	free(line);
}

uint64_t event_log_now(void)
{
	LARGE_INTEGER now;

	QueryPerformanceCounter(&now);
	return (uint64_t)now.QuadPart;
}
