/* The PDB that damage begins with. */
#ifndef APPULSE_TESTS_MADE_PDB_H
#define APPULSE_TESTS_MADE_PDB_H

#include "pdb_builder.h"

static inline uint8_t *made_pdb(size_t *ret_size)
{
	uint8_t thunk[21] = {0}, label[7] = {0x40, 0, 0, 0, 1, 0, 0}, *bytes;
	static const uint32_t lines[][2] = {{0, 7}, {8, 8}, {0x28, 9}, {0x44, 10}};
	struct built_bytes *module;
	struct pdb_builder b;

	pdb_builder_init(&b, 512);
	module = &b.streams[BUILT_STREAM_MODULE];
	pdb_builder_section(&b, 0x1000);
	for (uint32_t i = 0; i < 12; i++) {
		pdb_builder_procedure(&b, i % 2 ? BUILT_GPROC32 : BUILT_LPROC32, "function", 1,
				      i * 32, 20);
		pdb_builder_public(&b, "?function@@YAXXZ", 1, i * 32, true);
	}
	store_u16(thunk + 16, 1);
	built_record(module, BUILT_THUNK32, thunk, sizeof(thunk), "thunk");
	built_record(module, BUILT_LABEL32, label, sizeof(label), "label");
	pdb_builder_public(&b, "place", 1, 0x800, false);
	/* A procedure, a contribution and lines that fall apart, and some that do not. */
	pdb_builder_procedure(&b, BUILT_LPROC32, "wide", 1, 0x20, 0x40);
	pdb_builder_contribution(&b, 1, 0, 0x200);
	pdb_builder_contribution(&b, 1, 0x200, 0x20);
	pdb_builder_lines(&b, 1, 0, 0x80, lines, 4);
	pdb_builder_lines(&b, 1, 0x200, 0x20, lines, 2);
	bytes = pdb_builder_finish(&b, ret_size);
	pdb_builder_release(&b);
	return bytes;
}

#endif
