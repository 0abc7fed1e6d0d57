/* FuncInfos of __CxxFrameHandler3.
 *
 * A state map is sorted anew, and rows that say nothing may have changed.  So not its rows
 * are compared but what they say: the state of each byte of each row of the function table
 * that looks itself up there.  The output's map must ascend, since runtimes differ in how
 * they search it.
 */
#include "layout/verify_frames.h"

#include <string.h>

#include "pe/cxx_frame3.h"

static enum status compare_unwinds(struct verifier *v, const struct cxx_frame3 *was,
				   const struct cxx_frame3 *is)
{
	enum status status = STATUS_OK;

	for (uint32_t i = 0; status == STATUS_OK && i < was->unwinds.count; i++) {
		struct frame3_unwind a = frame3_unwind_at(was, i);
		struct frame3_unwind b = frame3_unwind_at(is, i);

		status = verify_frames_same(v, b.site, a.next, b.next,
					    "the next state of an unwind map");
		if (status == STATUS_OK)
			status = verify_frames_moved(v, b.site, a.action, b.action,
						     "the action of an unwind map");
	}
	return status;
}

static enum status compare_catches(struct verifier *v, const struct frame3_rows *was,
				   const struct frame3_rows *is)
{
	enum status status = STATUS_OK;

	for (uint32_t i = 0; status == STATUS_OK && i < was->count; i++) {
		struct frame3_catch a = frame3_catch_at(was, i);
		struct frame3_catch b = frame3_catch_at(is, i);

		status = verify_frames_same(v, b.site, a.adjectives, b.adjectives,
					    "the adjectives of a catch");
		if (status == STATUS_OK)
			status = verify_frames_same(v, b.site, a.type.v, b.type.v,
						    "the type of a catch");
		if (status == STATUS_OK)
			status = verify_frames_moved(v, b.site, a.funclet, b.funclet,
						     "the funclet of a catch");
	}
	return status;
}

static enum status compare_tries(struct verifier *v, const struct cxx_frame3 *was,
				 const struct cxx_frame3 *is)
{
	enum status status = STATUS_OK;

	for (uint32_t i = 0; status == STATUS_OK && i < was->tries.count; i++) {
		struct frame3_try a, b;

		if (!frame3_try_at(v->old_image, was, i, &a) ||
		    !frame3_try_at(v->new_image, is, i, &b))
			return verify_fail(v, is->rva, "a try block cannot be read");
		if (a.low != b.low || a.high != b.high || a.catch_high != b.catch_high ||
		    a.catches.rva.v != b.catches.rva.v ||
		    a.catches.count != b.catches.count)
			return verify_fail(v, is->tries.rva, "a try block has changed");
		status = compare_catches(v, &a.catches, &b.catches);
	}
	return status;
}

static bool same_rows(const struct frame3_rows *a, const struct frame3_rows *b)
{
	return a->rva.v == b->rva.v && a->count == b->count;
}

static bool ascends(const struct cxx_frame3 *frame)
{
	for (uint32_t i = 1; i < frame->states.count; i++)
		if (frame3_state_at(frame, i).ip.v <= frame3_state_at(frame, i - 1).ip.v)
			return false;
	return true;
}

static bool same_states(const struct cxx_frame3 *was, const struct cxx_frame3 *is)
{
	return was->states.count == 0 ||
	       memcmp(was->states.bytes, is->states.bytes,
		      (size_t)was->states.count * FRAME3_STATE_BYTES) == 0;
}

static enum status read_both(struct verifier *v, struct rva info, struct cxx_frame3 *was,
			     struct cxx_frame3 *is)
{
	enum status status = cxx_frame3_read(v->old_image, info, was, v->diag);

	if (status == STATUS_OK)
		status = cxx_frame3_read(v->new_image, info, is, v->diag);
	if (status != STATUS_OK)
		return verify_unreadable(v, status);
	if (was->magic != is->magic || was->flags != is->flags ||
	    was->type_list.v != is->type_list.v ||
	    !same_rows(&was->unwinds, &is->unwinds) ||
	    !same_rows(&was->tries, &is->tries) || !same_rows(&was->states, &is->states))
		return verify_fail(v, info, "a FuncInfo has changed");
	return STATUS_OK;
}

enum status verify_frame3(struct verifier *v, struct rva info)
{
	struct cxx_frame3 was, is;
	enum status status = read_both(v, info, &was, &is);

	if (status == STATUS_OK)
		status = compare_unwinds(v, &was, &is);
	if (status == STATUS_OK)
		status = compare_tries(v, &was, &is);
	if (status != STATUS_OK || same_states(&was, &is))
		return status;
	if (!ascends(&is))
		return verify_fail(v, is.states.rva, "a state map is out of order");
	verify_prove(v, was.states.rva, was.states.count * FRAME3_STATE_BYTES);
	return STATUS_OK;
}

/* How many rows are in force at `rva`: those at or before it. */
static uint32_t rows_until(const struct cxx_frame3 *frame, struct rva rva)
{
	uint32_t low = 0, high = frame->states.count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (frame3_state_at(frame, middle).ip.v <= rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int32_t state_of(const struct cxx_frame3 *frame, uint32_t rows)
{
	return rows ? frame3_state_at(frame, rows - 1).state : -1;
}

/* Bytes from `begin` to the next row, at most `size`. */
static uint32_t next_change(const struct cxx_frame3 *frame, uint32_t rows, struct rva begin,
			    uint32_t size)
{
	uint32_t offset = rows < frame->states.count
				  ? frame3_state_at(frame, rows).ip.v - begin.v
				  : size;

	return offset < size ? offset : size;
}

enum status verify_states3(struct verifier *v, struct rva info,
			   const struct runtime_function *row)
{
	struct rva to = verify_map(v, row->begin);
	uint32_t size = row->end.v - row->begin.v, at = 0;
	struct cxx_frame3 was, is;
	enum status status = read_both(v, info, &was, &is);
	uint32_t a, b;

	/* A map that has not changed says the same of what has not moved, in whatever
	 * order its rows stand. */
	if (status != STATUS_OK || (to.v == row->begin.v && same_states(&was, &is)))
		return status;
	if (!ascends(&was) || !ascends(&is))
		return verify_fail(v, to,
				   "a function has moved, and its state map is out of "
				   "order");
	status = verify_frames_rigid(v, row->begin, size - 1);
	a = rows_until(&was, row->begin);
	b = rows_until(&is, to);
	while (status == STATUS_OK && at < size) {
		uint32_t next_a, next_b;

		status =
			verify_frames_same(v, rva_add(to, at), state_of(&was, a),
					   state_of(&is, b), "the state of an instruction");
		next_a = next_change(&was, a, row->begin, size);
		next_b = next_change(&is, b, to, size);
		at = next_a < next_b ? next_a : next_b;
		a += next_a == at;
		b += next_b == at;
	}
	return status;
}
