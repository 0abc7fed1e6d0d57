/* Functions that read a jump table, and tables for them. */
#ifndef APPULSE_TESTS_TABLE_READER_H
#define APPULSE_TESTS_TABLE_READER_H

#include "built_graph.h"

/* mov ecx, ecx; lea rdx, [table]; movsxd rax, [rdx + rcx * 4]; add rax, rdx; jmp rax */
#define READ "\x89\xc9\x48\x8d\x15\0\0\0\0\x48\x63\x04\x8a\x48\x01\xd0\xff\xe0"
/* Four cases and the default: ret; xor eax, eax; ret and so on. */
#define CASES "\xc3\x31\xc0\xc3\x31\xdb\xc3\x31\xc9\xc3\xc3"
/* cmp ecx, last; ja default */
#define BOUND(last) "\x83\xf9" last "\x77\x1c"

enum { READ_SIZE = 18, BOUND_SIZE = 5, LEA_FIELD = 5 };

static const uint32_t case_at[] = {0, 1, 4, 7};
enum { DEFAULT_AT = 10, CASES_SIZE = 11 };

/* A function that reads a table. */
struct reader_function {
	struct rva begin, field, cases;
	uint32_t size;
};

/* The reading begins `head` bytes behind the function's start. */
static inline struct reader_function reader_behind(struct built_graph *t, struct rva begin,
						   uint32_t head)
{
	struct reader_function f = {.begin = begin,
				    .field = rva_add(begin, head + LEA_FIELD),
				    .cases = rva_add(begin, head + READ_SIZE),
				    .size = head + READ_SIZE + CASES_SIZE};

	built_graph_row(t, f.begin, f.size);
	built_graph_export(t, f.begin);
	return f;
}

/* With a bound of 4 entries, or without any. */
static inline struct reader_function put_reader(struct built_graph *t, bool bounded)
{
	struct rva begin =
		bounded ? CODE(t, BOUND("\x03") READ CASES) : CODE(t, READ CASES);

	return reader_behind(t, begin, bounded ? BOUND_SIZE : 0);
}

/* Some function that takes the address that is put into the field at the result + 3. */
static inline struct rva put_taker(struct built_graph *t)
{
	struct rva f = CODE(t, "\x48\x8d\x05\0\0\0\0\xc3"); /* lea rax, [x]; ret */

	built_graph_row(t, f, 8);
	built_graph_export(t, f);
	return f;
}

static inline void put_entries(struct built_graph *t, const struct reader_function *f,
			       struct rva table, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		built_graph_entry(t, rva_add(f->cases, case_at[i % 4]), table);
}

/* The number of entries of the only table found, 0 when there is none. */
static inline uint32_t table_length(const struct built_graph *t, struct rva table)
{
	uint32_t count = 0;

	if (t->graph.jump_tables.len == 0)
		return 0;
	assert_int_equal(t->graph.jump_tables.len, 1);
	assert_int_equal(t->graph.jump_tables.data[0].table.v, table.v);
	for (uint32_t i = 0; i < t->graph.refs.len; i++)
		count += t->graph.refs.data[i].kind == REF_TABLE;
	assert_int_equal(count, t->graph.jump_tables.data[0].count);
	return count;
}

#endif
