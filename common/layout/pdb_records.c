/* Each kind of record has its places at fixed offsets (cvinfo.h), so a table tells them.  A
 * range, the size of a procedure for example, holds as long as its bytes stay together;
 * otherwise it ends where the first part does.  The other parts of a procedure get records
 * of their own behind all others, where no record that something refers to is shifted.
 * Inline sites count from the begin of their procedure and need no change.
 *
 * Kinds that are not in the table have no places, or none in code (S_COFFGROUP and
 * S_SECTION tell of parts of sections, which stay).
 */
#include <stdio.h>

#include "layout/pdb_parts.h"

enum { PLACES_MAX = 3, NO_FIELD = 0xff, S_END = 6 };

/* The fields of a procedure's record, in bytes behind the kind. */
enum {
	PROCEDURE_END = 4,
	PROCEDURE_SIZE = 12,
	PROCEDURE_DEBUG_START = 16, /* behind the prologue, in bytes from the begin */
	PROCEDURE_DEBUG_END = 20,   /* of the last epilogue's begin */
	PROCEDURE_TYPE = 24,
	PROCEDURE_OFFSET = 28,
	PROCEDURE_SECTION = 32,
	PROCEDURE_NAME = 35,
};

/* Offsets are in bytes behind the kind. */
struct record_places {
	uint16_t kind;
	uint8_t offsets[PLACES_MAX], sections[PLACES_MAX]; /* NO_FIELD: no more */
	uint8_t size, size_bytes; /* of the first place's range, or NO_FIELD */
	uint8_t name;             /* of a procedure, or NO_FIELD */
};

#define ONE(kind, offset, section, size, bytes)                                            \
	{                                                                                  \
		kind, {offset, NO_FIELD}, {section, NO_FIELD}, size, bytes, NO_FIELD       \
	}
#define PROCEDURE(kind)                                                                    \
	{                                                                                  \
		kind, {PROCEDURE_OFFSET, NO_FIELD}, {PROCEDURE_SECTION, NO_FIELD},         \
			PROCEDURE_SIZE, 4, PROCEDURE_NAME                                  \
	}

/* Where the name stands tells procedures. */
static const struct record_places table[] = {
	PROCEDURE(0x110f), /* S_LPROC32 */
	PROCEDURE(0x1110), /* S_GPROC32 */
	PROCEDURE(0x1146), /* S_LPROC32_ID */
	PROCEDURE(0x1147), /* S_GPROC32_ID */
	PROCEDURE(0x1155), /* S_LPROC32_DPC */
	PROCEDURE(0x1156), /* S_LPROC32_DPC_ID */
	{0x1012, {16, NO_FIELD}, {20, NO_FIELD}, NO_FIELD, 0, NO_FIELD},  /* S_FRAMEPROC */
	ONE(0x1019, 0, 4, NO_FIELD, 0),                                   /* S_ANNOTATION */
	ONE(0x1102, 12, 16, 18, 2),                                       /* S_THUNK32 */
	ONE(0x1103, 12, 16, 8, 4),                                        /* S_BLOCK32 */
	ONE(0x1105, 0, 4, NO_FIELD, 0),                                   /* S_LABEL32 */
	ONE(0x110c, 4, 8, NO_FIELD, 0),                                   /* S_LDATA32 */
	ONE(0x110d, 4, 8, NO_FIELD, 0),                                   /* S_GDATA32 */
	ONE(0x110e, 4, 8, NO_FIELD, 0),                                   /* S_PUB32 */
	{0x112c, {4, 8, NO_FIELD}, {12, 14, NO_FIELD}, 2, 2, NO_FIELD},   /* S_TRAMPOLINE */
	{0x1132, {16, 20, NO_FIELD}, {24, 26, NO_FIELD}, 8, 4, NO_FIELD}, /* S_SEPCODE */
	ONE(0x1139, 0, 4, NO_FIELD, 0), /* S_CALLSITEINFO */
	ONE(0x113f, 4, 8, 10, 2),       /* S_DEFRANGE */
	ONE(0x1140, 8, 12, 14, 2),      /* S_DEFRANGE_SUBFIELD */
	ONE(0x1141, 4, 8, 10, 2),       /* S_DEFRANGE_REGISTER */
	ONE(0x1142, 4, 8, 10, 2),       /* S_DEFRANGE_FRAMEPOINTER_REL */
	ONE(0x1143, 8, 12, 14, 2),      /* S_DEFRANGE_SUBFIELD_REGISTER */
	ONE(0x1145, 8, 12, 14, 2),      /* S_DEFRANGE_REGISTER_REL */
	{0x1159, {0, 8, 12}, {4, 16, 18}, NO_FIELD, 0, NO_FIELD}, /* S_ARMSWITCHTABLE */
	ONE(0x115e, 0, 4, NO_FIELD, 0),                           /* S_HEAPALLOCSITE */
};

static const struct record_places *places_of(uint16_t kind)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].kind == kind)
			return &table[i];
	return NULL;
}

static enum status bad(struct diag *diag)
{
	return diag_fail(diag, STATUS_BAD_SYMBOLS,
			 "a damaged PDB: a symbol's record is too "
			 "short or leaves its stream");
}

