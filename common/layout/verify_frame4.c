/* FuncInfos of __CxxFrameHandler4: lists that are read side by side.  All numbers must be
 * the same, so that the lists have the same bytes but for RVAs of code. */
#include "layout/verify_frames.h"

#include "pe/cxx_frame4.h"

/* One list in both images. */
struct list_pair {
	struct frame4_list was, is;
};

static struct list_pair lists_at(const struct verifier *v, struct rva rva)
{
	return (struct list_pair){frame4_list_at(v->old_image, rva),
				  frame4_list_at(v->new_image, rva)};
}

/* Both have ended, at the same byte. */
static enum status finish(struct verifier *v, const struct list_pair *lists)
{
	if (!frame4_list_complete(&lists->was) || !frame4_list_complete(&lists->is) ||
	    lists->was.r.pos != lists->is.r.pos)
		return verify_fail(v, lists->is.rva,
				   "a list of exception data has changed");
	return STATUS_OK;
}

static enum status compare_unwinds(struct verifier *v, struct rva rva)
{
	struct list_pair lists = lists_at(v, rva);
	struct frame4_unwind was, is;
	enum status status = STATUS_OK;

	while (status == STATUS_OK && frame4_next_unwind(&lists.was, &was) &&
	       frame4_next_unwind(&lists.is, &is)) {
		status = verify_frames_same(v, lists.is.rva, was.distance, is.distance,
					    "the next state of an unwind map");
		if (status == STATUS_OK)
			status = verify_frames_moved(v, is.site, was.action, is.action,
						     "the action of an unwind map");
	}
	return status == STATUS_OK ? finish(v, &lists) : status;
}

static enum status compare_catch(struct verifier *v, const struct frame4_catch *was,
				 const struct frame4_catch *is, struct rva begin)
{
	enum status status = verify_frames_moved(v, is->site, was->funclet, is->funclet,
						 "the funclet of a catch");

	if (status == STATUS_OK &&
	    (was->type.v != is->type.v || was->absolute != is->absolute ||
	     was->count != is->count))
		return verify_fail(v, is->site, "a catch has changed");
	for (unsigned i = 0; status == STATUS_OK && i < was->count; i++) {
		uint32_t a = was->continuations[i], b = is->continuations[i];

		if (was->absolute) {
			status = verify_frames_moved(v, is->sites[i], rva_of(a), rva_of(b),
						     "where a catch goes on");
			continue;
		}
		status = verify_frames_same(v, is->site, a, b, "where a catch goes on");
		if (status == STATUS_OK)
			status = verify_frames_rigid(v, begin, a);
	}
	return status;
}

static enum status compare_catches(struct verifier *v, struct rva rva, struct rva begin)
{
	struct list_pair lists = lists_at(v, rva);
	struct frame4_catch was, is;
	enum status status = STATUS_OK;

	while (status == STATUS_OK && frame4_next_catch(&lists.was, &was) &&
	       frame4_next_catch(&lists.is, &is))
		status = compare_catch(v, &was, &is, begin);
	return status == STATUS_OK ? finish(v, &lists) : status;
}

static enum status compare_tries(struct verifier *v, struct rva rva, struct rva begin)
{
	struct list_pair lists = lists_at(v, rva);
	struct frame4_try was, is;
	enum status status = STATUS_OK;

	while (status == STATUS_OK && frame4_next_try(&lists.was, &was) &&
	       frame4_next_try(&lists.is, &is)) {
		if (was.low != is.low || was.high != is.high ||
		    was.catch_high != is.catch_high || was.catches.v != is.catches.v)
			return verify_fail(v, rva, "a try block has changed");
		status = compare_catches(v, was.catches, begin);
	}
	return status == STATUS_OK ? finish(v, &lists) : status;
}

static enum status compare_states(struct verifier *v, struct rva rva, struct rva begin)
{
	struct list_pair lists = lists_at(v, rva);
	struct frame4_state was = {0}, is = {0};
	enum status status = STATUS_OK;

	while (status == STATUS_OK && frame4_next_state(&lists.was, &was) &&
	       frame4_next_state(&lists.is, &is)) {
		if (was.offset != is.offset || was.state != is.state)
			return verify_differs(v, verify_map(v, rva_add(begin, was.offset)),
					      (uint64_t)was.state, (uint64_t)is.state,
					      "the state of an instruction");
		status = verify_frames_rigid(v, begin, was.offset);
	}
	return status == STATUS_OK ? finish(v, &lists) : status;
}

static enum status compare_segments(struct verifier *v, struct rva rva)
{
	struct list_pair lists = lists_at(v, rva);
	struct frame4_segment was, is;
	enum status status = STATUS_OK;

	while (status == STATUS_OK && frame4_next_segment(&lists.was, &was) &&
	       frame4_next_segment(&lists.is, &is)) {
		status = verify_frames_moved(v, is.site, was.begin, is.begin,
					     "the begin of a separated segment");
		if (status == STATUS_OK)
			status = verify_frames_same(v, is.site, was.states.v, is.states.v,
						    "the states of a separated segment");
		if (status == STATUS_OK)
			status = compare_states(v, was.states, was.begin);
	}
	return status == STATUS_OK ? finish(v, &lists) : status;
}

enum status verify_frame4(struct verifier *v, struct rva info, struct rva begin,
			  bool shared)
{
	struct cxx_frame4 was, is;
	enum status status = cxx_frame4_read(v->old_image, info, &was, v->diag);
	bool separated;

	if (status == STATUS_OK)
		status = cxx_frame4_read(v->new_image, info, &is, v->diag);
	if (status != STATUS_OK)
		return verify_unreadable(v, status);
	if (was.header != is.header || was.size != is.size ||
	    was.unwinds.v != is.unwinds.v || was.tries.v != is.tries.v ||
	    was.states.v != is.states.v)
		return verify_fail(v, info, "a FuncInfo has changed");
	separated = was.header & FRAME4_SEPARATED;
	if (was.unwinds.v && !shared)
		status = compare_unwinds(v, was.unwinds);
	if (status == STATUS_OK && was.tries.v)
		status = compare_tries(v, was.tries, begin);
	if (status == STATUS_OK && separated && !shared)
		status = compare_segments(v, was.states);
	if (status == STATUS_OK && !separated && was.states.v)
		status = compare_states(v, was.states, begin);
	return status;
}

enum status verify_part4(struct verifier *v, struct rva root,
			 const struct runtime_function *row)
{
	return row->begin.v < root.v
		       ? verify_frames_rigid(v, row->begin, root.v - row->begin.v)
		       : verify_frames_rigid(v, root, row->end.v - 1 - root.v);
}
