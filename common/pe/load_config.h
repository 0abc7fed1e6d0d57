/* The load configuration and the control-flow guard tables in it
 * (Microsoft Learn, "IMAGE_LOAD_CONFIG_DIRECTORY64"; PE/COFF specification,
 * "The Load Configuration Structure"). */
#ifndef APPULSE_PE_LOAD_CONFIG_H
#define APPULSE_PE_LOAD_CONFIG_H

#include "pe/image.h"

/* Flags in the first byte behind an entry's RVA (IMAGE_GUARD_FLAG_...). */
enum {
	GUARD_TARGET_SUPPRESSED = 1,
	GUARD_TARGET_EXPORT_SUPPRESSED = 2,
	GUARD_TARGET_EXCEPTION_HANDLER = 4,
	GUARD_TARGET_XFG = 8, /* a hash stands before the function */
	GUARD_HASH_BYTES = 8,
};

/* A guard table: `count` entries of 4 + `extra` bytes, the first 4 an RVA. */
struct guard_table {
	struct rva rva;    /* 0 when absent */
	uint32_t count;
	uint32_t extra;    /* metadata bytes behind each RVA */
};

struct load_config {
	uint32_t size;        /* bytes, 0 when there is none */
	struct rva rva;
	uint32_t guard_flags;
	struct guard_table functions, address_taken_iat, long_jumps, eh_continuations;
	struct rva volatile_metadata;  /* 0 when absent */
	struct rva dynamic_relocation_table; /* its old form; 0 when absent */
	uint32_t dynamic_relocation_offset; /* in its section */
	uint16_t dynamic_relocation_section; /* 1-based, 0 when absent */
	struct rva chpe_metadata;      /* 0 when absent */
	struct rva lock_prefixes;      /* 0 when absent */
	uint32_t hot_patches;          /* where they are listed; 0 when absent */
	struct rva unknown; /* a byte that is not 0 behind all known fields; 0: none */
	struct rva security_cookie;    /* 0 when absent */
	/* The two words that hold pointers to functions in read-only data. */
	struct rva guard_check_pointer, guard_dispatch_pointer; /* 0 when absent */
};

/* MALFORMED when the structure or a table leaves the file's data, or a table does not
 * ascend. */
enum status load_config_read(const struct image *image, struct load_config *ret_config,
			     struct diag *diag);

#endif
