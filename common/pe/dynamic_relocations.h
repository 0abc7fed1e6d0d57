/* Dynamic value relocations: places in code that the system changes when it loads the
 * image, for its own needs (winnt.h, IMAGE_DYNAMIC_RELOCATION_TABLE). */
#ifndef APPULSE_PE_DYNAMIC_RELOCATIONS_H
#define APPULSE_PE_DYNAMIC_RELOCATIONS_H

#include "pe/load_config.h"

/* Symbols: which change is asked for.  Larger ones are addresses of the kernel. */
enum {
	DYNAMIC_GUARD_RF_PROLOGUE = 1,
	DYNAMIC_GUARD_RF_EPILOGUE = 2,
	DYNAMIC_GUARD_IMPORT_CONTROL_TRANSFER = 3,
	DYNAMIC_GUARD_INDIR_CONTROL_TRANSFER = 4,
	DYNAMIC_GUARD_SWITCHTABLE_BRANCH = 5,
	DYNAMIC_ARM64X = 6,
	DYNAMIC_FUNCTION_OVERRIDE = 7,
	DYNAMIC_ARM64_KERNEL_IMPORT_CALL = 8,
	DYNAMIC_SYMBOL_LAST = 0xffff, /* what is larger is an address */
};

/* One place to change. */
struct dynamic_fixup {
	struct rva site;
	uint32_t rest; /* what the entry says beside the offset in the page */
};

/* The places of one symbol, ascending by site, each once. */
struct dynamic_group {
	uint64_t symbol;
	uint32_t symbol_group, flags; /* version 2 only */
	uint32_t first, count;        /* in `fixups` */
};

struct dynamic_relocations {
	struct rva rva; /* of the table; 0 when there is none */
	uint32_t size;  /* bytes, with its header */
	uint32_t version;
	struct rva offset_field, section_field; /* in the load configuration: 4 and 2 bytes
						 * that say where the table stands */
	struct dynamic_group *groups; /* in the image's arena, in the table's sequence */
	uint32_t group_count;
	struct dynamic_fixup *fixups; /* likewise */
	uint32_t fixup_count;
};

/* Whether the places of the symbol are instructions, and not words under an ordinary
 * kind of relocation. */
bool dynamic_symbol_names_instructions(uint64_t symbol);

/* MALFORMED when the table leaves its section or contradicts itself; UNSUPPORTED for
 * symbols and versions that are not understood, with the reason. */
enum status dynamic_relocations_read(struct image *image, const struct load_config *config,
				     struct dynamic_relocations *ret_relocations,
				     struct diag *diag);

/* Writes the table anew into `ret_bytes` (heap, the caller frees): the groups of `was`
 * with `fixups`, which need not ascend. */
enum status dynamic_relocations_encode(const struct dynamic_relocations *was,
				       const struct dynamic_fixup *fixups,
				       uint8_t **ret_bytes, uint32_t *ret_size,
				       struct diag *diag);

#endif
