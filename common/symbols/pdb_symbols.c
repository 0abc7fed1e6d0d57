/* Two places tell of functions.  Public symbols have the names by which objects were
 * linked (decorated ones in C++), and no sizes; static functions have none.  The stream of
 * each module has a procedure for each function that a compiler made, with its size and the
 * name that the source has.
 *
 * Public symbols are found through the index of their addresses, as a linker that changes a
 * PDB in place leaves old records behind.
 */
#include "symbols/pdb_symbols.h"

#include <stdlib.h>

enum {
	PUBLICS_BYTES = 28, /* PSGSIHDR: cbSymHash, cbAddrMap, ... */
	RECORD_MAX = 0xffff + 2,
	MODULE_SIGNATURE = 4,   /* CV_SIGNATURE_C13 */
	PUBLIC_FUNCTION = 2,    /* in the flags of S_PUB32 */
	FORGET_BYTES = 8 << 20, /* of symbols; then they are given back to the page cache */
};

/* cvinfo.h, SYM_ENUM_e. */
enum record_kind {
	S_THUNK32 = 0x1102,
	S_LABEL32 = 0x1105,
	S_PUB32 = 0x110e,
	S_LPROC32 = 0x110f,
	S_GPROC32 = 0x1110,
	S_LPROC32_ID = 0x1146,
	S_GPROC32_ID = 0x1147,
	S_LPROC32_DPC = 0x1155,
	S_LPROC32_DPC_ID = 0x1156,
};

struct symbol_reading {
	const struct image *image;
	struct symbol_set *set;
	struct diag *diag;
	uint8_t *record; /* RECORD_MAX bytes: the length, kind and fields of one */
};

static enum status bad(struct diag *diag, const char *what)
{
	return diag_fail(diag, STATUS_BAD_SYMBOLS, "a damaged PDB: %s", what);
}

/* Where the fields of a record stand, in bytes behind its kind; 0 for a size that there
 * is not. */
struct record_form {
	uint8_t address, size, size_bytes, name;
	uint8_t kind; /* enum symbol_kind */
};

static const struct record_form procedure = {28, 12, 4, 35, SYMBOL_PROCEDURE};

static const struct record_form *form_of(uint16_t kind)
{
	static const struct record_form thunk = {12, 18, 2, 21, SYMBOL_PLACE};
	static const struct record_form label = {0, 0, 0, 7, SYMBOL_LABEL};
	static const struct record_form public = {4, 0, 0, 10, SYMBOL_FUNCTION};

	switch (kind) {
	case S_PUB32:
		return &public;
	case S_THUNK32:
		return &thunk;
	case S_LABEL32:
		return &label;
	case S_LPROC32:
	case S_GPROC32:
	case S_LPROC32_ID:
	case S_GPROC32_ID:
	case S_LPROC32_DPC:
	case S_LPROC32_DPC_ID:
		return &procedure;
	default:
		return NULL;
	}
}

/* `size` bytes of fields stand in the buffer. */
static enum status add_record(struct symbol_reading *reading, uint16_t kind, uint32_t size)
{
	const struct record_form *form = form_of(kind);
	const uint8_t *fields = reading->record, *end;
	struct symbol symbol = {.kind = form->kind};

	if (size <= form->name ||
	    !(end = memchr(fields + form->name, 0, size - form->name)))
		return bad(reading->diag, "a symbol's record is too short");
	if (!symbol_address(reading->image, load_u16(fields + form->address + 4),
			    load_u32(fields + form->address), &symbol.rva)) {
		reading->set->outside++;
		return STATUS_OK;
	}
	if (form->size_bytes)
		symbol.size = form->size_bytes == 2 ? load_u16(fields + form->size)
						    : load_u32(fields + form->size);
	if (kind == S_PUB32 && !(load_u32(fields) & PUBLIC_FUNCTION))
		symbol.kind = SYMBOL_PLACE;
	symbol.name = (const char *)fields + form->name;
	return symbol_set_add(reading->set, reading->image, &symbol,
			      (size_t)(end - fields) - form->name)
		       ? STATUS_OK
		       : diag_no_memory(reading->diag);
}

