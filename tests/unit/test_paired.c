/* Paired comparisons: what they call a difference, and how often they are wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/paired.h"
#include "base/random.h"

enum { PAIRS = 20 };

static void near(double found, double expected, double tolerance)
{
	if (!(fabs(found - expected) <= tolerance))
		fail_msg("%.9g instead of %.9g", found, expected);
}

/* Above 0, below 1. */
static double uniform(uint64_t *state)
{
	return ((double)(random_next(state) >> 11) + 0.5) / 9007199254740992.0;
}

/* A time of about 1 on a machine with much to do: some noise, and now and then far too
 * long. */
static double noisy_time(uint64_t *state, double noise)
{
	double sum = -6;

	for (unsigned i = 0; i < 12; i++)
		sum += uniform(state);
	return exp(noise * sum) * (uniform(state) < 0.1 ? 1 + 3 * uniform(state) : 1);
}

static struct paired compare_noisy(uint64_t *state, double noise, double times)
{
	double a[PAIRS], b[PAIRS];
	struct paired p;

	for (unsigned i = 0; i < PAIRS; i++) {
		a[i] = noisy_time(state, noise);
		b[i] = times * noisy_time(state, noise);
	}
	assert_true(paired_compare(a, b, PAIRS, 1, &p));
	return p;
}

/* By hand: ratios 1/2 (8 times) and 1. */
static void test_figures(void **unused)
{
	static const double a[] = {10, 20, 10, 20, 10, 20, 10, 20, 30};
	static const double b[] = {5, 10, 5, 10, 5, 10, 5, 10, 30};
	struct paired p;

	(void)unused;
	assert_true(paired_compare(a, b, 9, 1, &p));
	assert_true(p.has_ratio);
	near(p.a.median, 20, 0);
	near(p.b.median, 10, 0);
	near(p.ratio, 0.5, 0);
	near(p.low, 0.5, 0);
	near(p.high, 0.5, 0);
	near(p.probability, 2 / 256.0, 1e-12);
	assert_int_equal(p.verdict, PAIRED_LESS);
	near(p.spread, 0, 0);
	assert_int_equal(p.needed, PAIRED_MIN);
	assert_true(paired_compare(b, a, 9, 1, &p));
	near(p.ratio, 2, 0);
	assert_int_equal(p.verdict, PAIRED_MORE);
}

static void test_equal_values(void **unused)
{
	static const double a[] = {3, 0, 3, 3, 0, 3, 3, 3};
	double b[8] = {3, 0, 3, 3, 0, 3, 3, 3};
	struct paired p;

	(void)unused;
	assert_true(paired_compare(a, b, 8, 1, &p));
	assert_true(p.has_ratio);
	near(p.ratio, 1, 0);
	near(p.probability, 1, 0);
	assert_int_equal(p.verdict, PAIRED_SAME);
	b[1] = 1; /* nothing in A, something in B */
	assert_true(paired_compare(a, b, 8, 1, &p));
	assert_false(p.has_ratio);
	assert_int_equal(p.verdict, PAIRED_SAME);
	near(p.b.median, 3, 0);
}

/* All hard faults gone: there is no ratio, but a difference. */
static void test_nothing_left(void **unused)
{
	static const double a[] = {3, 4, 3, 3, 5, 3, 3}, none[7] = {0};
	struct paired p;

	(void)unused;
	assert_true(paired_compare(a, none, 7, 1, &p));
	assert_false(p.has_ratio);
	assert_int_equal(p.verdict, PAIRED_LESS);
	near(p.probability, 2.0 / 128, 1e-9);
	assert_true(paired_compare(none, a, 7, 1, &p));
	assert_false(p.has_ratio);
	assert_int_equal(p.verdict, PAIRED_MORE);
}

/* Both views must agree.  Of 13 pairs three lie to the other side: that is no more than
 * chance makes now and then, though the interval does not hold 1.  Of 14, one: enough. */
static void test_both_views_count(void **unused)
{
	double a[14], b[14];
	struct paired p;

	(void)unused;
	for (unsigned i = 0; i < 14; i++) {
		a[i] = 100;
		b[i] = i < 3 ? 50 : 101 + i / 10.0;
	}
	assert_true(paired_compare(a, b, 13, 1, &p));
	assert_true(p.low > 1);
	assert_true(p.probability > 0.02);
	assert_int_equal(p.verdict, PAIRED_SAME);
	b[0] = b[1] = 101;
	assert_true(paired_compare(a, b, 14, 1, &p));
	near(p.probability, 30 / 16384.0, 1e-12);
	assert_int_equal(p.verdict, PAIRED_MORE);
}

/* A thing against itself, 500 times: one in 85 differs, since of 20 signs 4 or fewer are
 * of one kind that often; the interval alone would call one in twenty different. */
static void test_nothing_is_seen_where_nothing_is(void **unused)
{
	uint64_t state = 11;
	unsigned seen = 0, held = 0;

	(void)unused;
	for (unsigned i = 0; i < 500; i++) {
		struct paired p = compare_noisy(&state, 0.05, 1);

		seen += p.verdict != PAIRED_SAME;
		held += p.low <= 1 && p.high >= 1;
	}
	assert_in_range(seen, 0, 13);
	/* The interval alone is a bootstrap's, which is a little too narrow. */
	assert_in_range(held, 455, 490);
}

static void test_what_is_there_is_seen(void **unused)
{
	uint64_t state = 12;
	unsigned right = 0;

	(void)unused;
	for (unsigned i = 0; i < 50; i++) {
		right += compare_noisy(&state, 0.05, 1.3).verdict == PAIRED_MORE;
		right += compare_noisy(&state, 0.05, 0.77).verdict == PAIRED_LESS;
	}
	assert_in_range(right, 95, 100);
}

/* With as many pairs as are said to be needed, a difference of 2 % is seen in about three
 * of four tries.  Ratios of two noises spread by their noise times the root of 2. */
static void test_needed_pairs(void **unused)
{
	const double noise = 0.02;
	uint64_t state = 13, needed = paired_needed(noise * sqrt(2), 0.02);
	double a[PAIRED_MAX], b[PAIRED_MAX];
	unsigned seen = 0;

	(void)unused;
	assert_in_range(needed, 30, 35);
	for (unsigned i = 0; i < 100; i++) {
		struct paired p;

		for (uint64_t k = 0; k < needed; k++) {
			double x = -6, y = -6;

			for (unsigned n = 0; n < 12; n++) {
				x += uniform(&state);
				y += uniform(&state);
			}
			a[k] = exp(noise * x);
			b[k] = 1.02 * exp(noise * y);
		}
		assert_true(paired_compare(a, b, (uint32_t)needed, 1, &p));
		seen += p.verdict == PAIRED_MORE;
	}
	assert_in_range(seen, 66, 90);
	assert_int_equal(paired_needed(0, 0.02), PAIRED_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_equal_values),
		cmocka_unit_test(test_nothing_left),
		cmocka_unit_test(test_both_views_count),
		cmocka_unit_test(test_nothing_is_seen_where_nothing_is),
		cmocka_unit_test(test_what_is_there_is_seen),
		cmocka_unit_test(test_needed_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
