/* Taking the program's command line out of ours.
 *
 * A Windows process gets one string, and each program splits it by its own
 * rules.  Splitting and joining it again would be right for programs that
 * follow the C runtime's rules and wrong for others, so the tail of our own
 * string is used as it is.  Only the options before it, and the program's name,
 * are tokens.
 *
 * Wine's loader takes Unix paths and Windows paths for the program, makes the
 * first argument the full Windows path, and looks in the current folder first.
 * So do we, with the translation that Wine's kernel32 exports (observed: Wine 8.0);
 * on Windows, where it is missing, the name stays as it was typed.
 */
#include "command_tail.h"

#include <stdlib.h>
#include <string.h>
#include <windows.h>

/* The code page of Unix file names; Wine only. */
enum { CP_UNIXCP = 65010 };

typedef WCHAR *(CDECL *wine_get_dos_file_name_fn)(const char *unix_name);
typedef char *(CDECL *wine_get_unix_file_name_fn)(const WCHAR *dos_name);

static FARPROC wine_function(const char *name)
{
	return GetProcAddress(GetModuleHandleW(L"kernel32.dll"), name);
}

/* The end of the token at `p`, by the C runtime's rules for all arguments but
 * the first (Microsoft Learn, "Parsing C command-line arguments"). */
static const wchar_t *token_end(const wchar_t *p)
{
	bool quoted = false;
	size_t slashes = 0;

	for (; *p && (quoted || (*p != L' ' && *p != L'\t')); p++) {
		if (*p == L'"' && slashes % 2 == 0)
			quoted = !quoted;
		slashes = *p == L'\\' ? slashes + 1 : 0;
	}
	return p;
}

/* The end of a program's name: quotes only, no escapes. */
static const wchar_t *program_end(const wchar_t *p)
{
	bool quoted = false;

	for (; *p && (quoted || (*p != L' ' && *p != L'\t')); p++)
		if (*p == L'"')
			quoted = !quoted;
	return p;
}

static const wchar_t *skip_blanks(const wchar_t *p)
{
	return p + wcsspn(p, L" \t");
}

/* A copy of [p, end) without quotes. */
static wchar_t *unquote(const wchar_t *p, const wchar_t *end)
{
	wchar_t *copy = malloc(((size_t)(end - p) + 1) * sizeof(*copy));
	wchar_t *out = copy;

	if (!copy)
		return NULL;
	for (; p < end; p++)
		if (*p != L'"')
			*out++ = *p;
	*out = 0;
	return copy;
}

/* The full path of the file `name` in the current folder, or NULL. */
static wchar_t *find_here(const wchar_t *name)
{
	DWORD size = GetFullPathNameW(name, 0, NULL, NULL);
	wchar_t *full = size > 0 ? malloc(size * sizeof(*full)) : NULL;
	DWORD attributes;

	if (full && GetFullPathNameW(name, size, full, NULL) < size) {
		attributes = GetFileAttributesW(full);
		if (!(attributes & FILE_ATTRIBUTE_DIRECTORY)) /* set too when it is missing */
			return full;
	}
	free(full);
	return NULL;
}

/* The full path of the program `name` where the system looks for programs. */
static wchar_t *find_in_path(const wchar_t *name)
{
	DWORD size = SearchPathW(NULL, name, L".exe", 0, NULL, NULL);
	wchar_t *full = size > 0 ? malloc(size * sizeof(*full)) : NULL;

	if (full && SearchPathW(NULL, name, L".exe", size, full, NULL) < size)
		return full;
	free(full);
	return NULL;
}

/* The command line with `name` for its first argument and `rest` behind it. */
static wchar_t *join(const wchar_t *name, const wchar_t *rest)
{
	size_t size = wcslen(name) + wcslen(rest) + 3;
	wchar_t *line = malloc(size * sizeof(*line));

	if (line) {
		wcscpy(line, L"\"");
		wcscat(line, name);
		wcscat(line, L"\"");
		wcscat(line, rest);
	}
	return line;
}

bool command_tail_init(struct command_tail *tail, const wchar_t *line)
{
	const wchar_t *p = skip_blanks(program_end(line));
	const wchar_t *end;
	wchar_t *name, *windows;

	*tail = (struct command_tail){0};
	while (*p && !(wcsncmp(p, L"--", 2) == 0 && (p[2] == L' ' || p[2] == L'\t')))
		p = skip_blanks(token_end(p));
	if (!*p)
		return false;
	p = skip_blanks(p + 2);
	end = program_end(p);
	if (end == p || !(name = unquote(p, end)))
		return false;
	windows = path_to_windows(name);
	free(name);
	if (!windows)
		return false;
	tail->program = find_here(windows);
	if (!tail->program)
		tail->program = find_in_path(windows);
	tail->line = tail->program && wine_function("wine_get_dos_file_name")
			     ? join(tail->program, end)
			     : wcsdup(p);
	free(windows);
	return tail->line != NULL;
}

void command_tail_release(struct command_tail *tail)
{
	free(tail->program);
	free(tail->line);
	*tail = (struct command_tail){0};
}

wchar_t *path_to_windows(const wchar_t *path)
{
	wine_get_dos_file_name_fn dos_name =
		(wine_get_dos_file_name_fn)(void *)wine_function("wine_get_dos_file_name");
	char *unix_name;
	wchar_t *found, *copy;
	int size;

	if (path[0] != L'/' || !dos_name)
		return wcsdup(path);
	size = WideCharToMultiByte(CP_UNIXCP, 0, path, -1, NULL, 0, NULL, NULL);
	unix_name = malloc((size_t)size);
	if (!unix_name)
		return NULL;
	WideCharToMultiByte(CP_UNIXCP, 0, path, -1, unix_name, size, NULL, NULL);
	found = dos_name(unix_name);
	free(unix_name);
	copy = wcsdup(found ? found : path);
	if (found)
		HeapFree(GetProcessHeap(), 0, found);
	return copy;
}

wchar_t *path_to_host(const wchar_t *path)
{
	wine_get_unix_file_name_fn unix_name_of =
		(wine_get_unix_file_name_fn)(void *)wine_function("wine_get_unix_file_name");
	char *unix_name = unix_name_of ? unix_name_of(path) : NULL;
	wchar_t *copy;
	int size;

	if (!unix_name)
		return wcsdup(path);
	size = MultiByteToWideChar(CP_UNIXCP, 0, unix_name, -1, NULL, 0);
	copy = malloc((size_t)size * sizeof(*copy));
	if (copy)
		MultiByteToWideChar(CP_UNIXCP, 0, unix_name, -1, copy, size);
	HeapFree(GetProcessHeap(), 0, unix_name);
	return copy;
}
