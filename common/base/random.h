/* Random numbers that a seed decides, the same ones on every machine. */
#ifndef APPULSE_BASE_RANDOM_H
#define APPULSE_BASE_RANDOM_H

#include <stdint.h>

/* The next of 2^64 equally likely numbers; `state` begins as the seed, any number. */
uint64_t random_next(uint64_t *state);

#endif
