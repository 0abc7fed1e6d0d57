/* What an image is made of, as far as moving code is concerned.
 *
 *   function   a run of code with one entry that others refer to: an entry of
 *              the function table, or a leaf found by reference
 *   block      the smallest thing that moves: a contiguous run of code and all
 *              that is joined to it by fall-through or short jumps.  It moves
 *              rigidly: inside it nothing changes.
 *   reference  a field, in code or data, whose value depends on where code (its
 *              site or its target) stands
 *
 * Invariants: functions ascend by begin and do not overlap; blocks ascend and do
 * not overlap; every function lies in exactly one block; the functions of a
 * block are consecutive; references ascend by site, one per site.  What lies in
 * an executable section and in no block is padding.
 */
#ifndef APPULSE_GRAPH_GRAPH_H
#define APPULSE_GRAPH_GRAPH_H

#include "base/page_index.h"
#include "base/vec.h"
#include "graph/pin_reason.h"
#include "pe/coff_symbols.h"
#include "pe/debug_directory.h"
#include "pe/delay_imports.h"
#include "pe/dynamic_relocations.h"
#include "pe/exports.h"
#include "pe/image.h"
#include "pe/load_config.h"
#include "pe/pseudo_relocs.h"
#include "pe/relocations.h"
#include "pe/resource_tree.h"
#include "pe/tls.h"
#include "pe/unwind_info.h"
#include "pe/volatile_metadata.h"

#define NO_BLOCK UINT32_MAX
#define NO_FUNCTION UINT32_MAX

enum function_kind {
	FUNCTION_TABLE,   /* a primary entry of the function table */
	FUNCTION_CHAINED, /* a chained entry: a part of another function */
	FUNCTION_LEAF,    /* code outside the function table, reached by a reference */
	FUNCTION_ISLAND,  /* code outside the function table that nothing refers to */
	FUNCTION_BYTES,   /* bytes that are not understood; always pinned */
};

struct function {
	struct rva begin;
	uint32_t size;    /* bytes */
	uint32_t block;   /* id of its block */
	uint8_t kind;     /* enum function_kind */
	bool taken;       /* its address is taken or it is reached from outside the image */
	uint32_t pins;    /* set of enum pin_reason, bit by bit; the block has the union */
	const char *name; /* symbol or export name, or NULL; in the image's
			  * memory, or in that of a file beside it */
};

struct block {
	struct rva begin;
	uint32_t size;             /* bytes, with what must stay with it (a guard byte) */
	uint32_t first_function, function_count;
	uint32_t pins;             /* set of enum pin_reason; 0: it may move */
};

/* How a field encodes its target.  `T` is the target, `S` the site. */
enum ref_kind {
	REF_BRANCH,     /* T - (S + size + tail), of a call, jump or branch */
	REF_ADDRESS,    /* the same, of a lea */
	REF_MEMORY,     /* the same, of a memory operand */
	REF_RVA,        /* T, 32 bits */
	REF_RVA_END,    /* T, 32 bits; T is the exclusive end of a range */
	REF_VA64,       /* image base + T, 64 bits, under a base relocation */
	REF_VA32,       /* image base + T, 32 bits, under a base relocation */
	REF_TABLE,      /* T - base, 32 bits: an entry of a jump table */
	REF_SELF,       /* T - S, 32 bits */
	REF_STATE,      /* T, 32 bits, of a row in a state map: the rows are sorted anew */
	REF_DISPLACEMENT, /* T, 32 bits: added to the image base in a register */
};

struct ref {
	struct rva site;   /* of the field */
	struct rva target; /* what the field means */
	struct rva base;   /* REF_TABLE only */
	uint8_t kind;      /* enum ref_kind */
	uint8_t tail;      /* bytes between the field's end and the instruction's */
	uint8_t size;      /* bytes of the field */
	bool enters;       /* control enters the target as a function is entered, so that a
	                    * thunk may stand in for it */
};

/* A solved jump table. */
struct jump_table {
	struct rva table;  /* of entry 0 */
	struct rva base;   /* what the entries are relative to */
	struct rva jump;   /* the first jump that uses it */
	uint32_t count;    /* entries of 4 bytes */
};

/* The rows { rva, state } of a C++ function's exception data, ascending.  A row whose
 * place says nothing about any instruction has no reference. */
struct state_map {
	struct rva rva;
	uint32_t count; /* rows of 8 bytes */
};

/* How the data behind an exception handler is understood. */
enum handler_form {
	HANDLER_UNKNOWN,
	HANDLER_SCOPES,  /* a scope table */
	HANDLER_LSDA,    /* an exception table of the Itanium ABI */
	HANDLER_FRAME3,  /* the RVA of a FuncInfo */
	HANDLER_FRAME4,  /* the RVA of a FuncInfo4 */
	HANDLER_COOKIE,  /* the place of a security cookie */
	HANDLER_LABELS,  /* RVAs of places in the function, and numbers */
	HANDLER_FORM_COUNT,
};

