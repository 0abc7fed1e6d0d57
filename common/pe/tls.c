#include "pe/tls.h"

#include <string.h>

enum { TLS_DIRECTORY_BYTES = 40, TLS_CALLBACKS = 24, CALLBACK_BYTES = 8 };

/* The VA at `field` as an RVA, 0 when it is null.  One past the image's end
 * passes: the end of a template may be there. */
static enum status read_va(const struct image *image, struct rva field, uint64_t va,
			   struct rva *ret_rva, struct diag *diag)
{
	const struct pe_headers *h = &image->headers;

	if (va == 0) {
		*ret_rva = rva_of(0);
		return STATUS_OK;
	}
	if (va < h->image_base || va - h->image_base > h->size_of_image)
		return diag_fail_at(diag, STATUS_MALFORMED, field,
				    "a pointer of the TLS directory leads outside the "
				    "image");
	*ret_rva = rva_of((uint32_t)(va - h->image_base));
	return STATUS_OK;
}

static enum status count_callbacks(const struct image *image, struct rva array,
				   uint32_t *ret_count, struct diag *diag)
{
	struct reader r = image_reader(image, array);
	uint32_t count = 0;

	while (read_u64(&r) != 0)
		count++;
	if (r.failed)
		return diag_fail_at(diag, STATUS_MALFORMED, array,
				    "the TLS callback array leaves the file's data");
	*ret_count = count;
	return STATUS_OK;
}

static enum status read_callbacks(struct image *image, struct rva array, struct tls *tls,
				  struct diag *diag)
{
	struct reader r = image_reader(image, array);
	enum status status = count_callbacks(image, array, &tls->count, diag);

	if (status != STATUS_OK)
		return status;
	tls->callbacks = arena_array(&image->arena, tls->count, sizeof(*tls->callbacks));
	if (!tls->callbacks)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < tls->count && status == STATUS_OK; i++) {
		struct tls_callback *callback = &tls->callbacks[i];

		callback->site = rva_add(array, i * CALLBACK_BYTES);
		status = read_va(image, callback->site, read_u64(&r), &callback->target,
				 diag);
	}
	return status;
}

enum status tls_read(struct image *image, struct tls *ret_tls, struct diag *diag)
{
	struct rva rva = image->directories[DIRECTORY_TLS].rva;
	struct rva callbacks = {0};
	const uint8_t *p = image_bytes(image, rva, TLS_DIRECTORY_BYTES);
	struct tls tls = {0};
	enum status status;

	if (rva.v == 0) {
		*ret_tls = tls;
		return STATUS_OK;
	}
	if (!p)
		return diag_fail_at(diag, STATUS_MALFORMED, rva,
				    "the TLS directory leaves the file's data");
	status = read_va(image, rva, load_u64(p), &tls.data_begin, diag);
	if (status == STATUS_OK)
		status = read_va(image, rva_add(rva, 8), load_u64(p + 8), &tls.data_end,
				 diag);
	if (status == STATUS_OK)
		status = read_va(image, rva_add(rva, TLS_CALLBACKS),
				 load_u64(p + TLS_CALLBACKS), &callbacks, diag);
	if (status == STATUS_OK && tls.data_end.v < tls.data_begin.v)
		status = diag_fail_at(diag, STATUS_MALFORMED, rva,
				      "the TLS template ends before it begins");
	if (status == STATUS_OK && callbacks.v)
		status = read_callbacks(image, callbacks, &tls, diag);
	if (status != STATUS_OK)
		return status;
	if (tls.data_begin.v == tls.data_end.v)
		tls.data_begin = tls.data_end = rva_of(0);
	*ret_tls = tls;
	return STATUS_OK;
}
