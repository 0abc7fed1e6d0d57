/* Makes the trace file of an image and maps it into the process.
 *
 * The file is made new, never an existing one opened or followed, in the folder that
 * the environment names, as IMAGE-PROCESS-START.aptrace.  The image's name comes out
 * of the image, so only characters that mean nothing to any file system are kept of it.
 * The path is always given in the form that has no length limit (Microsoft Learn,
 * "Maximum Path Length Limitation").
 *
 * The whole size is written, not only set: where a file system would leave a hole, a
 * full disk would else show at a store into the map, and end the program that we
 * promised to leave alone.  It costs a millisecond for a megabyte (40,000 probes).
 *
 * The executable's path is asked from the system by NtQueryInformationProcess:
 * GetModuleFileName takes the loader lock, which another thread may hold while it waits
 * for this one.
 *
 * Buffers are static, as the thread may have little stack left; the caller lets in
 * one thread at a time.
 */
#include <windows.h>
#include <winternl.h>

#include "agent.h"

enum {
	MAX_UNITS = 32768,    /* of UTF-16, in any Windows path with its NUL */
	MAX_NAME_UNITS = 128, /* of the file's own name and the separator before it */
	PREFIX_UNITS = 6,     /* room to make a full path one without limits */
	MAX_TRIES = 100,      /* for a name that nobody has */
	BLOCK_BYTES = 64 * 1024,
};

static wchar_t folder[MAX_UNITS];
static wchar_t path[PREFIX_UNITS + MAX_UNITS + MAX_NAME_UNITS];
static struct {
	UNICODE_STRING string;
	wchar_t units[MAX_UNITS];
} executable;
static uint8_t zeros[BLOCK_BYTES]; /* never written to */

static wchar_t *put_ascii(wchar_t *to, const char *text)
{
	while (*text)
		*to++ = (wchar_t)*text++;
	*to = 0;
	return to;
}

static wchar_t *put_number(wchar_t *to, uint64_t value, unsigned base)
{
	wchar_t digits[24];
	unsigned n = 0;

	do
		digits[n++] = (wchar_t)"0123456789abcdef"[value % base];
	while ((value /= base) != 0);
	while (n > 0)
		*to++ = digits[--n];
	*to = 0;
	return to;
}

/* `name` with all but letters, digits, dots and hyphens made underscores. */
static wchar_t *put_safe_name(wchar_t *to, const char name[PROBE_NAME_BYTES])
{
	if (!name[0])
		*to++ = L'_';
	for (unsigned i = 0; i < PROBE_NAME_BYTES && name[i]; i++) {
		char c = name[i];
		int safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			   (c >= '0' && c <= '9') || c == '-' || (c == '.' && i > 0);

		*to++ = safe ? (wchar_t)c : L'_';
	}
	*to = 0;
	return to;
}

/* Whether `text` begins with \\?\, \\.\ or \??\. */
static int is_verbatim(const wchar_t *text)
{
	return text[0] == L'\\' && (text[1] == L'\\' || text[1] == L'?') &&
	       (text[2] == L'?' || text[2] == L'.') && text[3] == L'\\';
}

/* Turns the full path at path + PREFIX_UNITS into one without limits: C:\a becomes
 * \\?\C:\a, and \\server\a becomes \\?\UNC\server\a.  Gives its start. */
static wchar_t *lift_limit(void)
{
	wchar_t *full = path + PREFIX_UNITS;
	int is_unc = full[0] == L'\\' && full[1] == L'\\';
	const wchar_t *prefix = is_unc ? L"\\\\?\\UNC" : L"\\\\?\\";
	wchar_t *start = is_unc ? path : full - 4;

	for (unsigned i = 0; prefix[i]; i++)
		start[i] = prefix[i];
	return start;
}

/* Puts the folder that the environment names into `path`, where it begins at
 * `ret_start`, with a separator that stands before `ret_end`. */
