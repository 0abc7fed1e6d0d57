/* A range falls apart into as many pieces as there are moves in it, and a file that lies
 * has many ranges about all code: pieces, and the time to find them, are the product of
 * both.  So they have a budget.  Where ranges overlap little, as linkers make them, there
 * are a few pieces for each move and each record.  Functions that the linker folded give
 * more, for each has its records; these take room in the file, and the budget grows with
 * it. */
#include "layout/pdb_places.h"

#include "decode/insn.h"
#include "symbols/symbol_set.h"

enum {
	PADDING_MAX = 15,
	/* In bytes: of a piece without its record, and what may be spent. */
	PIECE_COST = 64,
	BUDGET_PER_BYTE = 8,
	BUDGET_PER_MOVE = 4096,
};

void pdb_places_set_budget(struct pdb_places *places, uint64_t size)
{
	places->budget = BUDGET_PER_BYTE * size +
			 (uint64_t)BUDGET_PER_MOVE * places->map->moves.len;
	places->spent = false;
}

bool pdb_places_spend(struct pdb_places *places, uint64_t cost)
{
	places->spent |= cost > places->budget;
	places->budget -= places->spent ? 0 : cost;
	return !places->spent;
}

/* The place of an RVA of the relinked image; false when no section has it. */
static bool place_of(const struct image *image, struct rva rva, uint16_t *ret_section,
		     uint32_t *ret_offset)
{
	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *section = &image->sections[i];

		if (!rva_in(rva, section->rva, section->virtual_size))
			continue;
		*ret_section = (uint16_t)(i + 1);
		*ret_offset = rva.v - section->rva.v;
		return true;
	}
	return false;
}

void pdb_place_move(const struct pdb_places *places, uint8_t *offset, uint8_t *section)
{
	uint32_t was = places->original->section_count,
		 is = places->relinked->section_count;
	struct rva rva, to;
	uint16_t new_section;
	uint32_t new_offset;

	if (load_u16(section) > was) {
		store_u16(section, (uint16_t)(load_u16(section) + is - was));
		return;
	}
	if (!symbol_address(places->original, load_u16(section), load_u32(offset), &rva))
		return;
	to = move_map_forward(places->map, rva);
	if (to.v == rva.v || !place_of(places->relinked, to, &new_section, &new_offset))
		return;
	store_u16(section, new_section);
	store_u32(offset, new_offset);
}

uint32_t pdb_place_stretch(const struct pdb_places *places, uint32_t section,
			   uint32_t offset, uint32_t size)
{
	struct rva rva, to;

	if (!symbol_address(places->original, section, offset, &rva))
		return size;
	return move_map_stretch(places->map, rva, size, &to);
}

/* The first move whose target ends behind `rva`: an index into by_target. */
static uint32_t first_target(const struct move_map *map, struct rva rva)
{
	uint32_t low = 0, high = map->moves.len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct move *move = &map->by_target[middle];

		if (move->to.v + move->size <= rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Of bytes that have not moved: how many of them from the first on are covered by blocks
 * that came (*ret_covered), else how many are not. */
static uint32_t same_cover(const struct move_map *map, struct rva rva, uint32_t size,
			   bool *ret_covered)
{
	uint32_t index = first_target(map, rva), length = size;
	const struct move *move = &map->by_target[index];

	*ret_covered = false;
	if (index == map->moves.len)
		return size;
	if (rva_in(rva, move->to, move->size)) {
		*ret_covered = true;
		length = move->to.v + move->size - rva.v;
	} else {
		length = move->to.v - rva.v;
	}
	return length < size ? length : size;
}

/* Whether bytes that nobody moved are what linkers and compilers put between functions:
 * zeros, or nothing but int3 and instructions that do nothing. */
static bool is_padding(const struct image *image, struct rva rva, uint32_t size)
{
	static const uint8_t zeros[PADDING_MAX];
	const uint8_t *b = size <= PADDING_MAX ? image_bytes(image, rva, size) : NULL;
	uint32_t at = 0;
	struct insn insn;

	if (!b)
		return false;
	while (at < size && insn_decode(b + at, size - at, &insn) && insn.padding)
		at += insn.length;
	return at == size || memcmp(b, zeros, size) == 0;
}

bool pdb_next_piece(struct pdb_places *places, uint32_t section, uint32_t offset,
		    uint32_t size, uint32_t *at, struct pdb_piece *ret_piece)
{
	while (*at < size) {
		struct rva rva, to;
		bool covered = false, whole;
		uint32_t length;

		if (!pdb_places_spend(places, PIECE_COST) ||
		    !symbol_address(places->original, section, offset + *at, &rva))
			return false;
		length = move_map_stretch(places->map, rva, size - *at, &to);
		if (to.v == rva.v)
			length = same_cover(places->map, rva, length, &covered);
		whole = length == size;
		*ret_piece = (struct pdb_piece){.begin = *at, .size = length};
		*at += length;
		if (covered ||
		    (to.v == rva.v && !whole && is_padding(places->original, rva, length)))
			continue;
		if (place_of(places->relinked, to, &ret_piece->section, &ret_piece->offset))
			return true;
	}
	return false;
}
