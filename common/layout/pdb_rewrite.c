/* Steps, one call each: the identity, the records of global symbols, the index of public
 * ones, each module's records and lines, the DBI stream, the section headers.
 *
 * All else is copied: types, names of files, the hashes by name.  Records keep their size
 * and their place in the stream, so what refers to them stays true; only lines and section
 * contributions may become more.
 */
#include "layout/pdb_rewrite.h"

#include <stdlib.h>

#include "layout/pdb_parts.h"
#include "pe/format.h"
#include "symbols/msf_write.h"

enum {
	STREAM_INFO = 1,
	STREAM_DBI = 3,
	INFO_GUID = 12,
	DBI_HEAD = 64,
	DBI_MODULES = 24, /* sizes of its parts, in the head */
	DBI_CONTRIBUTIONS = 28,
	MODULE_CONTRIBUTION = 4, /* in a module's row */
	MODULE_SYMBOLS = 36,
	MODULE_C13 = 44,
	PUBLICS_HEAD = 28,
	PUBLIC_OFFSET = 8, /* in the record, from its length on */
	PUBLIC_SECTION = 12,
	GUID_BYTES = 16,
	FORGET_BYTES = 8 << 20, /* of modules; then they are given back to the page cache */
};

struct rewriting_state {
	const struct pdb *pdb;
	struct image *relinked; /* its arena is used */
	struct pdb_rewriting common;
	struct msf_replacement *streams; /* owned: one for each */
};

bool pdb_bytes_put(struct pdb_bytes *to, const void *data, size_t size)
{
	size_t need = (size_t)to->bytes.len + size;

	if (need > UINT32_MAX || !vec_reserve(&to->bytes, need))
		return false;
	if (size)
		memcpy(to->bytes.data + to->bytes.len, data, size);
	to->bytes.len = (uint32_t)need;
	return true;
}

bool pdb_bytes_u16(struct pdb_bytes *to, uint16_t v)
{
	uint8_t bytes[2];

	store_u16(bytes, v);
	return pdb_bytes_put(to, bytes, sizeof(bytes));
}

bool pdb_bytes_u32(struct pdb_bytes *to, uint32_t v)
{
	uint8_t bytes[4];

	store_u32(bytes, v);
	return pdb_bytes_put(to, bytes, sizeof(bytes));
}

/* Makes a stream's bytes ready to be changed; NULL when memory is out. */
static uint8_t *take(struct rewriting_state *s, uint32_t stream)
{
	struct msf_replacement *new = &s->streams[stream];

	if (!new->bytes) {
		new->bytes = msf_stream_copy(&s->pdb->msf, stream);
		new->size = s->pdb->msf.streams[stream].size;
	}
	return new->bytes;
}

static void put(struct rewriting_state *s, uint32_t stream, struct pdb_bytes *bytes)
{
	free(s->streams[stream].bytes);
	s->streams[stream] = (struct msf_replacement){bytes->bytes.data, bytes->bytes.len};
}

/* The first GUID in the loaded image, which is what a debugger sees, or NULL. */
static const uint8_t *guid_of(const struct image *image,
			      const struct debug_directory *debug)
{
	for (uint32_t i = 0; i < debug->count; i++)
		if (debug->data[i].guid.v)
			return image_bytes(image, debug->data[i].guid, GUID_BYTES);
	return NULL;
}

/* The relinked image has a GUID of its own; the age stays.  Where it could not be renewed,
 * or stands elsewhere in the file than in memory, nothing tells which PDB belongs to which
 * image. */
static enum status renew_identity(struct rewriting_state *s)
{
	struct image *image = s->relinked;
	uint8_t *info = take(s, STREAM_INFO);
	char text[CODEVIEW_GUID_TEXT] = "";
	struct debug_directory debug;
	struct codeview codeview;
	const uint8_t *guid;
	enum status status;

	if (!info)
		return diag_no_memory(s->common.diag);
	status = debug_directory_read(image, &debug, s->common.diag);
	if (status != STATUS_OK)
		return status;
	codeview_read(image, &debug, &codeview);
	if (!codeview.pdb || s->common.places.map->moves.len == 0)
		return STATUS_OK;
	guid = guid_of(image, &debug);
	if (guid)
		codeview_guid_text(guid, text);
	if (strcmp(text, codeview.guid) != 0 || strcmp(text, s->pdb->guid) == 0)
		return diag_fail(s->common.diag, STATUS_UNSUPPORTED,
				 "the relinked image has no PDB identity of its own: the "
				 "GUID's place in the file and in memory differ");
	memcpy(info + INFO_GUID, guid, GUID_BYTES);
	return STATUS_OK;
}

static enum status move_globals(struct rewriting_state *s)
{
	uint8_t *records;

