/* The list of moves is a claim: the verifier believes nothing of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verify_trial.h"

static void claim_nothing(struct move *moves, uint32_t *count)
{
	(void)moves;
	*count = 0;
}

static void claim_one_less(struct move *moves, uint32_t *count)
{
	(void)moves;
	--*count;
}

static void claim_twice(struct move *moves, uint32_t *count)
{
	moves[*count] = moves[0];
	++*count;
}

static void claim_shorter(struct move *moves, uint32_t *count)
{
	(void)count;
	moves[0].size--;
}

static void claim_a_part(struct move *moves, uint32_t *count)
{
	(void)count;
	moves[0].from.v++;
	moves[0].to.v++;
	moves[0].size--;
}

static void claim_unaligned(struct move *moves, uint32_t *count)
{
	(void)count;
	moves[0].to.v += 8;
}

static void claim_another_place(struct move *moves, uint32_t *count)
{
	(void)count;
	moves[0].to = moves[1].to;
}

static void claim_exchanged(struct move *moves, uint32_t *count)
{
	struct rva to = moves[0].to;

	(void)count;
	moves[0].to = moves[1].to;
	moves[1].to = to;
}

static void claim_data(struct move *moves, uint32_t *count)
{
	(void)count;
	moves[0].to.v = 0x2000;
}

static void claim_the_headers(struct move *moves, uint32_t *count)
{
	(void)count;
	moves[0].to.v = moves[0].from.v % 16;
}

static void claim_the_end(struct move *moves, uint32_t *count)
{
	(void)count;
	moves[0].to.v = 0xfffffff0 + moves[0].from.v % 16;
}

static void test_distrusts_the_claim(void **state)
{
	static void (*const claims[])(struct move *, uint32_t *) = {
		claim_nothing, claim_one_less,    claim_twice,         claim_shorter,
		claim_a_part,  claim_unaligned,   claim_another_place, claim_exchanged,
		claim_data,    claim_the_headers, claim_the_end,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		struct verify_report report;
		struct move moves[64];
		uint32_t count;
		struct diag diag;
		struct trial t;

		open_original(&t);
		relink(&t, 5, PLACEMENT_EXCHANGE, 0);
		count = t.relinked.moves.len;
		assert_true(count > 1 && count < 64);
		memcpy(moves, t.relinked.moves.data, count * sizeof(*moves));
		claims[i](moves, &count);
		if (verify_moves_of(&t, moves, count, &report, &diag) != STATUS_VERIFY)
			fail_msg("claim %zu passes", i);
		close_trial(&t);
	}
}

/* A pinned block may not be said to move, not even when it has moved. */
static void test_finds_a_pinned_block_that_moved(void **state)
{
	struct verify_report report;
	struct diag diag;
	struct trial t;
	uint32_t block;

	(void)state;
	open_original(&t);
	relink(&t, 1, PLACEMENT_EXCHANGE, 0);
	block = graph_block_at(&t.graph, t.relinked.moves.data[0].from);
	t.graph.blocks.data[block].pins = 1u << PIN_USER;
	assert_int_equal(verify(&t, &report, &diag), STATUS_VERIFY);
	assert_non_null(strstr(diag.message, "pinned"));
	close_trial(&t);
}

/* The order of the moves does not matter, and one that moves nothing is none. */
/* The output of a program is judged as that of a driver. */
static void test_keeps_code_of_drivers_in_its_section(void **state)
{
	struct trial t;
	struct verify_report report;
	struct diag diag;

	(void)state;
	open_original(&t);
	relink_one(&t, t.full.leaf, PLACEMENT_APPEND);
	expect_ok(&t, &report);
	/* Into a new section: only what is not pageable. */
	t.image.headers.subsystem = 1;
	t.image.import_count = 0;
	assert_int_equal(verify(&t, &report, &diag), STATUS_VERIFY);
	assert_string_not_equal(diag.message, "code of a driver has left its section");
	strcpy(t.image.sections[0].name, "PAGE");
	assert_int_equal(verify(&t, &report, &diag), STATUS_VERIFY);
	assert_string_equal(diag.message, "code of a driver has left its section");
	close_trial(&t);
}

static void test_accepts_any_sequence_of_moves(void **state)
{
	struct verify_report report;
	struct move moves[64];
	uint32_t count;
	struct diag diag;
	struct trial t;

	(void)state;
	open_original(&t);
	relink(&t, 2, PLACEMENT_EXCHANGE, 0);
	count = t.relinked.moves.len;
	assert_true(count < 63);
	for (uint32_t i = 0; i < count; i++)
		moves[count - 1 - i] = t.relinked.moves.data[i];
	moves[count] = (struct move){rva_of(0x9990), rva_of(0x9990), 3};
	assert_int_equal(verify_moves_of(&t, moves, count + 1, &report, &diag), STATUS_OK);
	close_trial(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distrusts_the_claim),
		cmocka_unit_test(test_finds_a_pinned_block_that_moved),
		cmocka_unit_test(test_keeps_code_of_drivers_in_its_section),
		cmocka_unit_test(test_accepts_any_sequence_of_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
