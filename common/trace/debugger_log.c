#include "trace/debugger_log.h"

#include <inttypes.h>
#include <string.h>

/* One line, field by field.  The first field that is not there or is no number
 * makes the line bad, and all after it read as 0. */
struct fields {
	const char *at, *end; /* what is left; at is NULL when there is no field left */
	bool bad;
};

static void next_field(struct fields *f, const char **ret_text, size_t *ret_length)
{
	const char *tab;

	*ret_text = "";
	*ret_length = 0;
	if (!f->at) {
		f->bad = true;
		return;
	}
	tab = memchr(f->at, '\t', (size_t)(f->end - f->at));
	*ret_text = f->at;
	*ret_length = (size_t)((tab ? tab : f->end) - f->at);
	f->at = tab ? tab + 1 : NULL;
}

static bool next_is(struct fields *f, const char *word)
{
	struct fields before = *f;
	const char *text;
	size_t length;

	next_field(f, &text, &length);
	if (length == strlen(word) && memcmp(text, word, length) == 0)
		return true;
	*f = before;
	return false;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return 99;
}

static uint64_t next_number(struct fields *f, unsigned base, uint64_t max)
{
	uint64_t value = 0;
	const char *text;
	size_t length;

	next_field(f, &text, &length);
	f->bad |= length == 0;
	for (size_t i = 0; i < length; i++) {
		unsigned digit = (unsigned)digit_of(text[i]);

		if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			f->bad = true;
	}
	f->bad |= value > max;
	return f->bad ? 0 : value;
}

static uint32_t next_u32(struct fields *f)
{
	return (uint32_t)next_number(f, 10, UINT32_MAX);
}

static uint32_t next_hex32(struct fields *f)
{
	return (uint32_t)next_number(f, 16, UINT32_MAX);
}

static uint64_t next_ticks(struct fields *f)
{
	return next_number(f, 10, UINT64_MAX);
}

/* A path with its %XX resolved; NULL when memory is out. */
static const char *next_path(struct fields *f, struct arena *arena)
{
	const char *text;
	size_t length, n = 0;
	char *path;

	next_field(f, &text, &length);
	path = arena_strndup(arena, text, length);
	for (size_t i = 0; path && i < length; i++) {
		if (text[i] == '%') {
			int high = i + 2 < length ? digit_of(text[i + 1]) : 99;
			int low = i + 2 < length ? digit_of(text[i + 2]) : 99;

			f->bad |= high > 15 || low > 15 || (high | low) == 0;
			path[n++] = (char)(high << 4 | low);
			i += 2;
		} else {
			f->bad |= text[i] == 0;
			path[n++] = text[i];
		}
	}
	if (path)
		path[n] = 0;
	return path;
}

/* The process with that id that still runs. */
static struct debugger_process *live_process(struct debugger_log *log, uint32_t pid)
{
	for (uint32_t i = log->processes.len; i-- > 0;)
		if (log->processes.data[i].pid == pid && !log->processes.data[i].ended)
			return &log->processes.data[i];
	return NULL;
}

/* The image of the id in the next field; NULL, and bad, when there is none. */
static struct debugger_image *next_image(struct debugger_log *log, struct fields *f)
{
	uint32_t id = next_u32(f);

	if (id >= 1 && id <= log->images.len)
		return &log->images.data[id - 1];
	f->bad = true;
	return NULL;
}

static bool parse_process(struct debugger_log *log, struct fields *f)
{
	struct debugger_process process = {0};

	process.pid = next_u32(f);
	process.started_ns = (int64_t)next_number(f, 10, INT64_MAX);
	process.ticks = next_ticks(f);
	process.path = next_path(f, &log->arena);
	f->bad |= live_process(log, process.pid) != NULL;
	return process.path && vec_push(&log->processes, process);
}