	if (s->pdb->records >= s->pdb->msf.stream_count)
		return STATUS_OK;
	records = take(s, s->pdb->records);
	return records ? pdb_records_move(&s->common, records,
					  s->streams[s->pdb->records].size)
		       : diag_no_memory(s->common.diag);
}

/* A public symbol in the index, with what the index is sorted by. */
struct public_place {
	uint64_t place;  /* section and offset */
	uint32_t record; /* bytes from the begin of the stream of records */
	uint32_t index;  /* where it stood */
};

static int compare_places(const void *a, const void *b)
{
	const struct public_place *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static enum status sort_index(struct rewriting_state *s, uint8_t *map, uint32_t count)
{
	const struct msf_replacement *records = &s->streams[s->pdb->records];
	struct public_place *places = calloc((size_t)count + 1, sizeof(*places));

	if (!places)
		return diag_no_memory(s->common.diag);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = load_u32(map + (size_t)4 * i);

		if (records->size < PUBLIC_SECTION + 2 ||
		    at > records->size - PUBLIC_SECTION - 2) {
			free(places);
			return diag_fail(
				s->common.diag, STATUS_BAD_SYMBOLS,
				"a damaged PDB: the index of public symbols leads out "
				"of their records");
		}
		places[i] = (struct public_place){
			(uint64_t)load_u16(records->bytes + at + PUBLIC_SECTION) << 32 |
				load_u32(records->bytes + at + PUBLIC_OFFSET),
			at, i};
	}
	qsort(places, count, sizeof(*places), compare_places);
	for (uint32_t i = 0; i < count; i++)
		store_u32(map + (size_t)4 * i, places[i].record);
	free(places);
	return STATUS_OK;
}

static enum status move_publics(struct rewriting_state *s)
{
	uint8_t *publics;
	uint32_t size, hash_bytes, map_bytes;

	if (s->pdb->publics >= s->pdb->msf.stream_count ||
	    s->pdb->records >= s->pdb->msf.stream_count)
		return STATUS_OK;
	publics = take(s, s->pdb->publics);
	if (!publics)
		return diag_no_memory(s->common.diag);
	size = s->streams[s->pdb->publics].size;
	hash_bytes = size < PUBLICS_HEAD ? UINT32_MAX : load_u32(publics);
	map_bytes = size < PUBLICS_HEAD ? UINT32_MAX : load_u32(publics + 4);
	if ((uint64_t)PUBLICS_HEAD + hash_bytes + map_bytes > size)
		return diag_fail(
			s->common.diag, STATUS_BAD_SYMBOLS,
			"a damaged PDB: the index of public symbols leaves its stream");
	return sort_index(s, publics + PUBLICS_HEAD + hash_bytes, map_bytes / 4);
}

/* A module's stream anew: records, old lines, lines, and what stands behind. */
static enum status build_module(struct rewriting_state *s, const struct pdb_module *module,
				uint8_t *row, struct pdb_bytes *to)
{
	const struct msf_replacement *was = &s->streams[module->stream];
	const struct pdb_bytes *added = &s->common.added;
	uint32_t lines = module->symbol_bytes + module->c11_bytes, behind = lines, c13;
	enum status status;

	behind += module->c13_bytes;
	if (!pdb_bytes_put(to, was->bytes, module->symbol_bytes) ||
	    !pdb_bytes_put(to, added->bytes.data, added->bytes.len) ||
	    !pdb_bytes_put(to, was->bytes + module->symbol_bytes, module->c11_bytes))
		return diag_no_memory(s->common.diag);
	c13 = to->bytes.len;
	status = pdb_lines_move(&s->common, was->bytes + lines, module->c13_bytes, to);
	if (status != STATUS_OK)
		return status;
	store_u32(row + MODULE_SYMBOLS, module->symbol_bytes + added->bytes.len);
	store_u32(row + MODULE_C13, to->bytes.len - c13);
	return pdb_bytes_put(to, was->bytes + behind, was->size - behind)
		       ? STATUS_OK
		       : diag_no_memory(s->common.diag);
}

static enum status move_module(struct rewriting_state *s, const struct pdb_module *module,
			       uint8_t *row)
{
	uint8_t *bytes = take(s, module->stream);
	struct pdb_bytes to = {0};
	enum status status = STATUS_OK;

	if (!bytes)
		return diag_no_memory(s->common.diag);
	s->common.report->old_lines += module->c11_bytes > 0;
	s->common.added.bytes.len = 0;
	s->common.added_at = module->symbol_bytes;
	if (module->symbol_bytes >= 4)
		status = pdb_records_move(&s->common, bytes + 4, module->symbol_bytes - 4);
	if (status == STATUS_OK)
		status = build_module(s, module, row, &to);
	if (status == STATUS_OK)
		put(s, module->stream, &to);
	else
		vec_release(&to.bytes);
	return status;
}

