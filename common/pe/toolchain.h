/* Who made an image: linker, compilers, languages, and packers, by the signs that each
 * leaves.  Signs are facts; that they tell the toolchain is a guess, so each comes with
 * where it was found. */
#ifndef APPULSE_PE_TOOLCHAIN_H
#define APPULSE_PE_TOOLCHAIN_H

#include "pe/rich_header.h"

enum linker {
	LINKER_UNKNOWN,
	LINKER_MICROSOFT, /* link.exe */
	LINKER_LLD,
	LINKER_GNU, /* GNU ld */
};

enum { TOOLCHAIN_SIGNS_MAX = 16 };

struct toolchain_sign {
	const char *name;  /* "GCC", "Rust", "UPX" */
	char version[48];  /* empty when the sign does not tell */
	const char *found; /* where: "string in .rdata" */
	bool packer;       /* the image's own code is hidden by it */
};

struct toolchain {
	enum linker linker;
	const char *linker_found;            /* what tells; NULL when unknown */
	uint8_t linker_major, linker_minor;  /* as the header says */
	struct rich_header rich;
	struct toolchain_sign signs[TOOLCHAIN_SIGNS_MAX];
	uint32_t sign_count;
	/* The section with the most bytes that look compressed or encrypted, where they are
	 * half of the file and more; NULL otherwise. */
	const struct section *opaque;
};

/* Reads the file once.  NO_MEMORY. */
enum status toolchain_read(struct image *image, struct toolchain *ret_toolchain,
			   struct diag *diag);

/* "Microsoft link", "LLVM lld", "GNU ld", "unknown". */
const char *linker_name(enum linker linker);

/* The Visual Studio that a version of Microsoft's linker belongs to; NULL when not
 * known. */
const char *visual_studio_of(uint8_t linker_major, uint8_t linker_minor);

#endif
