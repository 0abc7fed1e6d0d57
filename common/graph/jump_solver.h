/* Solving the computed jumps of one function.  Internal to graph/.
 *
 * jump_explore.c and jump_table.c say what for; the way is told in jump_table.c.
 */
#ifndef APPULSE_GRAPH_JUMP_SOLVER_H
#define APPULSE_GRAPH_JUMP_SOLVER_H

#include "graph/discovery.h"
#include "graph/function_family.h"
#include "graph/value_flow.h"

enum solver_mode {
	EXPLORE_BOUNDED, /* tables with a bound only */
	EXPLORE_ALL,
	PROVE,
};

/* A computed jump that the flow of values has reached. */
struct jump {
	struct rva at;
	bool solved;         /* needs no care, or is led by the table of `target` */
	bool conflict;       /* its table contradicts itself */
	struct value target; /* what the register holds */
};

/* The instructions of a function that were decoded so far. */
struct described {
	int32_t *index_of; /* by byte of the function: index into `data`, -1 none; owned */
	struct described_insn {
		struct insn insn;
		struct insn_detail detail;
	} *data;
	uint32_t len, cap;
	struct described_insn last; /* of those that are not kept */
};

/* A table that a label ends though another entry seems to follow: the label must be
 * another table's. */
struct open_table {
	struct rva jump, end;
};

/* What proving gathers over all functions. */
struct proof {
	struct function_families families;
	VEC(struct open_table) open;
	bool again; /* a function has got a new way into it */
};

/* One function, or before functions are known the code from one start to the next. */
struct solver {
	struct discovery *d;
	enum solver_mode mode;
	const struct code_range *range;
	struct rva begin;
	uint32_t size;                     /* bytes */
	int32_t *state_of;                 /* by byte: index into states, -1 none; owned */
	uint8_t *pending;                  /* by byte: whether its block is to run; owned */
	uint32_t running;                  /* offset of the running block */
	bool pending_before;               /* it or a block before it became pending */
	VEC(struct flow_state) states;
	VEC(bool) ran;                     /* by state: whether its block has run before */
	struct described *described;       /* borrowed */
	VEC(struct jump) jumps;            /* ascending */
	bool gave_up;                      /* jumps may be missing: too many blocks,
	                                    * or values were not followed */
	const struct rva *hints;           /* borrowed, ascending: where tables may begin */
	uint32_t hint_count;               /* 0 but when exploring */
	struct proof *proof;               /* borrowed; NULL when exploring */
	uint32_t function;                 /* id; only when proving */
};

void rvas_sort(struct rva *rvas, uint32_t count);

/* The index of the first of sorted `rvas` at or behind `rva`. */
uint32_t rvas_first_from(const struct rva *rvas, uint32_t count, struct rva rva);

/* Sorts discovery's lists of jumps, labels and loads; solving needs them sorted. */
void jump_solver_sort(struct discovery *d);

/* The decoded instructions of a function of `size` bytes; false when memory is out. */
bool described_init(struct described *described, uint32_t size);
void described_release(struct described *described);

/* A solver for the code [begin, begin + size), which borrows `described`.  False when
 * memory is out; then nothing is owned. */
bool solver_init(struct solver *s, struct discovery *d, enum solver_mode mode,
		 struct rva begin, uint32_t size, struct described *described);
void solver_release(struct solver *s);

/* Solves the function's jumps, which are among the `count` ones of discovery, of which
 * the first `sorted` ascend: `s->jumps` holds what became of those that control
 * reaches. */
void solver_solve(struct solver *s, const struct rva *jumps, uint32_t sorted,
		  uint32_t count);

/* Whether so many steps were made, or memory is out, that no jump can be solved. */
bool jump_solver_is_spent(const struct discovery *d);

/* The index of the first of `s->jumps` at or behind `at`. */
uint32_t solver_jump_from(const struct solver *s, struct rva at);

/* Whether `rva` lies in the solver's code. */
bool solver_holds(const struct solver *s, struct rva rva);

/* The number of entries of the table that leads to `target`, 0 when it contradicts
 * itself. */
uint32_t solver_table_count(const struct solver *s, const struct value *target);

/* Reads entry `i`; false when it can be none.  While code is still being found, what is
 * not understood yet may be a target too. */
bool solver_read_entry(const struct solver *s, const struct value *target, uint32_t i,
		       struct rva *ret_target);

/* Whether the jump is led by a pointer that was loaded whole right before: a tail
 * call, as nearly all jumps through registers are. */
bool jump_is_plain_tail_call(const struct discovery *d, struct rva jump);

#endif
