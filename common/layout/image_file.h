/* An image that is being written: its headers, sections and overlay, which can be
 * edited and emit as one file.  What nobody edits is not copied before that.
 *
 * Everything is edited in place by RVA; where the bytes stand in the file is
 * decided only at the end, so that sections may be added, the section table may
 * outgrow the headers, and the file alignment may change.
 */
#ifndef APPULSE_LAYOUT_IMAGE_FILE_H
#define APPULSE_LAYOUT_IMAGE_FILE_H

#include "base/diag.h"
#include "base/vec.h"
#include "pe/image.h"

/* A section of the output. */
struct file_section {
	char name[8];             /* as in the header, not NUL-terminated */
	struct rva rva;
	uint32_t virtual_size;    /* bytes */
	uint32_t characteristics; /* SECTION_* */
	uint8_t *data;            /* owned (heap); valid once `edited` */
	uint32_t data_size;       /* bytes of `data`; the file holds them padded */
	bool edited;              /* else the original's bytes at `old_raw` are the data */
	struct file_off old_raw;  /* where the data stood in the original; 0 for a new section */
};

struct image_file {
	const struct image *source;       /* borrowed */
	uint8_t *headers;                 /* owned: the original's headers */
	uint32_t headers_size;            /* bytes: SizeOfHeaders of the original */
	VEC(struct file_section) sections; /* ascending by RVA */
	/* What stands behind the last section's data. */
	uint8_t *overlay;                 /* owned; valid once `overlay_edited` */
	uint32_t overlay_size;            /* bytes, without the certificate table */
	bool overlay_edited;              /* else the original's bytes at `overlay_off` are it */
	struct file_off overlay_off;      /* where it stood in the original */
	struct data_directory directories[DIRECTORY_COUNT]; /* as they shall be */
	uint32_t file_alignment;          /* bytes; the original's unless changed */
	bool had_certificate;             /* a signature was dropped */
};

/* Takes over `image`, which must outlive the file.  UNSUPPORTED or MALFORMED when the
 * file has bytes that would get lost: between sections, or behind the signature.  On
 * failure nothing is owned. */
enum status image_file_init(struct image_file *file, const struct image *image,
			    struct diag *diag);
void image_file_release(struct image_file *file);

/* `size` editable bytes at `rva` in a section's data or the headers; NULL when
 * they are not all there. */
uint8_t *image_file_at(struct image_file *file, struct rva rva, uint32_t size);

/* `size` editable bytes that stood at file offset `off` of the original, in the
 * overlay or a section; NULL when they are not all there. */
uint8_t *image_file_at_offset(struct image_file *file, struct file_off off, uint32_t size);

/* Adds a section of `size` bytes of `fill` behind the last one.  `name` has at
 * most 8 bytes.  NO_ROOM when there would be too many. */
enum status image_file_add_section(struct image_file *file, const char *name, uint32_t size,
				   uint8_t fill, uint32_t characteristics,
				   struct rva *ret_rva, struct diag *diag);

/* The index of the section that holds `rva`, or UINT32_MAX. */
uint32_t image_file_section_at(const struct image_file *file, struct rva rva);

/* The finished file in `ret_bytes` (heap, the caller frees): raw data laid out
 * anew, counts and sizes of the headers made true, the certificate table
 * dropped, the checksum computed.  NO_ROOM when the section table does not fit
 * before the first section. */
enum status image_file_emit(struct image_file *file, uint8_t **ret_bytes, size_t *ret_size,
			    struct diag *diag);

#endif
