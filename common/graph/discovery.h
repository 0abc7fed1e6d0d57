/* Discovery's own state, shared by its passes; nobody else includes this.
 *
 * The passes (graph.c lists them in order) read the image and add facts here and
 * to the graph.  Facts never leave again: a pass that comes to doubt says so
 * (discovery_doubt), and the safety policy at the end pins.
 */
#ifndef APPULSE_GRAPH_DISCOVERY_H
#define APPULSE_GRAPH_DISCOVERY_H

#include "decode/insn.h"
#include "graph/graph.h"
#include "graph/value_flow.h"

/* Something that keeps the code at `rva` where it is. */
struct doubt {
	struct rva rva;
	enum pin_reason reason;
};

/* A number in code that may be an RVA in disguise. */
struct code_constant {
	struct rva site;  /* of the instruction */
	struct rva value;
};

/* A short branch between two places: they must move together. */
struct short_branch {
	struct rva from, to;
};

/* Code that must move as one: from the function of the first byte to that of the last. */
struct joined_code {
	struct rva first, last;
};

/* A branch or jump, or an entry of a jump's table. */
struct branch {
	struct rva from, to; /* instructions */
};

enum jump_outcome {
	JUMP_UNTRIED,
	JUMP_POINTER,  /* led by a whole pointer: needs no care */
	JUMP_TABLE,    /* led by the table of `target` */
	JUMP_UNSOLVED,
};

/* A jump through a register, or a register that was saved. */
struct computed_jump {
	struct rva at;
	uint8_t outcome;          /* enum jump_outcome */
	bool guessed;             /* the outcome rests on a label that nothing led to */
	bool shown;               /* exploring has read its table */
	bool entered;             /* exploring has entered all that its table leads to */
	struct value target;      /* what it jumps to, and how many entries are in reach */
	struct value_bound bound;
	struct rva small;         /* the table of bytes or words that gives the index, */
	uint32_t small_size;      /* and its size in bytes; 0: there is none */
	struct rva low, high;     /* the code that was looked at to find it out */
};

/* What may be done to the bytes of a table (table_bytes.c). */
enum table_use {
	TABLE_KEPT,   /* they must stay what they are */
	TABLE_ROWS,   /* words of 4 bytes in its rows are edited, each as a reference */
	TABLE_FIELDS, /* fields in it are edited, each as the reference that it is */
	TABLE_ANEW,   /* the writer may write all of it anew */
};

struct table_bytes {
	struct rva begin;
	uint32_t size;   /* bytes */
	uint8_t use;     /* enum table_use */
	uint32_t stride; /* bytes of a row, or of a field of TABLE_FIELDS; 0: no refs */
	uint32_t fields; /* TABLE_ANEW: how many references of 4 bytes a row begins with;
			  * TABLE_ROWS: set of a row's words that may be references */
};

struct discovery {
	struct graph *graph;
	struct image *image;
	const struct discovery_options *options;
	struct diag *diag;
	VEC(struct rva) work;            /* instruction starts still to decode */
	VEC(struct computed_jump) computed_jumps;
	VEC(struct branch) branches;     /* all direct ones; the first `branches_merged` are
	                                  * sorted, and the rest is while tables are read */
	uint32_t branches_merged;
	VEC(struct branch) table_branches; /* sorted */
	uint32_t explored_code; /* instructions known when jumps were last explored */
	VEC(struct rva) entry_loads;     /* instructions that may read a table's entry */
	VEC(struct code_constant) displaced; /* instructions with a displacement that is
	                                  * an RVA in code, if it is one */
	uint32_t displaced_known;        /* how many of them were looked at */
	VEC(struct rva) taken_labels;    /* places in code whose address lea or a relocated
	                                  * pointer takes */
	VEC(struct code_constant) constants;
	VEC(struct short_branch) short_branches;
	VEC(struct joined_code) joined;
	VEC(struct rva) hashed;          /* functions with a hash before them, ascending */
	VEC(struct doubt) doubts;
	VEC(struct rva) data_labels;     /* places outside code that lea or a table names */
	VEC(struct table_bytes) kept;    /* tables that are not written anew */
	VEC(struct table_bytes) written_anew;
	uint64_t table_byte_count; /* bytes of all these tables, each as often as noted */
	VEC(struct pin_range) known;     /* bytes of tables without unknown references,
					  * ascending, apart */
	struct page_index row_index;     /* of the function table's rows, by begin */
	uint64_t flow_steps;             /* that jump_table.c may still make; 0: too many */
	uint64_t trial_steps;            /* that code_trial.c may still make */
	bool out_of_memory;              /* sticky: a push failed */
};

/* The range that holds `rva`, or NULL. */
struct code_range *discovery_range(const struct discovery *d, struct rva rva);

/* The map byte of `rva`, or NULL outside all ranges. */
uint8_t *discovery_state(const struct discovery *d, struct rva rva);

/* Whether what may move is not asked. */
bool discovery_is_of_facts(const struct discovery *d);

/* The first byte of [from, to) of a range's map that is CODE_UNKNOWN; `to` when there is
 * none.  Eight at a time, since hardly any is. */
static inline uint32_t code_map_next_unknown(const uint8_t *map, uint32_t from, uint32_t to)
{
	const uint64_t ones = 0x0101010101010101;

	for (; from < to && to - from >= 8; from += 8) {
		uint64_t states = load_u64(map + from) & ones * CODE_STATE;

		/* Whether one of the eight is 0: a state has no high bit. */
		if ((states - ones) & ones << 7)
			break;
	}
	while (from < to && (map[from] & CODE_STATE) != CODE_UNKNOWN)
		from++;
	return from;
}