/* A procedure for one part of another, with its end: name and type are the same. */
static bool add_fragment(struct pdb_rewriting *rewriting, uint16_t kind,
			 const uint8_t *fields, uint32_t size,
			 const struct pdb_piece *piece)
{
	struct pdb_bytes *to = &rewriting->added;
	uint32_t length = 2 + size, begin = to->bytes.len;
	uint8_t *record;

	/* What is spent is told of at the end. */
	if (!pdb_places_spend(&rewriting->places, length))
		return true;
	if (!pdb_bytes_u16(to, (uint16_t)length) || !pdb_bytes_u16(to, kind) ||
	    !pdb_bytes_put(to, fields, size) || !pdb_bytes_u16(to, 2) ||
	    !pdb_bytes_u16(to, S_END))
		return false;
	record = to->bytes.data + begin + 4;
	memset(record, 0, PROCEDURE_TYPE);
	store_u32(record + PROCEDURE_END, rewriting->added_at + begin + 2 + length);
	store_u32(record + PROCEDURE_SIZE, piece->size);
	store_u32(record + PROCEDURE_DEBUG_END, piece->size);
	store_u32(record + PROCEDURE_OFFSET, piece->offset);
	store_u16(record + PROCEDURE_SECTION, piece->section);
	rewriting->report->fragments++;
	return true;
}

/* The parts of a procedure of `was` bytes behind the first `is`. */
static bool add_fragments(struct pdb_rewriting *rewriting, uint16_t kind,
			  const uint8_t *fields, uint32_t size, uint32_t is, uint32_t was)
{
	struct pdb_report *report = rewriting->report;
	uint32_t at = is;
	struct pdb_piece piece;
	bool room = true;

	if (report->fragments == 0)
		snprintf(report->first, sizeof(report->first), "%.*s",
			 (int)(size - PROCEDURE_NAME),
			 (const char *)fields + PROCEDURE_NAME);
	while (room &&
	       pdb_next_piece(&rewriting->places, load_u16(fields + PROCEDURE_SECTION),
			      load_u32(fields + PROCEDURE_OFFSET), was, &at, &piece))
		room = add_fragment(rewriting, kind, fields, size, &piece);
	return room;
}

/* Makes a place in a procedure, counted from its begin, one of its first part. */
static void clamp(uint8_t *field, uint32_t size)
{
	if (load_u32(field) > size)
		store_u32(field, size);
}

/* Ends a range with the bytes that stay together.  False when memory is out. */
static bool cut_range(struct pdb_rewriting *rewriting, const struct record_places *places,
		      uint8_t *fields, uint32_t size)
{
	uint8_t *field = fields + places->size;
	uint32_t was = places->size_bytes == 2 ? load_u16(field) : load_u32(field);
	uint32_t is = pdb_place_stretch(&rewriting->places,
					load_u16(fields + places->sections[0]),
					load_u32(fields + places->offsets[0]), was);

	if (is == was)
		return true;
	if (places->size_bytes == 2)
		store_u16(field, (uint16_t)is);
	else
		store_u32(field, is);
	if (places->name == PROCEDURE_NAME) {
		clamp(fields + PROCEDURE_DEBUG_START, is);
		clamp(fields + PROCEDURE_DEBUG_END, is);
	}
	if (places->name == PROCEDURE_NAME && size > PROCEDURE_NAME)
		return add_fragments(rewriting, places->kind, fields, size, is, was);
	rewriting->report->ranges++;
	return true;
}

static enum status move_record(struct pdb_rewriting *rewriting, uint16_t kind,
			       uint8_t *fields, uint32_t size)
{
	const struct record_places *places = places_of(kind);

	if (!places)
		return STATUS_OK;
	for (int i = 0; i < PLACES_MAX && places->offsets[i] != NO_FIELD; i++)
		if (places->offsets[i] + 4u > size || places->sections[i] + 2u > size)
			return bad(rewriting->diag);
	if (places->size != NO_FIELD) {
		if (places->size + (uint32_t)places->size_bytes > size)
			return bad(rewriting->diag);
		if (!cut_range(rewriting, places, fields, size))
			return diag_no_memory(rewriting->diag);
	}
	for (int i = 0; i < PLACES_MAX && places->offsets[i] != NO_FIELD; i++)
		pdb_place_move(&rewriting->places, fields + places->offsets[i],
			       fields + places->sections[i]);
	return STATUS_OK;
}

enum status pdb_records_move(struct pdb_rewriting *rewriting, uint8_t *records,
			     uint32_t size)
{
	uint32_t at = 0;
	enum status status = STATUS_OK;

	while (at < size && status == STATUS_OK) {
		uint32_t length;

		if (size - at < 4)
			return bad(rewriting->diag);
		length = load_u16(records + at);
		if (length < 2 || length > size - at - 2)
			return bad(rewriting->diag);
		status = move_record(rewriting, load_u16(records + at + 2),
				     records + at + 4, length - 2);
		at += 2 + length;
	}
	return status;
}
