#include "statistics.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

/* Of the bootstrap: the ends of the interval are then known to a thirtieth of its half
 * width. */
enum { RESAMPLES = 10000 };

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double *sorted_copy(const double *values, uint32_t count)
{
	double *sorted = malloc(count * sizeof(*sorted));

	assert(count > 0);
	if (!sorted)
		return NULL;
	memcpy(sorted, values, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_values);
	return sorted;
}

double quantile_of_sorted(const double *sorted, uint32_t count, double part)
{
	double at = part * (count - 1);
	uint32_t below = (uint32_t)at;

	if (below + 1 >= count)
		return sorted[count - 1];
	return sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]);
}

bool spread_of(const double *values, uint32_t count, struct spread *ret_spread)
{
	double *sorted = sorted_copy(values, count);

	if (!sorted)
		return false;
	*ret_spread = (struct spread){
		.low_quartile = quantile_of_sorted(sorted, count, 0.25),
		.median = quantile_of_sorted(sorted, count, 0.5),
		.high_quartile = quantile_of_sorted(sorted, count, 0.75),
		.percentile_95 = quantile_of_sorted(sorted, count, 0.95),
	};
	free(sorted);
	return true;
}

/* ---- the bootstrap ---- */

/* The median of as many values as there are, drawn from the sorted ones with putting
 * back.  How often each was drawn, `times`, tells what sorting would. */
static double resampled_median(const double *sorted, uint32_t count, uint32_t *times,
			       uint64_t *random)
{
	uint32_t below = (count - 1) / 2, above = count / 2; /* ranks in the middle */
	uint32_t passed = 0, i = 0;
	double low;

	memset(times, 0, count * sizeof(*times));
	for (uint32_t k = 0; k < count; k++)
		times[random_next(random) % count]++;
	while (passed + times[i] <= below)
		passed += times[i++];
	low = sorted[i];
	while (passed + times[i] <= above)
		passed += times[i++];
	return (low + sorted[i]) / 2;
}

bool median_interval(const double *values, uint32_t count, uint64_t seed, double *ret_low,
		     double *ret_high)
{
	double *sorted = sorted_copy(values, count);
	double *medians = malloc(RESAMPLES * sizeof(*medians));
	uint32_t *times = malloc(count * sizeof(*times));
	bool ok = sorted && medians && times;

	if (ok) {
		for (uint32_t i = 0; i < RESAMPLES; i++)
			medians[i] = resampled_median(sorted, count, times, &seed);
		qsort(medians, RESAMPLES, sizeof(*medians), compare_values);
		*ret_low = quantile_of_sorted(medians, RESAMPLES, 0.025);
		*ret_high = quantile_of_sorted(medians, RESAMPLES, 0.975);
	}
	free(sorted);
	free(medians);
	free(times);
	return ok;
}

/* ---- the sign test ---- */

double sign_test(const double *differences, uint32_t count)
{
	uint32_t above = 0, below = 0, fewer, all;
	double share, sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		above += differences[i] > 0;
		below += differences[i] < 0;
	}
	all = above + below;
	fewer = above < below ? above : below;
	/* The binomial distribution's terms from none on, each from the one before. */
	share = pow(0.5, all);
	for (uint32_t k = 0; k <= fewer; k++) {
		sum += share;
		share *= (double)(all - k) / (k + 1);
	}
	return fmin(1, 2 * sum);
}
