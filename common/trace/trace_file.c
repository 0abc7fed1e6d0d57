/* The host's reader of trace files.
 *
 * A trace can be read while its process runs, so bytes may change between two
 * looks at them: the header is copied out once and judged in the copy, and so is
 * each record.  The agent stores a record's RVA last, x86 keeps stores in order,
 * and the RVA is loaded first here (acquire): one that is not 0 vouches for the
 * rest of its record.
 *
 * Only what a kill can do is excused (trace_format.h says what that is).  All else
 * that the agent never writes, as a count above the capacity, a size that does not
 * fit, the same function or the same number twice, is damage and refuses the file:
 * an order made from a damaged trace would look as good as a right one.
 *
 * Cost: two sorts of the touches, and the records up to `next`; the rest of the
 * file is never looked at.
 */
#include "trace/trace_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/utf8.h"
#include "trace/trace_format.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the layout is read as it is");

/* A copy of `size` bytes of text; `what` names it in the message. */
static enum status copy_text(const void *text, size_t size, const char *what,
			     char **ret_copy, struct diag *diag)
{
	char *copy = malloc(size + 1);

	if (!copy)
		return diag_no_memory(diag);
	memcpy(copy, text, size);
	copy[size] = '\0';
	if (strlen(copy) != size || !utf8_is_clean(copy)) {
		free(copy);
		return diag_fail(diag, STATUS_BAD_TRACE,
				 "the trace's %s is not plain UTF-8 text", what);
	}
	*ret_copy = copy;
	return STATUS_OK;
}

/* Judges all numbers of the header against each other and the file's size. */
static enum status check_header(const struct trace_header *h, size_t size,
				struct diag *diag)
{
	uint64_t need;

	if (h->version != TRACE_VERSION)
		return diag_fail(diag, STATUS_BAD_TRACE,
				 "trace version %" PRIu32 " is not known, only %d is",
				 h->version, TRACE_VERSION);
	if (h->record_size != sizeof(struct trace_record))
		return diag_fail(diag, STATUS_BAD_TRACE,
				 "trace records of %" PRIu32 " bytes instead of %zu",
				 h->record_size, sizeof(struct trace_record));
	if (h->path_size > TRACE_MAX_PATH_BYTES ||
	    h->header_size != trace_header_size(h->path_size))
		return diag_fail(diag, STATUS_BAD_TRACE,
				 "the trace's header size %" PRIu32
				 " does not fit its path of %" PRIu32 " bytes",
				 h->header_size, h->path_size);
	if (h->capacity == 0 || h->capacity > TRACE_MAX_PROBES)
		return diag_fail(diag, STATUS_BAD_TRACE,
				 "a trace for %" PRIu32 " probes", h->capacity);
	need = trace_file_size(h->header_size, h->capacity);
	if (size != need)
		return diag_fail(diag, STATUS_BAD_TRACE,
				 "the trace has %zu bytes instead of %" PRIu64, size, need);
	if (h->next > h->capacity)
		return diag_fail(diag, STATUS_BAD_TRACE,
				 "%" PRIu32 " touches in a trace for %" PRIu32 " probes",
				 h->next, h->capacity);
	if (h->frequency == 0)
		return diag_fail(diag, STATUS_BAD_TRACE,
				 "the trace's clock has no frequency");
	return STATUS_OK;
}

