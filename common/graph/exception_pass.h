/* What the readers of each form of exception data share.  Internal to graph/.
 *
 * For each form there is one walk over the data of users of a handler.  It answers
 * whether the data is of that form in every detail.  It is run to find out which form
 * a handler's data has, and then once more, adding what it meets.
 */
#ifndef APPULSE_GRAPH_EXCEPTION_PASS_H
#define APPULSE_GRAPH_EXCEPTION_PASS_H

#include "base/arena.h"
#include "graph/discovery.h"

/* A row of the function table with an exception handler. */
struct handler_user {
	const struct runtime_function *function;
	struct rva handler, data;
	uint32_t word; /* the first of the data, 0 when there is none */
};

/* A row of the function table, as a part of the function whose handler it has: its own
 * row, or the one that its unwind information is chained to. */
struct function_part {
	struct rva root, begin, end;
	struct rva run_begin, run_end; /* of the parts that stand side by side */
};

/* A part of a function whose states one map gives. */
struct state_unit {
	struct rva begin, end;
};

/* A state map, and the units that look themselves up in it. */
struct mapped_states {
	struct rva rva;
	uint32_t count; /* rows */
	uint32_t first_unit, unit_count;
	bool movable;
};

struct exception_pass {
	struct discovery *d;
	bool adding;          /* what is met becomes facts */
	struct arena scratch; /* of one walk */
	uint64_t budget;      /* bytes of exception data that may still be read */
	VEC(struct function_part) parts; /* by root, then ascending */
	VEC(struct rva) unwind_infos;    /* ascending */
	VEC(struct state_unit) units;    /* of all maps; those of one together */
	VEC(struct mapped_states) maps;
};

/* Takes `bytes` from the budget; false when it is used up: then there is more data than
 * any linker writes, read again and again. */
bool exception_pass_spend(struct exception_pass *pass, uint64_t bytes);

/* Each adds a fact when the pass is adding, else nothing. */
void exception_pass_ref(struct exception_pass *pass, struct rva site, struct rva target,
			enum ref_kind kind, bool enters);
/* A field that says where some code begins, and is no way into it. */
void exception_pass_name(struct exception_pass *pass, struct rva site, struct rva target);
void exception_pass_enter(struct exception_pass *pass, struct rva target);
void exception_pass_keep(struct exception_pass *pass, struct rva begin, uint32_t size);
void exception_pass_rows(struct exception_pass *pass, struct rva begin, uint32_t size,
			 uint32_t stride, uint32_t fields);
void exception_pass_join(struct exception_pass *pass, struct rva first, struct rva last);
void exception_pass_doubt(struct exception_pass *pass, struct rva rva);

/* Whether `rva` lies in a code section's data. */
bool exception_pass_is_code(const struct exception_pass *pass, struct rva rva);

/* Whether a row of the function table begins at `rva`. */
bool exception_pass_is_row(const struct exception_pass *pass, struct rva rva);

/* The parts of the function whose own row is `function`: an index, and how many. */
uint32_t exception_pass_parts(const struct exception_pass *pass,
			      const struct runtime_function *function, uint32_t *ret_count);

/* The part of that function that holds `rva`, or NULL. */
const struct function_part *exception_pass_part_at(const struct exception_pass *pass,
						   const struct runtime_function *function,
						   struct rva rva);

/* The RVA of the first unwind information at or behind `rva`, UINT32_MAX when there is
 * none. */
uint32_t exception_pass_next_info(const struct exception_pass *pass, struct rva rva);

/* The walks.  All users have one handler and the same first word. */
bool scope_table_walk(struct exception_pass *pass, const struct handler_user *users,
		      uint32_t count);
bool lsda_walk(struct exception_pass *pass, const struct handler_user *users,
	       uint32_t count);
bool cookie_walk(struct exception_pass *pass, const struct handler_user *users,
		 uint32_t count);
bool label_walk(struct exception_pass *pass, const struct handler_user *users,
		uint32_t count);
bool frame3_walk(struct exception_pass *pass, const struct handler_user *users,
		 uint32_t count);
bool frame4_walk(struct exception_pass *pass, const struct handler_user *users,
		 uint32_t count);

/* Adds the state maps that frame3_walk has met. */
void state_maps_add(struct exception_pass *pass);

#endif
