/* A contribution is the piece of a section that came from one object file.  One that holds
 * several functions falls apart when they move, so the list is built anew, in the order of
 * places that readers search it by ("The DBI Stream", "Section Contribution Substream").
 */
#include <stddef.h>

#include "base/key_sort.h"
#include "layout/pdb_parts.h"

enum {
	VERSION_60 = (int)(0xeffe0000 + 19970605),
	VERSION_2 = (int)(0xeffe0000 + 20140516),
	ROW_BYTES = 28,   /* of VERSION_60 */
	ROW_BYTES_2 = 32, /* the section in the object file follows */
	ROW_OFFSET = 4,
	ROW_SIZE = 8,
};

/* A row with its place in the order of the machine, for sorting. */
struct row {
	uint32_t section, offset;
	uint8_t bytes[ROW_BYTES_2];
};

struct rows {
	VEC(struct row) list;
};

static bool add_piece(struct rows *rows, const uint8_t *bytes, uint32_t row_bytes,
		      const struct pdb_piece *piece)
{
	struct row row = {.section = piece->section, .offset = piece->offset};

	memcpy(row.bytes, bytes, row_bytes);
	store_u16(row.bytes, piece->section);
	store_u32(row.bytes + ROW_OFFSET, piece->offset);
	store_u32(row.bytes + ROW_SIZE, piece->size);
	return vec_push(&rows->list, row);
}

/* The pieces of one contribution, those that stand side by side together. */
static bool add_row(struct pdb_rewriting *rewriting, struct rows *rows,
		    const uint8_t *bytes, uint32_t row_bytes)
{
	uint32_t section = load_u16(bytes), offset = load_u32(bytes + ROW_OFFSET);
	uint32_t size = load_u32(bytes + ROW_SIZE), at = 0, stretch;
	struct pdb_piece piece, next, all = {0, size, (uint16_t)section, offset};
	bool room = true;

	stretch = pdb_place_stretch(&rewriting->places, section, offset, size);
	if (!pdb_next_piece(&rewriting->places, section, offset, size, &at, &piece))
		return stretch == size ? add_piece(rows, bytes, row_bytes, &all) : true;
	while (pdb_next_piece(&rewriting->places, section, offset, size, &at, &next)) {
		if (next.section == piece.section &&
		    next.offset == piece.offset + piece.size) {
			piece.size += next.size;
			continue;
		}
		room &= add_piece(rows, bytes, row_bytes, &piece);
		piece = next;
	}
	return room && add_piece(rows, bytes, row_bytes, &piece);
}

static bool sort(struct rows *rows, size_t key)
{
	return key_sort(rows->list.data, rows->list.len, sizeof(*rows->list.data), key);
}

static bool build(struct pdb_rewriting *rewriting, const uint8_t *list, uint32_t size,
		  uint32_t row_bytes, struct pdb_bytes *to)
{
	struct rows rows = {0};
	bool room = pdb_bytes_put(to, list, 4);

	for (uint32_t at = 4; at < size && room; at += row_bytes)
		room = add_row(rewriting, &rows, list + at, row_bytes);
	room = room && sort(&rows, offsetof(struct row, offset)) &&
	       sort(&rows, offsetof(struct row, section));
	for (uint32_t i = 0; i < rows.list.len && room; i++)
		room = pdb_bytes_put(to, rows.list.data[i].bytes, row_bytes);
	vec_release(&rows.list);
	return room;
}

enum status pdb_contributions_move(struct pdb_rewriting *rewriting, const uint8_t *list,
				   uint32_t size, struct pdb_bytes *to)
{
	uint32_t version, row_bytes;

	if (size == 0)
		return STATUS_OK;
	version = size < 4 ? 0 : load_u32(list);
	if (version != (uint32_t)VERSION_60 && version != (uint32_t)VERSION_2)
		return diag_fail(rewriting->diag, STATUS_UNSUPPORTED,
				 "the PDB's list of section contributions is of an unknown "
				 "version");
	row_bytes = version == (uint32_t)VERSION_2 ? ROW_BYTES_2 : ROW_BYTES;
	if ((size - 4) % row_bytes)
		return diag_fail(
			rewriting->diag, STATUS_BAD_SYMBOLS,
			"a damaged PDB: its list of section contributions ends too "
			"early");
	return build(rewriting, list, size, row_bytes, to)
		       ? STATUS_OK
		       : diag_no_memory(rewriting->diag);
}
