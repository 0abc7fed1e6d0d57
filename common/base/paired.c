#include "paired.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* A difference is told only when chance makes it less often than this. */
static const double CHANCE = 0.02;

/* Ends of the normal distribution: 98 % lie within the first, four fifths below the
 * second.  Steps of the sign test cost some of it: three of four tries are promised. */
static const double Z_98 = 2.326348, Z_POWER = 0.841621;

/* The quartile distance of the normal distribution, in standard deviations. */
static const double QUARTILE_DISTANCE = 1.348980;

/* A mean of normal values needs ((Z + Z_POWER) * spread / difference)^2 pairs, signs and
 * the median pi / 2 times as many (their asymptotic relative efficiency is 2 / pi;
 * Lehmann, "Nonparametrics", 1975).  The sign test is the stricter one of the two. */
uint64_t paired_needed(double spread, double share)
{
	static const double half_pi = 1.57079632679490;
	double times = (Z_98 + Z_POWER) * spread / log1p(share);

	return (uint64_t)fmax(PAIRED_MIN, ceil(half_pi * times * times));
}

/* Ratios and their logarithms; false when some pair has none. */
static bool take_ratios(const double *a, const double *b, uint32_t count, double *ratios,
			double *logarithms)
{
	for (uint32_t i = 0; i < count; i++) {
		bool none = !(a[i] > 0), neither = none && !(b[i] > 0);

		if (!neither && (none || !(b[i] > 0)))
			return false;
		ratios[i] = neither ? 1 : b[i] / a[i];
		logarithms[i] = log(ratios[i]);
	}
	return true;
}

static bool judge(const double *ratios, const double *logarithms, uint32_t count,
		  uint64_t seed, struct paired *p)
{
	struct spread of_ratios, of_logarithms;

	if (!spread_of(ratios, count, &of_ratios) ||
	    !spread_of(logarithms, count, &of_logarithms) ||
	    !median_interval(ratios, count, seed, &p->low, &p->high))
		return false;
	p->probability = sign_test(logarithms, count);
	p->has_ratio = true;
	p->ratio = of_ratios.median;
	p->spread = (of_logarithms.high_quartile - of_logarithms.low_quartile) /
		    QUARTILE_DISTANCE;
	p->needed = paired_needed(p->spread, 0.02);
	if (p->probability < CHANCE && p->high < 1)
		p->verdict = PAIRED_LESS;
	if (p->probability < CHANCE && p->low > 1)
		p->verdict = PAIRED_MORE;
	return true;
}

/* With a 0 among them: which of each pair is more is all that can be said. */
static void judge_signs(const double *a, const double *b, uint32_t count,
			double *differences, struct paired *p)
{
	uint32_t less = 0, more = 0;

	for (uint32_t i = 0; i < count; i++) {
		differences[i] = b[i] - a[i];
		less += differences[i] < 0;
		more += differences[i] > 0;
	}
	p->probability = sign_test(differences, count);
	if (p->probability < CHANCE)
		p->verdict = less > more ? PAIRED_LESS : PAIRED_MORE;
}

bool paired_compare(const double *a, const double *b, uint32_t count, uint64_t seed,
		    struct paired *ret_paired)
{
	struct paired p = {.verdict = PAIRED_SAME};
	double *ratios = malloc(count * sizeof(*ratios));
	double *logarithms = malloc(count * sizeof(*logarithms));
	bool ok = ratios && logarithms;

	assert(count >= PAIRED_MIN && count <= PAIRED_MAX);
	ok = ok && spread_of(a, count, &p.a) && spread_of(b, count, &p.b);
	if (ok && take_ratios(a, b, count, ratios, logarithms))
		ok = judge(ratios, logarithms, count, seed, &p);
	else if (ok)
		judge_signs(a, b, count, logarithms, &p);
	free(ratios);
	free(logarithms);
	if (ok)
		*ret_paired = p;
	return ok;
}
