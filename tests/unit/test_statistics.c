/* Statistics, against published examples and exact small cases. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/statistics.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void near(double found, double expected, double tolerance)
{
	if (!(fabs(found - expected) <= tolerance))
		fail_msg("%.9g instead of %.9g", found, expected);
}

/* Steele, Lea and Flood's generator, as other implementations of it begin. */
static void test_random(void **unused)
{
	uint64_t state = 1234567;

	(void)unused;
	assert_true(random_next(&state) == 6457827717110365317u);
	assert_true(random_next(&state) == 3203168211198807973u);
}

/* What R's quantile(1:10) says, and of five values by hand. */
static void test_spread(void **unused)
{
	static const double ten[] = {7, 1, 10, 3, 9, 2, 8, 4, 6, 5};
	static const double five[] = {50, 15, 40, 20, 35};
	static const double one[] = {4};
	struct spread s;

	(void)unused;
	assert_true(spread_of(ten, COUNT(ten), &s));
	near(s.low_quartile, 3.25, 1e-12);
	near(s.median, 5.5, 1e-12);
	near(s.high_quartile, 7.75, 1e-12);
	near(s.percentile_95, 9.55, 1e-12);
	assert_true(spread_of(five, COUNT(five), &s));
	near(s.low_quartile, 20, 0);
	near(s.median, 35, 0);
	near(s.high_quartile, 40, 0);
	near(s.percentile_95, 48, 1e-12);
	assert_true(spread_of(one, COUNT(one), &s));
	near(s.low_quartile, 4, 0);
	near(s.percentile_95, 4, 0);
}

/* Of an odd number n of values the median of a resample is at most the k-th one with the
 * probability that (n + 1) / 2 or more of n draws are, each with k / n.  For 9 values
 * that is 0.0014, 0.0304, ..., and 0.0183 and 0.0557 for the sixth and seventh of 21. */
static void test_interval_of_odd_counts(void **unused)
{
	double values[21], low, high;

	(void)unused;
	for (unsigned i = 0; i < COUNT(values); i++)
		values[i] = i + 1;
	for (uint64_t seed = 0; seed < 5; seed++) {
		assert_true(median_interval(values, 9, seed, &low, &high));
		near(low, 2, 0);
		near(high, 8, 0);
		assert_true(median_interval(values, 21, seed, &low, &high));
		near(low, 7, 0);
		near(high, 15, 0);
	}
}

/* Two values: the median of a resample is one of them or, every second time, their
 * middle. */
static void test_interval_of_two(void **unused)
{
	static const double values[] = {10, 20};
	double low, high;

	(void)unused;
	assert_true(median_interval(values, 2, 1, &low, &high));
	near(low, 10, 0);
	near(high, 20, 0);
	assert_true(median_interval(values, 1, 1, &low, &high));
	near(low, 10, 0);
	near(high, 10, 0);
}

/* How far the interval's ends move with the seed is within its documented precision, and
 * one seed always gives the same. */
static void test_interval_and_seed(void **unused)
{
	double values[40], low, high, other_low, other_high;
	uint64_t state = 5;

	(void)unused;
	for (unsigned i = 0; i < COUNT(values); i++)
		values[i] = (double)(random_next(&state) >> 11) / 9007199254740992.0;
	assert_true(median_interval(values, COUNT(values), 1, &low, &high));
	assert_true(median_interval(values, COUNT(values), 1, &other_low, &other_high));
	assert_true(low == other_low && high == other_high);
	assert_true(median_interval(values, COUNT(values), 2, &other_low, &other_high));
	near(other_low, low, (high - low) / 10);
	near(other_high, high, (high - low) / 10);
}

/* Darwin's maize, heights of crossed plants above those of self-fertilized ones: two of
 * 15 are below, so 1 + 15 + 105 of 2^15 for one side. */
static void test_signs(void **unused)
{
	static const double maize[] = {49, -67, 8,  16, 6,  23, 28, 41,
				       14, 29,  56, 24, 75, 60, -48};
	static const double zeros[] = {0, 0, 0}, even[] = {1, -1, 0, 2, -2};
	static const double one_side[] = {-1, -2, -3, 0, -4, -5, -6, -7, -8};
	double many[1000];

	(void)unused;
	near(sign_test(maize, COUNT(maize)), 2 * 121 / 32768.0, 1e-15);
	near(sign_test(zeros, COUNT(zeros)), 1, 0);
	near(sign_test(even, COUNT(even)), 1, 0);
	near(sign_test(one_side, COUNT(one_side)), 2 / 256.0, 1e-15);
	for (unsigned i = 0; i < COUNT(many); i++)
		many[i] = i < 460 ? -1 : 1;
	/* pbinom(460, 1000, 0.5) of R and its like: 0.00620 */
	near(sign_test(many, COUNT(many)), 2 * 0.006222, 1e-5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_interval_of_odd_counts),
		cmocka_unit_test(test_interval_of_two),
		cmocka_unit_test(test_interval_and_seed),
		cmocka_unit_test(test_signs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