static enum untraced find_folder(wchar_t **ret_start, wchar_t **ret_end,
				 uint32_t *ret_error)
{
	DWORD n = GetEnvironmentVariableW(L"" PROBE_TRACE_FOLDER, folder, MAX_UNITS);
	wchar_t *end = path + PREFIX_UNITS;

	if (n == 0)
		return UNTRACED_NO_FOLDER;
	if (n >= MAX_UNITS)
		return UNTRACED_BAD_FOLDER;
	if (is_verbatim(folder)) {
		__builtin_memcpy(end, folder, n * sizeof(*folder));
		*ret_start = end;
	} else {
		n = GetFullPathNameW(folder, MAX_UNITS, end, NULL);
		if (n == 0 || n >= MAX_UNITS) {
			*ret_error = n == 0 ? GetLastError() : 0;
			return UNTRACED_BAD_FOLDER;
		}
		*ret_start = lift_limit();
	}
	end += n;
	if (end[-1] != L'\\')
		*end++ = L'\\';
	*ret_end = end;
	return TRACED;
}

static uint64_t process_start(void)
{
	FILETIME start, end, kernel, user;

	if (!GetProcessTimes(GetCurrentProcess(), &start, &end, &kernel, &user))
		return 0;
	return (uint64_t)start.dwHighDateTime << 32 | start.dwLowDateTime;
}

/* Makes a file that was not there, its name appended at `end` of the path that
 * begins at `start`; INVALID_HANDLE_VALUE, with the system's error, otherwise. */
static HANDLE create_file(const struct probe_image *image, const wchar_t *start,
			  wchar_t *end)
{
	const DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
	HANDLE file = INVALID_HANDLE_VALUE;

	end = put_ascii(put_safe_name(end, image->name), "-");
	end = put_ascii(put_number(end, GetCurrentProcessId(), 10), "-");
	end = put_number(end, process_start(), 16);
	for (unsigned i = 1; i <= MAX_TRIES; i++) {
		wchar_t *tail = i > 1 ? put_number(put_ascii(end, "-"), i, 10) : end;

		put_ascii(tail, TRACE_FILE_SUFFIX);
		file = CreateFileW(start, GENERIC_READ | GENERIC_WRITE, share, NULL,
				   CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
		if (file != INVALID_HANDLE_VALUE || GetLastError() != ERROR_FILE_EXISTS)
			break;
	}
	return file;
}

static int write_zeros(HANDLE file, uint64_t size)
{
	while (size > 0) {
		DWORD n = size < BLOCK_BYTES ? (DWORD)size : BLOCK_BYTES, done;

		if (!WriteFile(file, zeros, n, &done, NULL))
			return 0;
		if (done == 0) {
			SetLastError(ERROR_DISK_FULL);
			return 0;
		}
		size -= done;
	}
	return 1;
}

/* Control characters become underscores: the text is shown by others. */
static void make_plain(char *text, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		uint8_t c = (uint8_t)text[i];
		int c1 = c == 0xc2 && i + 1 < size && (uint8_t)text[i + 1] < 0xa0;

		if (c < 0x20 || c == 0x7f || c1)
			text[i] = '_';
		if (c1)
			text[++i] = '_';
	}
}

/* As WideCharToMultiByte, which gives the bytes that are needed when `size` is 0. */
static int executable_as_utf8(char *text, int size)
{
	return WideCharToMultiByte(CP_UTF8, 0, executable.string.Buffer,
				   executable.string.Length / (int)sizeof(wchar_t), text,
				   size, NULL, NULL);
}

/* Finds the path of the process's executable; gives its bytes as UTF-8, 0 when the
 * system does not tell. */
static uint32_t find_executable(void)
{
	ULONG unused;
	int n = 0;

	if (NtQueryInformationProcess(GetCurrentProcess(), ProcessImageFileNameWin32,
				      &executable, sizeof(executable), &unused) >= 0)
		n = executable_as_utf8(NULL, 0);
	if (n < 0 || n > TRACE_MAX_PATH_BYTES)
		n = 0;
	if (n == 0)
		executable.string.Length = 0;
	return (uint32_t)n;
}

