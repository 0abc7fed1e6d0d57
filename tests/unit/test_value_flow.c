/* Joining values: what comes together at a label must hold for each way that leads there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/value_flow.h"

enum {
	ROUNDS = 200000,
	LABEL = 12 /* the id of the label, which ways may bring as well */
};

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static bool has_table(const struct value *value)
{
	return value->kind >= VALUE_ADDRESS && value->kind != VALUE_SCALED;
}

static bool has_index(const struct value *value)
{
	return value->kind >= VALUE_SCALED;
}

/* Any value, out of few, so that two often have something in common.  What its kind does
 * not have is 0. */
static struct value random_value(uint32_t *state)
{
	static const uint8_t widths[] = {1, 2, 4, 8};
	static const uint32_t ids[] = {NO_ID, 4, 5, 8, LABEL};
	struct value value = {.kind = (uint8_t)(next_random(state) % (VALUE_SMALL + 1))};

	if (value.kind == VALUE_OPEN)
		return value;
	value.width = widths[next_random(state) % 4];
	value.id = ids[next_random(state) % 5];
	if (has_table(&value))
		value.table = rva_of(next_random(state) % 2 * 8);
	if (has_index(&value))
		value.index = ids[next_random(state) % 5];
	if (value.kind == VALUE_TARGET)
		value.base = rva_of(next_random(state) % 2 * 8);
	value.survived =
		has_table(&value) && value.kind != VALUE_STACK && next_random(state) % 2;
	return value;
}

static void assert_same(struct value a, struct value b)
{
	assert_int_equal(a.kind, b.kind);
	assert_true(value_same(&a, &b));
}

/* What a kind may be taken for: a place on the stack may be anything. */
static bool kind_covers(unsigned kind, unsigned what)
{
	return kind == what || kind == VALUE_STACK ||
	       (kind == VALUE_WHOLE && what == VALUE_ADDRESS) ||
	       (kind == VALUE_COMPUTED && what != VALUE_STACK);
}

/* Each thing that `joined` says of the value is true of `value`. */
static void assert_covers(const struct value *joined, const struct value *value)
{
	if (value->kind == VALUE_OPEN)
		return;
	assert_true(kind_covers(joined->kind, value->kind));
	assert_true(joined->width >= value->width);
	assert_true(joined->id == LABEL || joined->id == value->id);
	if (joined->kind == VALUE_STACK) {
		/* Nothing but an id that is new names another place than before. */
		if (joined->id != LABEL && value->kind == VALUE_STACK)
			assert_int_equal(joined->table.v, value->table.v);
		else if (joined->id != LABEL)
			fail_msg("a place on the stack is equal to what is none");
		return;
	}
	if (joined->kind == VALUE_COMPUTED || joined->kind == VALUE_WHOLE)
		return;
	assert_int_equal(joined->table.v, value->table.v);
	assert_int_equal(joined->base.v, value->base.v);
	assert_true(joined->index == NO_ID || joined->index == value->index);
	assert_true(joined->survived || !value->survived);
	if (joined->kind == VALUE_ENTRY || joined->kind == VALUE_SMALL)
		assert_int_equal(joined->width, value->width);
}

static void test_join_covers_both(void **unused)
{
	uint32_t state = 0x2545f491;

	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		struct value a = random_value(&state), b = random_value(&state);
		struct value joined = value_join(&a, &b, LABEL);

		assert_covers(&joined, &a);
		assert_covers(&joined, &b);
		assert_same(joined, value_join(&b, &a, LABEL));
		assert_same(a, value_join(&a, &a, LABEL));
		/* What is covered adds nothing: evaluating comes to an end. */
		assert_same(joined, value_join(&joined, &a, LABEL));
		assert_same(joined, value_join(&joined, &b, LABEL));
	}
}

/* The sequence of the ways to a label does not matter. */
static void test_sequence_of_ways(void **unused)
{
	uint32_t state = 0x9e3779b9;

	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		struct value a = random_value(&state), b = random_value(&state);
		struct value c = random_value(&state), ab = value_join(&a, &b, LABEL);
		struct value bc = value_join(&b, &c, LABEL);

		assert_same(value_join(&ab, &c, LABEL), value_join(&a, &bc, LABEL));
	}
}

/* Two places 8 bytes apart are no third one with the id of both. */
static void test_places_on_the_stack(void **unused)
{
	struct value a = value_fresh(VALUE_STACK, 4), b = a, joined;

	(void)unused;
	b.table = rva_of(8);
	joined = value_join(&a, &b, LABEL);
	assert_int_equal(joined.kind, VALUE_STACK);
	assert_int_equal(joined.id, LABEL);
	joined = value_join(&b, &b, LABEL);
	assert_int_equal(joined.id, 4);
	assert_int_equal(joined.table.v, 8);
}

/* A part of a value stays that part when it is made wider. */
static void test_lower_part(void **unused)
{
	struct value value = value_lower_part(value_fresh(VALUE_WHOLE, 4), 1);

	(void)unused;
	assert_int_equal(value.id, 5);
	assert_int_equal(value.width, 1);
	assert_int_equal(value_lower_part(value, 4).id, 5);
	value.width = 8;
	assert_int_equal(value_lower_part(value, 2).id, 5);
	assert_int_equal(value_lower_part(value_fresh(VALUE_WHOLE, 4), 2).id, 6);
	assert_int_equal(value_lower_part(value_fresh(VALUE_WHOLE, 4), 4).id, 4);
	assert_int_equal(value_lower_part(value_fresh(VALUE_STACK, 4), 4).id, NO_ID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_join_covers_both),
		cmocka_unit_test(test_sequence_of_ways),
		cmocka_unit_test(test_places_on_the_stack),
		cmocka_unit_test(test_lower_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
