/* Whether B is more or less than A, of values that were measured in pairs.
 *
 * Each pair gives one ratio, B to A; what disturbs the machine for longer than a pair
 * disturbs both.  The figure is the median of the ratios, with an interval.  A difference
 * is only called one when two views agree that chance does not make it: the 95 % interval
 * (median_interval) does not hold 1, and so many ratios lie to one side as chance makes
 * less than once in fifty times (sign_test).  Against itself a thing then differs in less
 * than one of fifty comparisons.
 *
 * Both go by the sequence of the ratios alone, so it does not matter how far off a
 * disturbed run is.  Rejected: ranks of the differences (Wilcoxon), which need a third
 * fewer pairs where noise is even, but two runs of twenty that were disturbed hide a
 * difference of a half; means, which one run can spoil.
 */
#ifndef APPULSE_BASE_PAIRED_H
#define APPULSE_BASE_PAIRED_H

#include "statistics.h"

enum {
	PAIRED_MIN = 7,    /* with fewer pairs no difference could ever be told: the test's
			    * probability is at least 2 / 2^pairs */
	PAIRED_MAX = 1000, /* sign_test's smallest number still is one */
};

enum paired_verdict {
	PAIRED_SAME, /* no difference seen, which does not mean that there is none */
	PAIRED_LESS, /* B is less than A */
	PAIRED_MORE,
};

struct paired {
	struct spread a, b;
	bool has_ratio;     /* false: some value is 0 where the other one is not; then the
			     * signs of the differences alone decide, and the other figures
			     * are 0 */
	double ratio;       /* median of B / A */
	double low, high;   /* 95 % interval of it */
	double probability; /* of the sign test */
	enum paired_verdict verdict;
	double spread;   /* of the ratios' logarithms: their quartile distance as a
			  * standard deviation */
	uint64_t needed; /* pairs to see a difference of 2 % in three of four tries, at this
			  * spread; at least PAIRED_MIN */
};

/* Compares `count` pairs of values that are 0 or above, PAIRED_MIN to PAIRED_MAX of them.
 * `seed` is median_interval's.  False when memory is out. */
bool paired_compare(const double *a, const double *b, uint32_t count, uint64_t seed,
		    struct paired *ret_paired);

/* How many pairs with that spread of logarithms show a difference of `share` (0.02: two
 * percent) in three of four tries; at least PAIRED_MIN. */
uint64_t paired_needed(double spread, double share);

#endif