static uint32_t parent_process(void)
{
	PROCESS_BASIC_INFORMATION info;
	ULONG unused;

	if (NtQueryInformationProcess(GetCurrentProcess(), ProcessBasicInformation, &info,
				      sizeof(info), &unused) < 0)
		return 0;
	return (uint32_t)info.InheritedFromUniqueProcessId;
}

/* The image's name as the trace shows it: never empty, plain UTF-8. */
static void put_image_name(char to[TRACE_NAME_BYTES], const char name[PROBE_NAME_BYTES])
{
	uint32_t n = 0;

	while (n < PROBE_NAME_BYTES - 1 && name[n]) {
		to[n] = name[n];
		n++;
	}
	if (n == 0)
		to[n++] = '_';
	if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, to, (int)n, NULL, 0) == 0)
		for (uint32_t i = 0; i < n; i++)
			if ((uint8_t)to[i] >= 0x80)
				to[i] = '_';
	make_plain(to, n);
}

static void fill_header(struct trace_header *h, const struct probe_image *image,
			uint32_t path_size)
{
	char *text = (char *)(h + 1);
	LARGE_INTEGER n;
	FILETIME now;

	h->version = TRACE_VERSION;
	h->header_size = trace_header_size(path_size);
	h->record_size = sizeof(struct trace_record);
	h->capacity = image->count;
	h->process = GetCurrentProcessId();
	h->parent = parent_process();
	h->path_size = path_size;
	h->process_start = process_start();
	GetSystemTimeAsFileTime(&now);
	h->opened = (uint64_t)now.dwHighDateTime << 32 | now.dwLowDateTime;
	QueryPerformanceCounter(&n);
	h->opened_ticks = (uint64_t)n.QuadPart;
	QueryPerformanceFrequency(&n);
	h->frequency = (uint64_t)n.QuadPart;
	__builtin_memcpy(h->image_hash, image->hash, sizeof(h->image_hash));
	put_image_name(h->image_name, image->name);
	if (path_size > 0)
		executable_as_utf8(text, (int)path_size);
	make_plain(text, path_size);
	__atomic_store_n(&h->magic, TRACE_MAGIC, __ATOMIC_RELEASE);
}

/* Gives `file` its size and maps it; NULL, with the system's error, otherwise. */
static void *map_file(HANDLE file, uint64_t size)
{
	HANDLE section;
	void *view = NULL;

	if (!write_zeros(file, size))
		return NULL;
	section = CreateFileMappingW(file, NULL, PAGE_READWRITE, 0, 0, NULL);
	if (section) {
		view = MapViewOfFile(section, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, 0);
		if (view)
			CloseHandle(section); /* the view holds what it needs */
	}
	return view;
}

enum untraced trace_map_open(const struct probe_image *image, struct trace_map *ret_map,
			     uint32_t *ret_error)
{
	uint32_t path_size = find_executable();
	uint64_t size = trace_file_size(trace_header_size(path_size), image->count);
	wchar_t *start, *end;
	struct trace_header *header;
	enum untraced why = find_folder(&start, &end, ret_error);
	HANDLE file;

	if (why != TRACED)
		return why;
	if (image->count > TRACE_MAX_PROBES)
		return UNTRACED_TOO_MANY;
	file = create_file(image, start, end);
	if (file == INVALID_HANDLE_VALUE) {
		*ret_error = GetLastError();
		return UNTRACED_NO_FILE;
	}
	header = map_file(file, size);
	if (!header)
		*ret_error = GetLastError();
	CloseHandle(file);
	if (!header) {
		DeleteFileW(start);
		return UNTRACED_NO_FILE;
	}
	fill_header(header, image, path_size);
	ret_map->records = (void *)((uint8_t *)header + header->header_size);
	ret_map->claims = (uint8_t *)(ret_map->records + image->count);
	ret_map->header = header;
	return TRACED;
}
