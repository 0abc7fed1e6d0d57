/* What can be said of measured values. */
#ifndef APPULSE_BASE_STATISTICS_H
#define APPULSE_BASE_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

/* Where values lie: a quarter of them is below `low_quartile`, half below `median`,
 * three quarters below `high_quartile`, 19 of 20 below `percentile_95`. */
struct spread {
	double low_quartile, median, high_quartile, percentile_95;
};

/* The value below which the share `part`, 0 to 1, of the values lies.  They are sorted
 * and at least one; between two of them it is interpolated (definition 7 of Hyndman and
 * Fan, "Sample Quantiles in Statistical Packages", 1996; R's and NumPy's default). */
double quantile_of_sorted(const double *sorted, uint32_t count, double part);

/* Of values in any sequence, at least one.  False when memory is out. */
bool spread_of(const double *values, uint32_t count, struct spread *ret_spread);

/* An interval that holds the median of what the values, at least one, are a sample of in
 * 95 % of all samples, or nearly so: the bootstrap's percentile interval (Efron and
 * Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13).  `seed` decides
 * which samples are drawn.  False when memory is out. */
bool median_interval(const double *values, uint32_t count, uint64_t seed, double *ret_low,
		     double *ret_high);

/* How probable it is that differences lie to one side of zero as often as these or more
 * often, if each lies to either side like heads and tails: the sign test, both sides.
 * Zeros are left out; without any others it is 1. */
double sign_test(const double *differences, uint32_t count);

#endif
