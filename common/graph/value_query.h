/* Asking what a register holds at a place in code.  Internal to graph/.
 *
 * The answer holds on every way by which control can come there, as far as branches, jump
 * tables and entries are known to the control flow at hand.
 */
#ifndef APPULSE_GRAPH_VALUE_QUERY_H
#define APPULSE_GRAPH_VALUE_QUERY_H

#include "graph/control_flow.h"
#include "graph/value_flow.h"

enum node_type {
	NODE_LABEL,   /* what comes together at the place */
	NODE_WRITTEN, /* what the instruction there writes */
	NODE_LOST,    /* what may have changed there: a compiler's own address survives */
	NODE_UNKNOWN, /* nothing comes before the place */
	NODE_READ,    /* what the instruction there reads as its target operand */
};

/* A register or variable at a place. */
struct value_node {
	struct rva at;
	uint16_t variable; /* see value_query.c */
	uint8_t type;      /* enum node_type */
	bool answered;     /* `value` is final */
	bool visited;      /* when nodes are sorted */
	bool guessed;      /* it rests on a label that nothing is known to lead to */
	bool is_variable;  /* NODE_WRITTEN, NODE_READ: the source is on the stack */
	uint32_t operands; /* index of the first operand */
	uint32_t operand_count;
	struct value value;
};

enum { STACK_VARIABLES = 64 };

/* A local variable: `size` bytes, `offset` from the address with the id `stack`. */
struct stack_variable {
	uint32_t stack;
	int32_t offset;
	uint8_t size;
};

/* A node and the next of its operands to look at. */
struct visit {
	uint32_t node, operand;
};

struct value_query {
	struct control_flow *flow; /* borrowed */
	VEC(struct value_node) nodes;
	VEC(uint32_t) operands;   /* ids of nodes; NO_NODE where none is needed */
	VEC(uint32_t) open;       /* nodes that are not answered */
	VEC(uint32_t) sorted;     /* the same, operands first */
	VEC(struct visit) visits; /* the way to the node that is being sorted in */
	uint32_t *buckets;        /* owned: index of a node plus 1, 0 free */
	uint32_t bucket_count;    /* a power of two */
	struct stack_variable stack[STACK_VARIABLES];
	uint32_t stack_count;
	/* While tables are still being found nothing may be known yet to lead to a label.
	 * With `hopeful` what it brings is left out; `guessed` says that it was, since that
	 * was set to false. */
	bool hopeful, guessed;
	bool frames_guessed;  /* the same of where rsp and rbp point */
	struct rva low, high; /* of all that was looked at since the two were set */
};

/* False when memory is out; then nothing is owned. */
bool value_query_init(struct value_query *query, struct control_flow *flow);
void value_query_release(struct value_query *query);

/* Forgets all answers: to be called when there is more code, or another way through it;
 * and, so that memory stays small, between functions. */
void value_query_forget(struct value_query *query);
bool value_query_is_big(const struct value_query *query);

/* What the register holds right before the instruction at `at`. */
struct value value_query_register(struct value_query *query, uint8_t reg, struct rva at);

/* Whether rsp or rbp points to the function's own stack right before the instruction at
 * `at`, on every way there; for other registers that is not known. */
bool value_query_is_frame(struct value_query *query, uint8_t reg, struct rva at);

/* What the jump at `at` leads to. */
struct value value_query_target(struct value_query *query, struct rva at);

/* The id of the lower `size` bytes of what the comparison at `at` has on its left; NO_ID
 * when it has none.  Ids of indices and of these are comparable. */
uint32_t value_query_compared(struct value_query *query, struct rva at, unsigned size);

/* The register that a node is about, when it is about one. */
unsigned value_query_variable(const struct value_node *node);

/* Counts a step; false when there were too many. */
bool value_query_step(struct value_query *query, struct rva at);

/* What the value with this id is below whenever control comes to `at`
 * (value_bound.c). */
struct value_bound value_bound_at(struct value_query *query, uint32_t id, struct rva at);

/* What all `count` entries of a table of bytes or words are below; 0 when some are not in
 * read-only data. */
uint32_t value_bound_of_table(const struct image *image, const struct value *small,
			      uint32_t count);

#endif
