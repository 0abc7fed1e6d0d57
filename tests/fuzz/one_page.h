/* The image that files with names are read for, and what holds for what they gave. */
#ifndef APPULSE_TESTS_ONE_PAGE_H
#define APPULSE_TESTS_ONE_PAGE_H

#include <string.h>

#include "fuzz_target.h"
#include "image_builder.h"
#include "symbols/symbol_set.h"

static inline void one_page_holds(bool holds, const char *promise)
{
	if (!holds)
		fuzz_fail(promise, NULL);
}

/* One image for all inputs: a page of code at 0x1000. */
static inline struct image *one_page_image(void)
{
	static struct built_image built;
	struct image_builder b;

	if (built.bytes)
		return &built.image;
	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	image_builder_fill(&b, 0xc3, 0x1000);
	built_image_open(&built, &b);
	image_builder_release(&b);
	one_page_holds(built.status == STATUS_OK, "the image is read");
	return &built.image;
}

/* Finishes the set that a file of `size` bytes gave. */
static inline void one_page_check_set(struct symbol_set *set, const struct image *image,
				      size_t size)
{
	size_t bytes = 0;

	one_page_holds(symbol_set_finish(set), "there is memory");
	for (uint32_t i = 0; i < set->symbols.len; i++) {
		const struct symbol *s = &set->symbols.data[i];

		bytes += strlen(s->name);
		one_page_holds(s->name[0] != '\0', "a symbol has a name");
		one_page_holds(image_is_code(image, s->rva), "a symbol lies in code");
		one_page_holds(i == 0 || s[-1].rva.v <= s->rva.v, "symbols ascend");
	}
	one_page_holds(bytes <= size, "names come from the file");
}

#endif
