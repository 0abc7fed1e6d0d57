/* Which page of an image each page of its file becomes. */
#ifndef APPULSE_PROFILE_IMAGE_PAGES_H
#define APPULSE_PROFILE_IMAGE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/diag.h"
#include "pe/image.h"

enum { IMAGE_PAGE_SIZE = 4096 };

struct image_page {
	struct rva rva;  /* a multiple of IMAGE_PAGE_SIZE */
	bool mapped;     /* part of the headers or of a section: else it is never mapped */
	bool code;       /* of an executable section that cannot be written, as `pages` counts */
};

struct image_pages {
	struct image_page *pages; /* owned: one for each page of the file */
	uint32_t count;
	uint32_t mapped, code;    /* those of them */
	uint32_t *by_rva;         /* owned: for each page of the image its page of the
				   * file, IMAGE_NO_PAGE where there is none */
	uint32_t image_count;     /* pages of the image */
};

#define IMAGE_NO_PAGE UINT32_MAX

/* Reads the section table.  UNSUPPORTED when a section does not begin at a page of
 * the file: then Wine reads it into private memory instead of mapping it; NO_MEMORY. */
enum status image_pages_init(struct image_pages *pages, const struct image *image,
			     struct diag *diag);

/* The page of the file that is mapped at `rva`, or IMAGE_NO_PAGE. */
uint32_t image_pages_find(const struct image_pages *pages, struct rva rva);

void image_pages_release(struct image_pages *pages);

#endif