static enum status take_header(struct trace_file *trace, const struct trace_header *h,
			       const uint8_t *path, struct diag *diag)
{
	size_t name_size = strnlen(h->image_name, sizeof(h->image_name));
	enum status status;

	if (name_size == 0 || name_size == sizeof(h->image_name))
		return diag_fail(diag, STATUS_BAD_TRACE, "the trace's image has no name");
	status = copy_text(h->image_name, name_size, "image name", &trace->image_name,
			   diag);
	if (status == STATUS_OK)
		status = copy_text(path, h->path_size, "executable path",
				   &trace->executable, diag);
	memcpy(trace->image_hash.bytes, h->image_hash, sizeof(trace->image_hash.bytes));
	trace->process = h->process;
	trace->parent = h->parent;
	trace->process_start = h->process_start;
	trace->opened = h->opened;
	trace->opened_ticks = h->opened_ticks;
	trace->frequency = h->frequency;
	trace->probes = h->capacity;
	return status;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_rva(const void *a, const void *b)
{
	const struct trace_touch *x = a, *y = b;

	return compare_u64(x->rva.v, y->rva.v);
}

static int by_seq(const void *a, const void *b)
{
	const struct trace_touch *x = a, *y = b;

	return compare_u64(x->seq, y->seq);
}

/* Leaves the touches in the order of their numbers. */
static enum status sort_touches(struct trace_file *trace, struct diag *diag)
{
	struct trace_touch *t = trace->touches;

	if (trace->touch_count == 0)
		return STATUS_OK;
	qsort(t, trace->touch_count, sizeof(*t), by_rva);
	for (uint32_t i = 1; i < trace->touch_count; i++)
		if (t[i].rva.v == t[i - 1].rva.v)
			return diag_fail_at(diag, STATUS_BAD_TRACE, t[i].rva,
					    "the trace has a function's first touch twice");
	qsort(t, trace->touch_count, sizeof(*t), by_seq);
	for (uint32_t i = 0; i < trace->touch_count; i++)
		if (t[i].seq == (i == 0 ? 0 : t[i - 1].seq))
			return diag_fail_at(diag, STATUS_BAD_TRACE, t[i].rva,
					    "the trace has a bad sequence number %" PRIu64,
					    t[i].seq);
	return STATUS_OK;
}

/* Copies the complete ones of `claimed` records. */
static enum status take_records(struct trace_file *trace, const uint8_t *records,
				uint32_t claimed, struct diag *diag)
{
	if (claimed == 0)
		return STATUS_OK;
	trace->touches = malloc(claimed * sizeof(*trace->touches));
	if (!trace->touches)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < claimed; i++) {
		/* Aligned in the file, not always in the memory of a test. */
		const uint8_t *p = records + (size_t)i * sizeof(struct trace_record);
		struct trace_touch touch = {.rva = rva_of(load_u32(p))};

		if (touch.rva.v == 0) {
			trace->incomplete++;
			continue;
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		touch.thread = load_u32(p + 4);
		touch.seq = load_u64(p + 8);
		touch.ticks = load_u64(p + 16);
		trace->touches[trace->touch_count++] = touch;
	}
	return sort_touches(trace, diag);
}

/* Whether the header was not done when the process ended. */
static bool is_empty(const uint8_t *data, size_t size)
{
	uint64_t magic = 0;

	memcpy(&magic, data, size < sizeof(magic) ? size : sizeof(magic));
	return magic == 0;
}

static enum status parse(struct trace_file *trace, const uint8_t *data, size_t size,
			 struct diag *diag)
{
	struct trace_header header;
	enum status status;

	memcpy(&header, data, sizeof(header));
	status = check_header(&header, size, diag);
	if (status == STATUS_OK)
		status = take_header(trace, &header, data + sizeof(header), diag);
	if (status == STATUS_OK)
		status = take_records(trace, data + header.header_size, header.next, diag);
	return status;
}

/* The trace of a process that ended before its header was done. */
static enum status empty_trace(struct trace_file *ret_trace, struct diag *diag)
{
	struct trace_file trace = {.empty = true};

	trace.image_name = calloc(1, 1);
	trace.executable = calloc(1, 1);
	if (!trace.image_name || !trace.executable) {
		trace_file_release(&trace);
		return diag_no_memory(diag);
	}
	*ret_trace = trace;
	return STATUS_OK;
}

enum status trace_file_parse(const void *data, size_t size, struct trace_file *ret_trace,
			     struct diag *diag)
{
	struct trace_file trace = {0};
	const uint64_t magic = TRACE_MAGIC;
	enum status status;

	if (size == 0 || is_empty(data, size))
		return empty_trace(ret_trace, diag);
	if (size < sizeof(struct trace_header) || memcmp(data, &magic, sizeof(magic)) != 0)
		return diag_fail(diag, STATUS_BAD_TRACE, "not a trace file");
	status = parse(&trace, data, size, diag);
	if (status != STATUS_OK) {
		trace_file_release(&trace);
		return status;
	}
	*ret_trace = trace;
	return STATUS_OK;
}

enum status trace_file_read(const char *path, struct trace_file *ret_trace,
			    struct diag *diag)
{
	struct mapped_file file;
	enum status status = mapped_file_open(&file, path, diag);

	if (status == STATUS_OK) {
		status = trace_file_parse(file.data, file.size, ret_trace, diag);
		mapped_file_close(&file);
	}
	if (status != STATUS_OK)
		diag_set_file(diag, path);
	return status;
}

void trace_file_release(struct trace_file *trace)
{
	free(trace->image_name);
	free(trace->executable);
	free(trace->touches);
	memset(trace, 0, sizeof(*trace));
}

int64_t trace_file_nanoseconds(const struct trace_file *trace, uint64_t ticks)
{
	__extension__ typedef __int128 wide;
	wide ns = ((wide)ticks - (wide)trace->opened_ticks) * 1000000000 / trace->frequency;

	return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}
