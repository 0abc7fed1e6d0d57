#include "trace/probed_image.h"

#include <string.h>

#include "trace/probe.h"

bool image_is_probed(const struct image *image)
{
	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *section = &image->sections[i];
		const uint8_t *magic = image_bytes(image, section->rva, 8);

		if (strcmp(section->name, PROBE_DATA_SECTION) == 0 && magic &&
		    load_u64(magic) == PROBE_MAGIC)
			return true;
	}
	return false;
}

enum status image_refuse_probed(const struct image *image, struct diag *diag)
{
	if (!image_is_probed(image))
		return STATUS_OK;
	return diag_fail(diag, STATUS_INSTRUMENTED,
			 "the image is instrumented already, take the original");
}