/* Adds a fact; memory out is remembered in d->out_of_memory. */
void discovery_doubt(struct discovery *d, struct rva rva, enum pin_reason reason);
void discovery_ref(struct discovery *d, struct ref ref);
void discovery_join(struct discovery *d, struct rva first, struct rva last);

/* Says that control may enter at `rva`: it will be decoded.  With `function` it
 * is the start of a function as well. */
void discovery_enter(struct discovery *d, struct rva rva, bool function);

/* As discovery_enter for a branch of the same function. */
void discovery_reach(struct discovery *d, struct rva rva);

/* Says that something refers to `rva`: graph.behind, when it is behind where one more
 * section would begin; else nothing comes of it. */
void discovery_note_behind(struct discovery *d, struct rva rva);

/* Says that something takes the address `rva` in code: code begins there, a jump
 * table, or data; code_sweep_taken decides. */
void discovery_take(struct discovery *d, struct rva rva);

/* Notes which bytes belong to tables, before anything is decoded. */
void table_bytes_add(struct discovery *d);

/* Notes one more table: bytes that must stay, or fields of `stride` bytes, some of which
 * are references. */
void table_bytes_keep(struct discovery *d, struct rva begin, uint32_t size);
void table_bytes_hold(struct discovery *d, struct rva begin, uint32_t size,
		      uint32_t stride);

/* Notes a table of rows of `stride` bytes, of whose words those in the set `fields` may be
 * references. */
void table_bytes_rows(struct discovery *d, struct rva begin, uint32_t size, uint32_t stride,
		      uint32_t fields);

/* Notes a table that the writer sorts, by rows of `stride` bytes that begin with a
 * reference. */
void table_bytes_sort(struct discovery *d, struct rva begin, uint32_t size,
		      uint32_t stride);

/* Keeps padding that a base relocation would change, or that the volatile metadata or a
 * word that may be an address name, once padding is known. */
void table_bytes_keep_padding(struct discovery *d);

/* Whether [rva, rva + size) lies in tables that hold no references but those that are
 * known.  Valid once table_bytes_check has passed. */
bool table_bytes_are_known(const struct discovery *d, struct rva rva, uint32_t size);

/* Pins what refers from where a table stands, once references and functions are
 * known.  MALFORMED when tables share bytes in a way that no pin can save. */
enum status table_bytes_check(struct discovery *d);

/* Reads the image's tables: references in them, and code that they name. */
enum status table_refs_add(struct discovery *d);

/* Reads the tables of the load configuration; checks what they claim. */
void guard_refs_add(struct discovery *d);
void guard_refs_check(struct discovery *d);

/* How many bytes before the function at `rva` are its own: the hash that its callers
 * compare; 0 mostly.  Valid once table_refs_check has run. */
uint32_t guard_hash_before(const struct discovery *d, struct rva rva);

/* In an image without base relocations: doubts what words may be addresses of.  First
 * what can be told before anything is decoded; what each constant in code tells; the rest
 * once references are sorted; and all that some bytes may mean. */
void absolute_refs_add(struct discovery *d);
void absolute_refs_constant(struct discovery *d, uint64_t value);
void absolute_refs_check(struct discovery *d);
void absolute_refs_named_by(struct discovery *d, struct rva begin, uint32_t size);

/* Whether a base relocation of 64 bits stands at `site`. */
bool discovery_is_relocated(const struct discovery *d, struct rva site);

/* Doubts what a table names and that is not what the table says, once all code is
 * known. */
void table_refs_check(struct discovery *d);

/* Reads unwind information and exception data. */
enum status exception_refs_add(struct discovery *d);

/* Reads what `throw` hands to the runtime, at the places in data that code names; true
 * when it leads to code that nothing else led to. */
bool throw_refs_add(struct discovery *d);

/* The entry of the function table that holds `rva`, or NULL. */
const struct runtime_function *discovery_table_entry(const struct discovery *d,
						     struct rva rva);

/* Decodes what can be reached from the places entered so far. */
void code_sweep_reached(struct discovery *d);

/* Whether code seems to begin at `label`, in bytes that are unknown still. */
bool code_trial_passes(struct discovery *d, struct rva label);

/* Whether instructions read or write through the register that the lea at byte `at` of
 * the range sets. */
bool address_is_read(const struct code_range *range, uint32_t at);

/* Decodes what lies unreached in between and is code beyond doubt. */
void code_sweep_holes(struct discovery *d);

/* Decodes at the places whose address is taken and that are no tables. */
void code_sweep_taken(struct discovery *d);

/* Follows computed jumps to code that only they reach; true when there was some.
 * Without `unbounded`, only tables whose length a comparison gives. */
bool jump_tables_explore(struct discovery *d, bool unbounded);

/* Proves each computed jump with all code at hand, and records its table. */
void jump_tables_prove(struct discovery *d);

/* Cuts the swept code into functions, joins them to blocks. */
enum status functions_build(struct discovery *d);
enum status blocks_build(struct discovery *d);

/* Notes data of formats that are no tables of the image and hold no RVA of code. */
void known_data_add(struct discovery *d);

/* Finds words and constants that may be references nobody explains. */
void hidden_refs_add(struct discovery *d);

/* Finds code that is reached by its place; references must be sorted. */
void indexed_code_find(struct discovery *d);

/* Turns doubts and facts into pins, and drops references that need no care. */
void safety_policy_apply(struct discovery *d);

#endif
