/* SHA-256 of a memory range (FIPS 180-4).  It names images and traces: the same
 * bytes are the same thing on every machine. */
#ifndef APPULSE_BASE_SHA256_H
#define APPULSE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_HEX_SIZE = 65 };

struct sha256 {
	uint8_t bytes[SHA256_BYTES];
};

struct sha256 sha256_of(const void *data, size_t size);

/* Lower-case hexadecimal with a NUL. */
void sha256_hex(const struct sha256 *hash, char ret_hex[SHA256_HEX_SIZE]);

#endif