/* Modules, and their rows in the DBI stream. */
static enum status move_modules(struct rewriting_state *s)
{
	uint8_t *dbi = take(s, STREAM_DBI);
	uint32_t read = 0;
	enum status status = STATUS_OK;

	if (!dbi)
		return diag_no_memory(s->common.diag);
	for (uint32_t i = 0; i < s->pdb->modules.len && status == STATUS_OK; i++) {
		const struct pdb_module *module = &s->pdb->modules.data[i];
		uint8_t *row = dbi + module->place;
		uint8_t *first = row + MODULE_CONTRIBUTION;

		store_u32(first + 8,
			  pdb_place_stretch(&s->common.places, load_u16(first),
					    load_u32(first + 4), load_u32(first + 8)));
		pdb_place_move(&s->common.places, first + 4, first);
		if (module->stream == PDB_NO_STREAM)
			continue;
		status = move_module(s, module, row);
		read += s->streams[module->stream].size;
		if (read >= FORGET_BYTES) {
			msf_forget(&s->pdb->msf);
			read = 0;
		}
	}
	return status;
}

static enum status move_contributions(struct rewriting_state *s)
{
	const uint8_t *dbi = s->streams[STREAM_DBI].bytes;
	uint32_t size = s->streams[STREAM_DBI].size;
	uint32_t begin = DBI_HEAD + load_u32(dbi + DBI_MODULES);
	uint32_t was = load_u32(dbi + DBI_CONTRIBUTIONS);
	struct pdb_bytes list = {0}, to = {0};
	enum status status = pdb_contributions_move(&s->common, dbi + begin, was, &list);

	if (status == STATUS_OK &&
	    !(pdb_bytes_put(&to, dbi, begin) &&
	      pdb_bytes_put(&to, list.bytes.data, list.bytes.len) &&
	      pdb_bytes_put(&to, dbi + begin + was, size - begin - was)))
		status = diag_no_memory(s->common.diag);
	if (status == STATUS_OK) {
		store_u32(to.bytes.data + DBI_CONTRIBUTIONS, list.bytes.len);
		put(s, STREAM_DBI, &to);
	} else {
		vec_release(&to.bytes);
	}
	vec_release(&list.bytes);
	return status;
}

static enum status renew_sections(struct rewriting_state *s)
{
	const struct image *image = s->common.places.relinked;
	struct pdb_bytes to = {0};

	if (s->pdb->sections == PDB_NO_STREAM ||
	    s->pdb->sections >= s->pdb->msf.stream_count)
		return STATUS_OK;
	for (uint32_t i = 0; i < image->section_count; i++)
		if (!pdb_bytes_put(&to, image->bytes + image->sections[i].header.v,
				   SECTION_HEADER_BYTES)) {
			vec_release(&to.bytes);
			return diag_no_memory(s->common.diag);
		}
	put(s, s->pdb->sections, &to);
	return STATUS_OK;
}

static enum status rewrite(struct rewriting_state *s)
{
	enum status status = renew_identity(s);

	if (status == STATUS_OK)
		status = move_globals(s);
	if (status == STATUS_OK)
		status = move_publics(s);
	if (status == STATUS_OK)
		status = move_modules(s);
	if (status == STATUS_OK)
		status = move_contributions(s);
	if (status == STATUS_OK)
		status = renew_sections(s);
	if (status == STATUS_OK && s->common.places.spent)
		status = diag_fail(s->common.diag, STATUS_BAD_SYMBOLS,
				   "a damaged PDB: too many of its records are about the "
				   "same code");
	return status;
}

enum status pdb_rewrite(const struct pdb *pdb, const struct image *original,
			struct image *relinked, const struct move_map *map,
			struct output_file *out, struct pdb_report *ret_report,
			struct diag *diag)
{
	struct rewriting_state s = {
		.pdb = pdb,
		.relinked = relinked,
		.common = {.places = {.original = original,
				      .relinked = relinked,
				      .map = map},
			   .report = ret_report,
			   .diag = diag},
		.streams = calloc((size_t)pdb->msf.stream_count + 1, sizeof(*s.streams)),
	};
	enum status status;

	memset(ret_report, 0, sizeof(*ret_report));
	pdb_places_set_budget(&s.common.places, pdb->msf.size);
	status = s.streams ? rewrite(&s) : diag_no_memory(diag);
	if (status == STATUS_OK)
		status = msf_write(&pdb->msf, s.streams, out, diag);
	for (uint32_t i = 0; s.streams && i < pdb->msf.stream_count; i++)
		free(s.streams[i].bytes);
	free(s.streams);
	vec_release(&s.common.added.bytes);
	return status;
}