static bool parse_image(struct debugger_log *log, struct fields *f)
{
	struct debugger_image image = {0};
	struct debugger_process *process;

	f->bad |= next_u32(f) != log->images.len + 1;
	process = live_process(log, next_u32(f));
	f->bad |= !process;
	image.process = process ? (uint32_t)(process - log->processes.data) : 0;
	image.base = next_number(f, 16, UINT64_MAX);
	image.size = next_hex32(f);
	image.time_stamp = next_hex32(f);
	image.checksum = next_hex32(f);
	next_ticks(f);
	image.path = next_path(f, &log->arena);
	return image.path && vec_push(&log->images, image);
}

static void parse_code(struct debugger_log *log, struct fields *f)
{
	struct debugger_image *image = next_image(log, f);
	uint32_t rva = next_hex32(f), pages = next_u32(f), guarded = next_u32(f);
	uint64_t end = rva + (uint64_t)pages * DEBUGGER_LOG_PAGE_BYTES;

	f->bad |= rva % DEBUGGER_LOG_PAGE_BYTES != 0 || guarded > pages;
	if (f->bad)
		return;
	f->bad = end >= (uint64_t)image->size + DEBUGGER_LOG_PAGE_BYTES ||
		 image->places > UINT32_MAX - pages;
	image->places += pages;
	image->watched += guarded;
}

static void parse_planted(struct debugger_log *log, struct fields *f)
{
	struct debugger_image *image = next_image(log, f);
	uint32_t starts = next_u32(f), planted = next_u32(f);

	f->bad |= planted > starts;
	if (f->bad)
		return;
	image->places = starts;
	image->watched = planted;
}

static void parse_other(struct debugger_log *log, struct fields *f)
{
	struct debugger_image *image = next_image(log, f);

	if (image)
		image->other_build = true;
}

static bool parse_resident(struct debugger_log *log, struct fields *f)
{
	struct debugger_image *image = next_image(log, f);
	struct debugger_range range = {.rva.v = next_hex32(f), .pages = next_u32(f)};
	uint64_t end = range.rva.v + (uint64_t)range.pages * DEBUGGER_LOG_PAGE_BYTES;

	f->bad |= range.pages == 0 || range.rva.v % DEBUGGER_LOG_PAGE_BYTES != 0;
	if (f->bad)
		return true;
	f->bad = end >= (uint64_t)image->size + DEBUGGER_LOG_PAGE_BYTES || image->answered;
	range.image = (uint32_t)(image - log->images.data);
	return vec_push(&log->resident, range);
}

static void parse_answer(struct debugger_log *log, struct fields *f)
{
	struct debugger_image *image = next_image(log, f);
	uint32_t page_faults;

	f->bad |= !next_is(f, "inside") && !next_is(f, "outside");
	page_faults = next_u32(f);
	if (f->bad)
		return;
	f->bad = image->answered;
	image->answered = true;
	log->processes.data[image->process].page_faults = page_faults;
}

static enum debugger_access next_access(struct fields *f)
{
	if (next_is(f, "r"))
		return DEBUGGER_READ;
	if (next_is(f, "w"))
		return DEBUGGER_WRITE;
	f->bad |= !next_is(f, "x");
	return DEBUGGER_EXECUTE;
}

static bool parse_touch(struct debugger_log *log, struct fields *f)
{
	bool pages = log->mode == DEBUGGER_PAGES;
	struct debugger_touch touch = {0};
	struct debugger_image *image;

	f->bad |= next_number(f, 10, UINT64_MAX) != log->touches.len;
	image = next_image(log, f);
	touch.rva.v = next_hex32(f);
	touch.thread = next_u32(f);
	touch.access = pages ? next_access(f) : DEBUGGER_EXECUTE;
	touch.ticks = next_ticks(f);
	if (f->bad)
		return true;
	f->bad = touch.rva.v >= image->size ||
		 (pages && touch.rva.v % DEBUGGER_LOG_PAGE_BYTES != 0);
	touch.image = (uint32_t)(image - log->images.data);
	return vec_push(&log->touches, touch);
}

