/* Packing columns.
 *
 * 100,000 functions and two million touches are some 25 MB of numbers and names.
 * Compressed and in base 64 they take about a quarter of that, and a browser unpacks
 * them in a fraction of a second by what it brings (DecompressionStream).  Rejected:
 * plain JSON arrays, three times as large and slow to parse; variable-length numbers,
 * which compress no better and need a decoder in the page.
 */
#include "report_pack.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/utf8.h"
#include "base/vec.h"

enum { ALIGNMENT = 4, LEVEL = 6 };

void pack_release(struct pack *pack)
{
	vec_release(pack);
}

/* Room for `size` bytes more, or NULL. */
static uint8_t *extend(struct pack *pack, size_t size)
{
	uint64_t need = (uint64_t)pack->len + size;
	uint64_t cap = pack->cap ? pack->cap : 65536;
	uint8_t *data;

	if (pack->failed || need > UINT32_MAX) {
		pack->failed = true;
		return NULL;
	}
	while (cap < need)
		cap *= 2;
	if (cap > UINT32_MAX)
		cap = UINT32_MAX;
	if (cap > pack->cap) {
		data = realloc(pack->data, cap);
		if (!data) {
			pack->failed = true;
			return NULL;
		}
		pack->data = data;
		pack->cap = (uint32_t)cap;
	}
	data = pack->data + pack->len;
	pack->len = (uint32_t)need;
	return data;
}

static void describe(struct pack *pack, json_t *object, const char *key, const char *kind,
		     uint32_t at, uint32_t count)
{
	json_t *column = json_pack("{s:s, s:I, s:I, s:I}", "kind", kind, "at", (json_int_t)at,
				   "count", (json_int_t)count, "bytes",
				   (json_int_t)(pack->len - at));

	if (json_object_set_new(object, key, column) != 0)
		pack->failed = true;
}

static uint32_t align(struct pack *pack)
{
	uint32_t gap = (ALIGNMENT - pack->len % ALIGNMENT) % ALIGNMENT;
	uint8_t *bytes = extend(pack, gap);

	if (bytes)
		memset(bytes, 0, gap);
	return pack->len;
}

static void put_numbers(struct pack *pack, json_t *object, const char *key, bool delta,
			const uint32_t *values, uint32_t count)
{
	uint32_t at = align(pack), before = 0;
	uint8_t *bytes = extend(pack, (size_t)count * sizeof(*values));

	for (uint32_t i = 0; bytes && i < count; i++) {
		uint32_t v = values[i] - before;

		for (unsigned k = 0; k < sizeof(v); k++)
			*bytes++ = (uint8_t)(v >> 8 * k);
		before = delta ? values[i] : 0;
	}
	describe(pack, object, key, delta ? "delta" : "u32", at, count);
}

void pack_numbers(struct pack *pack, json_t *object, const char *key,
		  const uint32_t *values, uint32_t count)
{
	put_numbers(pack, object, key, false, values, count);
}

void pack_deltas(struct pack *pack, json_t *object, const char *key,
		 const uint32_t *values, uint32_t count)
{
	put_numbers(pack, object, key, true, values, count);
}

void pack_texts(struct pack *pack, json_t *object, const char *key,
		const char *const *texts, uint32_t count)
{
	uint32_t at = pack->len;

	for (uint32_t i = 0; i < count; i++) {
		const char *text = texts[i] ? texts[i] : "";
		size_t size = strlen(text) + 1;
		uint8_t *bytes = extend(pack, size);

		if (!bytes)
			break;
		memcpy(bytes, text, size);
		utf8_clean((char *)bytes, true);
	}
	describe(pack, object, key, "text", at, count);
}

static void encode(const uint8_t *bytes, size_t size, char *p)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size; i += 3) {
		uint32_t three = (uint32_t)bytes[i] << 16;

		if (i + 1 < size)
			three |= (uint32_t)bytes[i + 1] << 8;
		if (i + 2 < size)
			three |= bytes[i + 2];
		*p++ = digits[three >> 18];
		*p++ = digits[three >> 12 & 63];
		*p++ = i + 1 < size ? digits[three >> 6 & 63] : '=';
		*p++ = i + 2 < size ? digits[three & 63] : '=';
	}
	*p = '\0';
}

enum status pack_finish(const struct pack *pack, char **ret_text, struct diag *diag)
{
	uLongf size = compressBound(pack->len);
	uint8_t *small = malloc(size);
	char *text = NULL;

	if (small && !pack->failed &&
	    compress2(small, &size, pack->data ? pack->data : small, pack->len, LEVEL) == Z_OK)
		text = malloc((size + 2) / 3 * 4 + 1);
	if (text)
		encode(small, size, text);
	free(small);
	if (!text)
		return diag_no_memory(diag);
	*ret_text = text;
	return STATUS_OK;
}
