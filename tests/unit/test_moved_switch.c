/* A switch as MSVC makes it, moved: the two displacements and the table's entries are made
 * true again, and each of them, left as it was, is found by the verifier. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "built_graph.h"
#include "random_relink.h"

enum {
	SEEDS = 8,
	FILLERS = 6,
	SIZE = 60,
	GAP = 20 /* bytes of each function, and behind */
};

/* cmp eax, 7; ja; lea rdx, [image base]; movzx eax, byte [rdx + rax + bytes];
 * mov ecx, [rdx + rax * 4 + table]; add rcx, rdx; jmp rcx; three cases, the default */
static const char code[] =
	"\x83\xf8\x07\x77\x22\x48\x8d\x15\0\0\0\0\x0f\xb6\x84\x02\0\0\0\0"
	"\x8b\x8c\x82\0\0\0\0\x48\x01\xd1\xff\xe1"
	"\xc3\x31\xc0\xc3\x31\xdb\xc3\xc3";
enum { LEA_FIELD = 8, BYTE_FIELD = 16, FIELD = 23, CASES = 32, TABLE = 40, INDICES = 52 };

struct trial {
	struct built_graph t;
	struct rva begin;
	struct relinked relinked;
};

static void make(struct trial *trial)
{
	static const uint32_t case_at[] = {0, 1, 4};
	static const char indices[] = {0, 2, 1, 0, 0, 2, 2, 1};
	struct built_graph *t = &trial->t;

	built_graph_init(t);
	trial->begin = image_builder_put(&t->b, code, sizeof(code) - 1);
	for (uint32_t i = 0; i < 3; i++)
		image_builder_u32(&t->b, trial->begin.v + CASES + case_at[i]);
	image_builder_put(&t->b, indices, sizeof(indices));
	built_graph_row(t, trial->begin, SIZE);
	built_graph_export(t, trial->begin);
	image_builder_fill(&t->b, 0xcc, GAP);
	built_graph_point(t, rva_add(trial->begin, LEA_FIELD), rva_of(0));
	store_u32(image_builder_at(&t->b, rva_add(trial->begin, BYTE_FIELD)),
		  trial->begin.v + INDICES);
	store_u32(image_builder_at(&t->b, rva_add(trial->begin, FIELD)),
		  trial->begin.v + TABLE);
	for (int i = 0; i < FILLERS; i++) {
		struct rva f = image_builder_fill(&t->b, 0x90, SIZE - 1);

		BARE(t, "\xc3");
		built_graph_row(t, f, SIZE);
		built_graph_export(t, f);
		image_builder_fill(&t->b, 0xcc, GAP);
	}
	image_builder_section(&t->b, ".data", BUILT_DATA);
	built_graph_pointer(t, trial->begin);
	built_graph_discover(t);
	assert_int_equal(PINS(t, trial->begin), 0);
}

static struct rva new_place(const struct trial *trial)
{
	for (uint32_t i = 0; i < trial->relinked.moves.len; i++)
		if (trial->relinked.moves.data[i].from.v == trial->begin.v)
			return trial->relinked.moves.data[i].to;
	return trial->begin;
}

static enum status verify(const struct trial *trial)
{
	struct verify_report report;
	struct diag diag;

	return random_relink_verify(&trial->t.graph, &trial->relinked, &report, &diag);
}

/* The byte of the output at an RVA. */
static uint8_t *at(struct trial *trial, struct rva rva)
{
	struct image image;
	struct diag diag;
	size_t offset;

	diag_init(&diag);
	assert_int_equal(image_open_bytes(&image, trial->relinked.bytes,
					  trial->relinked.size, "new", &diag),
			 STATUS_OK);
	offset = (size_t)(image_bytes(&image, rva, 4) - image.bytes);
	image_release(&image);
	return trial->relinked.bytes + offset;
}

static void try(uint64_t seed, enum placement placement, bool *ret_moved)
{
	static const uint32_t fields[] = {BYTE_FIELD, FIELD, TABLE, TABLE + 4};
	static const uint32_t mean[] = {INDICES, TABLE, CASES, CASES + 1};
	struct trial trial = {0};
	struct rva to;

	make(&trial);
	random_relink(&trial.t.graph, seed, placement, 0, &trial.relinked);
	to = new_place(&trial);
	assert_int_equal(verify(&trial), STATUS_OK);
	for (int i = 0; i < 4; i++) {
		uint8_t *field = at(&trial, rva_add(to, fields[i]));

		assert_int_equal(load_u32(field), to.v + mean[i]);
		if (to.v == trial.begin.v)
			continue;
		*ret_moved = true;
		store_u32(field, trial.begin.v + mean[i]);
		fix_checksum(trial.relinked.bytes, trial.relinked.size);
		assert_int_equal(verify(&trial), STATUS_VERIFY);
		store_u32(field, to.v + mean[i]);
		/* One byte off. */
		store_u32(field, to.v + mean[i] + 1);
		fix_checksum(trial.relinked.bytes, trial.relinked.size);
		assert_int_equal(verify(&trial), STATUS_VERIFY);
		store_u32(field, to.v + mean[i]);
		fix_checksum(trial.relinked.bytes, trial.relinked.size);
	}
	relinked_release(&trial.relinked);
	built_graph_release(&trial.t);
}

static void test_moved_switch(void **unused)
{
	bool moved[2] = {false, false};

	(void)unused;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		try(seed, PLACEMENT_EXCHANGE, &moved[0]);
		try(seed, PLACEMENT_APPEND, &moved[1]);
	}
	assert_true(moved[0]);
	assert_true(moved[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moved_switch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
