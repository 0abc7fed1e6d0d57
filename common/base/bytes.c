#include "base/bytes.h"

uint64_t read_uleb128(struct reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = read_u8(r);

		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return r->failed ? 0 : value;
	}
	r->failed = true;
	return 0;
}

int64_t read_sleb128(struct reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = read_u8(r);

		if (shift == 63 && byte != 0 && byte != 0x7f)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			if ((byte & 0x40) && shift + 7 < 64)
				value |= ~(uint64_t)0 << (shift + 7);
			return r->failed ? 0 : (int64_t)value;
		}
	}
	r->failed = true;
	return 0;
}
