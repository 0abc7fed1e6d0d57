/* Solving computed jumps.  Internal to graph/.
 *
 * jump_explore.c and jump_table.c say what for; the way is told in jump_table.c.
 */
#ifndef APPULSE_GRAPH_JUMP_SOLVER_H
#define APPULSE_GRAPH_JUMP_SOLVER_H

#include "graph/discovery.h"
#include "graph/function_family.h"
#include "graph/value_query.h"

enum { TABLE_LIMIT = 65536 /* entries; none met comes near */ };

/* The code in which a jump stands: a function's, or while functions are not known what
 * lies from one start to the next, with the chained rows behind a row of the function
 * table. */
struct code_extent {
	struct rva begin;
	uint32_t size; /* bytes */
};

struct jump_solver {
	struct discovery *d;
	struct control_flow flow;
	struct value_query query;
	bool proving;              /* all code is known */
	struct code_extent extent; /* of the jump at hand */
	struct rva asked;          /* begin of the extent of which answers are kept: they
				    * must not depend on what stands where */
	const struct rva *hints;   /* borrowed, ascending: where tables may begin */
	uint32_t hint_count;       /* 0 when proving */
};

/* Sorts discovery's lists of jumps, labels, loads and branches; solving needs them
 * sorted. */
void jump_solver_sort(struct discovery *d);

/* False when memory is out; then nothing is owned.  `families` is borrowed, and NULL
 * while code is still being found. */
bool jump_solver_init(struct jump_solver *s, struct discovery *d,
		      const struct function_families *families);
void jump_solver_release(struct jump_solver *s);

/* The extent around `rva`. */
struct code_extent jump_solver_extent(const struct discovery *d, struct rva rva);

/* Finds out what the jump leads to: its `outcome`, `target` and `bound`.  `s->extent` must
 * be its extent. */
void jump_solver_solve(struct jump_solver *s, struct computed_jump *jump);

/* Whether a register adds the image's own address to the displacement: where its field is
 * in the instruction, 0 when it does not. */
uint8_t jump_solver_displacement(struct jump_solver *s,
				 const struct code_constant *displaced);

/* Whether so many steps were made, or memory is out, that no jump can be solved. */
bool jump_solver_is_spent(const struct discovery *d);

/* Takes so many steps; false when they are not left, and then none are. */
bool jump_solver_spend(struct discovery *d, uint32_t steps);

/* Whether `rva` lies in the extent at hand. */
bool solver_holds(const struct jump_solver *s, struct rva rva);

/* The number of entries of the jump's table, 0 when it contradicts itself or is not to be
 * read yet. */
uint32_t solver_table_count(const struct jump_solver *s, const struct computed_jump *jump);

/* Whether comparisons tell how long the jump's table is.  A label before their bound tells
 * that they were made for something else. */
bool solver_table_is_bounded(const struct jump_solver *s, const struct computed_jump *jump);

/* Whether only a label or the first word that is no entry ends a table of so many
 * entries. */
bool solver_table_is_open(const struct computed_jump *jump, uint32_t count);

enum table_entry {
	TABLE_ENTRY_NONE,  /* it can be none */
	TABLE_ENTRY_EMPTY, /* control never comes to it */
	TABLE_ENTRY_LEADS,
};

/* Reads entry `i`.  While code is still being found, what is not understood yet may be a
 * target too. */
enum table_entry solver_read_entry(const struct jump_solver *s, const struct value *target,
				   uint32_t i, struct rva *ret_target);

#endif
