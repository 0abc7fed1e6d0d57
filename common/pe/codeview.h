/* The CodeView entry of the debug directory: which PDB belongs to the image (LLVM's PDB
 * documentation, "The PDB Info Stream"). */
#ifndef APPULSE_PE_CODEVIEW_H
#define APPULSE_PE_CODEVIEW_H

#include "pe/debug_directory.h"

enum { CODEVIEW_GUID_TEXT = 39 }; /* "{8-4-4-4-12}" and NUL */

struct codeview {
	const char *pdb; /* path as the linker wrote it, in the image's bytes, or NULL */
	char guid[CODEVIEW_GUID_TEXT];
	uint32_t age;
};

/* The first entry of the form RSDS whose path ends within its data; without one `pdb` is
 * NULL. */
void codeview_read(const struct image *image, const struct debug_directory *debug,
		   struct codeview *ret_codeview);

/* The 16 bytes of a GUID as people and symbol servers write them (Microsoft Learn, "GUID
 * structure"). */
void codeview_guid_text(const uint8_t *guid, char ret_text[CODEVIEW_GUID_TEXT]);

#endif
