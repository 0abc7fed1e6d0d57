/* What sort of program an image is, as far as it matters for what may be done to it. */
#ifndef APPULSE_PE_IMAGE_KIND_H
#define APPULSE_PE_IMAGE_KIND_H

#include "pe/exports.h"
#include "pe/image.h"

enum image_kind {
	IMAGE_DLL,
	IMAGE_EXE,
	IMAGE_DRIVER, /* runs in the kernel */
	IMAGE_NATIVE, /* a program that runs before the Windows subsystem */
	IMAGE_BOOT,   /* a Windows boot application */
	IMAGE_EFI,    /* an UEFI application or driver */
	IMAGE_OTHER,  /* another subsystem */
};

/* By its subsystem and by what it imports. */
enum image_kind image_kind_of(const struct image *image);

/* Whether code in this section of a driver must stay in it: the kernel pages sections of
 * such names out, and a driver locks one of them in memory as a whole before it calls what
 * must not be paged (Microsoft Learn, "Making Drivers Pageable"). */
bool section_is_pageable(const struct section *section);

/* "DLL", "driver", ... */
const char *image_kind_name(enum image_kind kind);

/* Whether it is an addon of Node.js. */
bool image_is_node_addon(const struct image *image, const struct exports *exports);

/* UNSUPPORTED for an image that cannot import the agent: drivers, native programs, boot
 * applications and firmware, and the DLLs that Windows' loader itself is made of. */
enum status image_check_instrumentable(const struct image *image,
				       const struct exports *exports, struct diag *diag);

#endif
