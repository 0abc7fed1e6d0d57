#include "base/sha256.h"

#include <sha2.h>

struct sha256 sha256_of(const void *data, size_t size)
{
	struct sha256 hash;
	SHA2_CTX context;

	SHA256Init(&context);
	SHA256Update(&context, data, size);
	SHA256Final(hash.bytes, &context);
	return hash;
}

void sha256_hex(const struct sha256 *hash, char ret_hex[SHA256_HEX_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < SHA256_BYTES; i++) {
		ret_hex[2 * i] = digits[hash->bytes[i] >> 4];
		ret_hex[2 * i + 1] = digits[hash->bytes[i] & 15];
	}
	ret_hex[2 * SHA256_BYTES] = '\0';
}