static void parse_exit(struct debugger_log *log, struct fields *f)
{
	struct debugger_process *process = live_process(log, next_u32(f));
	uint32_t code = next_hex32(f);

	next_ticks(f);
	f->bad |= !process;
	if (!process)
		return;
	process->ended = true;
	process->exit_code = code;
}

/* The first line: name, version, mode, frequency. */
static void parse_head(struct debugger_log *log, struct fields *f)
{
	f->bad |= !next_is(f, "appulse-debugger");
	f->bad |= next_u32(f) != DEBUGGER_LOG_VERSION;
	if (next_is(f, "breakpoints"))
		log->mode = DEBUGGER_BREAKPOINTS;
	else if (next_is(f, "working-set"))
		log->mode = DEBUGGER_WORKING_SET;
	else
		f->bad |= !next_is(f, "pages");
	log->frequency = next_number(f, 10, UINT64_MAX);
	f->bad |= log->frequency == 0;
}

/* False when memory is out. */
static bool parse_line(struct debugger_log *log, struct fields *f)
{
	bool pages = log->mode == DEBUGGER_PAGES;
	bool starts = log->mode == DEBUGGER_BREAKPOINTS;
	bool working_set = log->mode == DEBUGGER_WORKING_SET;
	bool ok = true;

	f->bad = log->ended; /* nothing stands behind the last line */
	if ((pages && next_is(f, "page")) || (starts && next_is(f, "start"))) {
		ok = parse_touch(log, f);
	} else if (working_set && next_is(f, "resident")) {
		ok = parse_resident(log, f);
	} else if (working_set && next_is(f, "answer")) {
		parse_answer(log, f);
	} else if (next_is(f, "process")) {
		ok = parse_process(log, f);
	} else if (next_is(f, "image")) {
		ok = parse_image(log, f);
	} else if (pages && next_is(f, "code")) {
		parse_code(log, f);
	} else if (starts && next_is(f, "planted")) {
		parse_planted(log, f);
	} else if (starts && next_is(f, "other")) {
		parse_other(log, f);
	} else if (next_is(f, "unload")) {
		next_image(log, f);
		next_ticks(f);
	} else if (next_is(f, "exit")) {
		parse_exit(log, f);
	} else if (next_is(f, "failed")) {
		log->failed = true;
		log->error = next_u32(f);
	} else if (next_is(f, "end")) {
		log->ended = true;
		log->exit_code = next_hex32(f);
	} else {
		f->bad = true;
	}
	return ok;
}

enum status debugger_log_parse(const void *text, size_t size,
			       struct debugger_log *ret_log, struct diag *diag)
{
	struct debugger_log log = {0};
	const char *p = text, *end = p + size;
	const char *newline;
	unsigned number = 0;

	while (p < end && (newline = memchr(p, '\n', (size_t)(end - p)))) {
		struct fields f = {.at = p, .end = newline};
		bool ok = true;

		if (number++ == 0)
			parse_head(&log, &f);
		else
			ok = parse_line(&log, &f);
		if (!ok || f.bad || f.at) {
			debugger_log_release(&log);
			return ok ? diag_fail(diag, STATUS_BAD_TRACE,
					      "line %u of the debugger's log is not as "
					      "documented", number)
				  : diag_no_memory(diag);
		}
		p = newline + 1;
	}
	if (number == 0)
		return diag_fail(diag, STATUS_BAD_TRACE, "the debugger's log is empty");
	*ret_log = log;
	return STATUS_OK;
}

void debugger_log_release(struct debugger_log *log)
{
	arena_release(&log->arena);
	vec_release(&log->processes);
	vec_release(&log->images);
	vec_release(&log->touches);
	vec_release(&log->resident);
	memset(log, 0, sizeof(*log));
}

int64_t debugger_log_ns(const struct debugger_log *log,
			const struct debugger_process *process, uint64_t ticks)
{
	long double ns;

	if (ticks <= process->ticks)
		return 0;
	ns = (long double)(ticks - process->ticks) * 1e9L / (long double)log->frequency;
	return ns >= 0x1p63L ? INT64_MAX : (int64_t)ns;
}
