#include "pe/codeview.h"

#include <stdio.h>
#include <string.h>

/* "RSDS", GUID, age, path. */
enum { CODEVIEW_GUID = 4, CODEVIEW_AGE = 20, CODEVIEW_PATH = 24 };

void codeview_guid_text(const uint8_t *g, char ret_text[CODEVIEW_GUID_TEXT])
{
	snprintf(ret_text, CODEVIEW_GUID_TEXT,
		 "{%08X-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X}", load_u32(g),
		 load_u16(g + 4), load_u16(g + 6), g[8], g[9], g[10], g[11], g[12], g[13],
		 g[14], g[15]);
}

void codeview_read(const struct image *image, const struct debug_directory *debug,
		   struct codeview *ret_codeview)
{
	memset(ret_codeview, 0, sizeof(*ret_codeview));
	for (uint32_t i = 0; i < debug->count; i++) {
		const struct debug_entry *entry = &debug->data[i];
		const uint8_t *data = image->bytes + entry->data_off.v;

		if (entry->type != DEBUG_TYPE_CODEVIEW || entry->size <= CODEVIEW_PATH ||
		    memcmp(data, "RSDS", 4) != 0 ||
		    !memchr(data + CODEVIEW_PATH, 0, entry->size - CODEVIEW_PATH))
			continue;
		codeview_guid_text(data + CODEVIEW_GUID, ret_codeview->guid);
		ret_codeview->age = load_u32(data + CODEVIEW_AGE);
		ret_codeview->pdb = (const char *)data + CODEVIEW_PATH;
		return;
	}
}