/* Reads the record at `r` and steps behind it. */
static enum status read_record(struct symbol_reading *reading, struct msf_reader *r)
{
	uint16_t size = msf_read_u16(r), kind = msf_read_u16(r);

	if (r->failed || size < 2)
		return bad(reading->diag, "a symbol's record has no size");
	if (!form_of(kind)) {
		msf_skip(r, size - 2u);
		return r->failed ? bad(reading->diag, "a symbol's record leaves its stream")
				 : STATUS_OK;
	}
	msf_read(r, reading->record, size - 2u);
	if (r->failed)
		return bad(reading->diag, "a symbol's record leaves its stream");
	return add_record(reading, kind, size - 2u);
}

static enum status read_module(struct symbol_reading *reading, const struct pdb *pdb,
			       const struct pdb_module *module)
{
	struct msf_reader r = msf_reader_of(&pdb->msf, module->stream);
	enum status status = STATUS_OK;

	if (module->stream == PDB_NO_STREAM || module->symbol_bytes == 0)
		return STATUS_OK;
	r.end = module->symbol_bytes;
	if (msf_read_u32(&r) != MODULE_SIGNATURE)
		return bad(reading->diag, "a module's symbols are of an unknown form");
	while (status == STATUS_OK && msf_left(&r) > 0)
		status = read_record(reading, &r);
	return status;
}

static enum status read_modules(struct symbol_reading *reading, const struct pdb *pdb)
{
	uint32_t bytes = 0;
	enum status status = STATUS_OK;

	for (uint32_t i = 0; i < pdb->modules.len && status == STATUS_OK; i++) {
		status = read_module(reading, pdb, &pdb->modules.data[i]);
		bytes += pdb->modules.data[i].symbol_bytes;
		if (bytes >= FORGET_BYTES) {
			msf_forget(&pdb->msf);
			bytes = 0;
		}
	}
	return status;
}

/* The index has a place in the stream of records for each public symbol.  All together
 * they cannot be longer than that stream. */
static enum status read_publics(struct symbol_reading *reading, const struct pdb *pdb)
{
	struct msf_reader index = msf_reader_of(&pdb->msf, pdb->publics);
	struct msf_reader records = msf_reader_of(&pdb->msf, pdb->records);
	uint64_t left = records.end;
	uint32_t hash_bytes, map_bytes;
	enum status status = STATUS_OK;

	if (pdb->publics == PDB_NO_STREAM)
		return STATUS_OK;
	hash_bytes = msf_read_u32(&index);
	map_bytes = msf_read_u32(&index);
	msf_skip(&index, PUBLICS_BYTES - 8);
	msf_skip(&index, hash_bytes);
	if (index.failed || map_bytes > msf_left(&index))
		return bad(reading->diag, "the index of public symbols leaves its stream");
	for (uint32_t i = 0; i < map_bytes / 4 && status == STATUS_OK; i++) {
		uint32_t begin = msf_read_u32(&index);

		msf_seek(&records, begin);
		status = read_record(reading, &records);
		if (status == STATUS_OK && records.pos - begin > left)
			status = bad(reading->diag,
				     "the index of public symbols names one several times");
		left -= records.pos - begin;
	}
	return status;
}

enum status pdb_symbols_add(const struct pdb *pdb, const struct image *image,
			    struct symbol_set *set, struct diag *diag)
{
	struct symbol_reading reading = {
		.image = image, .set = set, .diag = diag, .record = malloc(RECORD_MAX)};
	enum status status;

	if (!reading.record)
		return diag_no_memory(diag);
	status = read_publics(&reading, pdb);
	if (status == STATUS_OK)
		status = read_modules(&reading, pdb);
	free(reading.record);
	return status;
}
