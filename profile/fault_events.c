/* From addresses to pages of files.
 *
 * Kept are the mappings of known files only; whatever else is mapped over one of
 * them cuts it.  That something was unmapped is not told: its addresses are reused
 * by mappings, which are.
 */
#include "fault_events.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4096, INSTRUCTION_BYTES_MAX = 15 };

struct mapping {
	uint32_t pid, file;
	uint64_t begin, end, offset;
};

struct resolver {
	VEC(struct mapping) mappings;
	struct file_faults found;
};

static int by_time(const void *a, const void *b)
{
	const struct fault_event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Takes [begin, end) out of the mappings of `pid`. */
static bool cut(struct resolver *r, uint32_t pid, uint64_t begin, uint64_t end)
{
	for (uint32_t i = 0; i < r->mappings.len;) {
		struct mapping *m = &r->mappings.data[i], rest = *m;

		if (m->pid != pid || m->begin >= end || m->end <= begin) {
			i++;
			continue;
		}
		rest.offset += end - rest.begin;
		rest.begin = end;
		m->end = begin;
		if (m->begin >= begin)
			*m = r->mappings.data[--r->mappings.len];
		if (rest.begin < rest.end && !vec_push(&r->mappings, rest))
			return false;
	}
	return true;
}

static bool count_user(struct resolver *r, uint32_t file, uint32_t pid)
{
	for (uint32_t i = 0; i < r->found.users.len; i++) {
		struct file_user *user = &r->found.users.data[i];

		if (user->file == file && user->pid == pid)
			return ++user->mappings;
	}
	return vec_push(&r->found.users, ((struct file_user){file, pid, 1}));
}

static bool map(struct resolver *r, const struct fault_event *e)
{
	struct mapping made = {.pid = e->pid, .file = e->file, .begin = e->address,
			       .end = e->address + e->size, .offset = e->offset};

	if (made.end < made.begin)
		return true;
	if (!cut(r, e->pid, made.begin, made.end))
		return false;
	return e->file == FAULT_NO_FILE ||
	       (vec_push(&r->mappings, made) && count_user(r, e->file, e->pid));
}

static bool fork_mappings(struct resolver *r, const struct fault_event *e)
{
	uint32_t count = r->mappings.len;

	if (e->parent == e->pid)
		return true; /* a thread */
	for (uint32_t i = 0; i < count; i++) {
		struct mapping copy = r->mappings.data[i];

		if (copy.pid != e->parent)
			continue;
		copy.pid = e->pid;
		if (!vec_push(&r->mappings, copy))
			return false;
	}
	return true;
}

/* An instruction is fetched from where it begins, or from the page that it runs
 * into. */
static bool is_fetch(const struct fault_event *e)
{
	return e->address == e->code ||
	       (e->address % PAGE_BYTES == 0 && e->address > e->code &&
		e->address - e->code <= INSTRUCTION_BYTES_MAX);
}

static bool fault(struct resolver *r, const struct fault_event *e)
{
	for (uint32_t i = 0; i < r->mappings.len; i++) {
		const struct mapping *m = &r->mappings.data[i];
		struct file_fault found = {
			.file = m->file, .hard = e->type == FAULT_EVENT_HARD,
			.page = (e->address - m->begin + m->offset) & ~(uint64_t)(PAGE_BYTES - 1),
			.execute = is_fetch(e), .pid = e->pid, .thread = e->thread,
			.time_ns = e->time_ns,
		};

		if (m->pid == e->pid && m->begin <= e->address && e->address < m->end)
			return vec_push(&r->found.faults, found);
	}
	return true;
}

static bool take(struct resolver *r, const struct fault_event *e)
{
	switch (e->type) {
	case FAULT_EVENT_MAP:
		return map(r, e);
	case FAULT_EVENT_FORK:
		return fork_mappings(r, e);
	case FAULT_EVENT_EXEC:
		return cut(r, e->pid, 0, UINT64_MAX);
	default:
		return fault(r, e);
	}
}

enum status fault_events_resolve(struct fault_event_list *events,
				 struct file_faults *ret_faults, struct diag *diag)
{
	struct resolver r = {0};
	bool ok = true;

	if (events->len > 0)
		qsort(events->data, events->len, sizeof(*events->data), by_time);
	for (uint32_t i = 0; i < events->len && ok; i++)
		ok = take(&r, &events->data[i]);
	vec_release(&r.mappings);
	if (!ok) {
		file_faults_release(&r.found);
		return diag_no_memory(diag);
	}
	*ret_faults = r.found;
	return STATUS_OK;
}

void file_faults_release(struct file_faults *faults)
{
	vec_release(&faults->faults);
	vec_release(&faults->users);
}
