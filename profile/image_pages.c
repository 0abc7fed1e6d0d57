/* Which page of an image each page of its file becomes.
 *
 * Wine maps every section by itself, at its RVA, from its place in the file.  The
 * kernel maps whole pages only: where a section begins elsewhere, Wine reserves
 * memory and reads the section into it (observed: Wine 8.0,
 * dlls/ntdll/unix/virtual.c, map_file_into_view), so that its first touch is no
 * disk read of that page any more and there is nothing to measure.
 */
#include "image_pages.h"

#include <stdlib.h>
#include <string.h>

static enum status refuse(const struct image *image, struct diag *diag)
{
	return diag_fail(diag, STATUS_UNSUPPORTED,
			 "'%s' is not mapped by Wine but read as a whole, since its sections "
			 "do not begin at pages of the file (FileAlignment %u); measure what "
			 "'appulse-reorder --order original --file-alignment 4096' makes of it",
			 image->path, image->headers.file_alignment);
}

static void put_range(struct image_pages *pages, uint32_t file_off, uint32_t rva,
		      uint32_t size, bool code)
{
	uint32_t first = file_off / IMAGE_PAGE_SIZE;
	uint32_t count = size / IMAGE_PAGE_SIZE + (size % IMAGE_PAGE_SIZE != 0);

	for (uint32_t i = 0; i < count && first + i < pages->count; i++) {
		struct image_page *page = &pages->pages[first + i];

		if (page->mapped)
			continue; /* headers and sections never share one (image.h) */
		*page = (struct image_page){rva_of(rva + i * IMAGE_PAGE_SIZE), true, code};
		if (page->rva.v / IMAGE_PAGE_SIZE < pages->image_count)
			pages->by_rva[page->rva.v / IMAGE_PAGE_SIZE] = first + i;
		pages->mapped++;
		pages->code += code;
	}
}

/* What of a section comes from the file. */
static uint32_t section_file_bytes(const struct section *section)
{
	uint64_t memory = ((uint64_t)section->virtual_size + IMAGE_PAGE_SIZE - 1) &
			  ~(uint64_t)(IMAGE_PAGE_SIZE - 1);

	return section->raw_size < memory ? section->raw_size : (uint32_t)memory;
}

enum status image_pages_init(struct image_pages *pages, const struct image *image,
			     struct diag *diag)
{
	struct image_pages made = {0};

	if (image->headers.section_alignment < IMAGE_PAGE_SIZE)
		return refuse(image, diag);
	for (uint32_t i = 0; i < image->section_count; i++)
		if (image->sections[i].raw_size > 0 &&
		    image->sections[i].raw.v % IMAGE_PAGE_SIZE != 0)
			return refuse(image, diag);
	made.count = (uint32_t)((image->size + IMAGE_PAGE_SIZE - 1) / IMAGE_PAGE_SIZE);
	made.image_count = image->headers.size_of_image / IMAGE_PAGE_SIZE + 1;
	made.pages = calloc((size_t)made.count + 1, sizeof(*made.pages));
	made.by_rva = malloc(made.image_count * sizeof(*made.by_rva));
	if (!made.pages || !made.by_rva) {
		image_pages_release(&made);
		return diag_no_memory(diag);
	}
	memset(made.by_rva, 0xff, made.image_count * sizeof(*made.by_rva));
	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *s = &image->sections[i];
		uint32_t flags = s->characteristics;

		put_range(&made, s->raw.v, s->rva.v, section_file_bytes(s),
			  (flags & SECTION_EXECUTE) && !(flags & SECTION_WRITE));
	}
	put_range(&made, 0, 0, image->headers.size_of_headers, false);
	*pages = made;
	return STATUS_OK;
}

uint32_t image_pages_find(const struct image_pages *pages, struct rva rva)
{
	uint32_t at = rva.v / IMAGE_PAGE_SIZE;

	return at < pages->image_count ? pages->by_rva[at] : IMAGE_NO_PAGE;
}

void image_pages_release(struct image_pages *pages)
{
	free(pages->pages);
	free(pages->by_rva);
	memset(pages, 0, sizeof(*pages));
}
