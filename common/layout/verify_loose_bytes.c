/* What the file holds outside of the headers, the sections, the symbol table and
 * the certificate: overlays, mostly.
 *
 * Their place may change, since sections may be added or aligned anew, but their
 * bytes and their sequence may not.  Zeros at the ends of a stretch are alignment
 * and do not count.
 */
#include "layout/verify_state.h"

#include <stdlib.h>
#include <string.h>

struct extent {
	uint64_t begin, end; /* file offsets; end is exclusive */
};

struct extents {
	struct extent *data;
	uint32_t count;
};

static int compare_extents(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Exclusive end of the symbol and string tables. */
static uint64_t symbols_end(const struct image *image)
{
	uint64_t end = (uint64_t)image->headers.symbol_table.v +
		       (uint64_t)image->headers.symbol_count * SYMBOL_BYTES;

	if (end + 4 <= image->size)
		end += load_u32(image->bytes + end);
	return end;
}

/* All that other steps look at, ascending. */
static bool known_extents(const struct image *image, struct extents *ret_known)
{
	struct data_directory certificate = image->directories[DIRECTORY_CERTIFICATE];
	struct extent *data = calloc((size_t)image->section_count + 4, sizeof(*data));
	uint32_t count = 0;

	if (!data)
		return false;
	data[count++] = (struct extent){0, image->headers.size_of_headers};
	for (uint32_t i = 0; i < image->section_count; i++)
		data[count++] = (struct extent){image->sections[i].raw.v,
						(uint64_t)image->sections[i].raw.v +
							image->sections[i].raw_size};
	if (coff_symbols_present(image))
		data[count++] =
			(struct extent){image->headers.symbol_table.v, symbols_end(image)};
	if (certificate.size)
		data[count++] =
			(struct extent){certificate.rva.v,
					(uint64_t)certificate.rva.v + certificate.size};
	qsort(data, count, sizeof(*data), compare_extents);
	*ret_known = (struct extents){data, count};
	return true;
}

/* What lies between, without zeros at both ends. */
static bool loose_extents(const struct image *image, struct extents *ret_loose)
{
	struct extents known;
	struct extent *data;
	uint32_t count = 0;
	uint64_t pos = 0;

	if (!known_extents(image, &known))
		return false;
	data = calloc((size_t)known.count + 1, sizeof(*data));
	for (uint32_t i = 0; data && i <= known.count; i++) {
		uint64_t next = i < known.count ? known.data[i].begin : image->size;
		struct extent gap = {pos, next < image->size ? next : image->size};

		while (gap.begin < gap.end && image->bytes[gap.begin] == 0)
			gap.begin++;
		while (gap.begin < gap.end && image->bytes[gap.end - 1] == 0)
			gap.end--;
		if (gap.begin < gap.end)
			data[count++] = gap;
		if (i < known.count && known.data[i].end > pos)
			pos = known.data[i].end;
	}
	free(known.data);
	*ret_loose = (struct extents){data, count};
	return data != NULL;
}

static enum status compare_loose(struct verifier *v, const struct extents *was,
				 const struct extents *is)
{
	const struct image *old_image = v->old_image, *image = v->new_image;

	if (was->count != is->count)
		return verify_differs(v, rva_of(0), was->count, is->count,
				      "the number of overlays");
	for (uint32_t i = 0; i < was->count; i++) {
		uint64_t size = was->data[i].end - was->data[i].begin;

		if (size != is->data[i].end - is->data[i].begin ||
		    memcmp(old_image->bytes + was->data[i].begin,
			   image->bytes + is->data[i].begin, size) != 0)
			return verify_differs(v, rva_of(0), was->data[i].begin,
					      is->data[i].begin,
					      "the overlay at a file offset has changed");
	}
	return STATUS_OK;
}

enum status verify_loose_bytes(struct verifier *v)
{
	struct extents was = {0}, is = {0};
	enum status status;

	if (loose_extents(v->old_image, &was) && loose_extents(v->new_image, &is))
		status = compare_loose(v, &was, &is);
	else
		status = diag_no_memory(v->diag);
	free(was.data);
	free(is.data);
	return status;
}