/* A row of the function table with an exception handler. */
#define UNKNOWN_SIZE UINT32_MAX

struct handler_use {
	uint32_t row;    /* index into tables.functions */
	struct rva handler;
	struct rva data; /* behind the handler's RVA in the unwind information */
	uint8_t form;    /* enum handler_form */
	uint32_t size;   /* bytes of data, if it ends at the next unwind information and leads to
			  * no other data; else UNKNOWN_SIZE */
};

/* State of each byte of an executable section, in struct code_range. */
enum {
	CODE_UNKNOWN = 0,
	CODE_START = 1,      /* first byte of an instruction */
	CODE_INSIDE = 2,     /* further byte of an instruction */
	CODE_PADDING = 3,
	CODE_TABLE = 4,      /* byte of a jump table */
	CODE_STATE = 7,      /* mask of the above */
	CODE_FUNCTION = 8,   /* a function begins here */
	CODE_LABEL = 16,     /* something refers to this byte */
	CODE_DATA = 32,      /* an instruction reads or writes this byte */
	CODE_BOUNDARY = 64,  /* a function table entry begins or ends here */
	CODE_ENTERED = 128,  /* not only branches of the same function lead here */
};

struct code_range {
	struct rva begin;
	uint32_t size;
	const uint8_t *bytes; /* the section's data in the file; `size` of them */
	uint8_t *map;         /* `size` bytes of CODE_* */
};

/* The tables of the image, each read once. */
struct image_tables {
	struct relocations relocs;
	struct function_table functions;
	struct exports exports;
	struct tls tls;
	struct load_config config;
	struct volatile_metadata volatiles;
	struct dynamic_relocations dynamic;
	struct delay_imports delay;
	struct coff_symbols symbols;
	struct debug_directory debug;
	struct pseudo_relocs pseudo;
	struct resource_tree resources;
};

struct graph {
	struct image *image; /* borrowed; must outlive the graph */
	struct image_tables tables;
	struct code_range *ranges; /* executable sections with data, ascending */
	uint32_t range_count;
	VEC(struct function) functions;
	VEC(struct block) blocks;
	VEC(struct ref) refs;
	VEC(struct jump_table) jump_tables;
	VEC(struct state_map) state_maps;    /* ascending */
	VEC(struct handler_use) handlers; /* by handler, users of the same data together */
	struct page_index function_index; /* by begin; empty in a graph that discovery has
					   * not made */
	uint32_t *hidden_words; /* by section: words in it that may name a function's start
				 * and are not explained; in the image's arena */
	uint32_t decoded; /* instructions, for statistics */
	struct rva behind; /* the lowest address that code or a table refers to behind where
			    * one more section would begin; 0 when there is none */
};

/* What the user knows better: ranges of code that must stay. */
struct pin_range {
	struct rva begin, end; /* end is exclusive */
};

struct bare_code {
	struct rva begin, end; /* end is exclusive */
};

struct discovery_options {
	const struct pin_range *pins;
	uint32_t pin_count;
	/* Where bare code outside the function table is known to stand, ascending: who
	 * has moved it knows, and reads the result with it.  Such code that nothing
	 * refers to stands without a gap beside other code after a move, or beside
	 * bytes that are not understood. */
	const struct bare_code *bare;
	uint32_t bare_count;
	/* For who asks what stands where, and not what may move: no blocks, no names, no
	 * pins, and all references that were found. */
	bool facts_only;
};

/* Finds functions, blocks, references and jump tables of an open, supported
 * image and applies the safety policy.  Statuses: NO_MEMORY, MALFORMED and what
 * the readers of pe/ answer.  On failure nothing is owned. */
enum status graph_discover(struct graph *graph, struct image *image,
			   const struct discovery_options *options, struct diag *diag);
void graph_release(struct graph *graph);

/* The block or function that holds `rva`; NO_BLOCK / NO_FUNCTION when none. */
uint32_t graph_block_at(const struct graph *graph, struct rva rva);
uint32_t graph_function_at(const struct graph *graph, struct rva rva);

/* The first function that ends behind `rva`: functions.len when there is none. */
uint32_t graph_function_from(const struct graph *graph, struct rva rva);

/* The function that begins at `rva`, or NO_FUNCTION. */
uint32_t graph_function_starting(const struct graph *graph, struct rva rva);

/* The byte's CODE_* state; 0 outside all ranges. */
uint8_t graph_code_state(const struct graph *graph, struct rva rva);

/* The first reference at or behind `rva`: an index into refs, refs.len when
 * there is none. */
uint32_t graph_ref_from(const struct graph *graph, struct rva rva);

#endif
