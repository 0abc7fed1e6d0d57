#include "symbols/pdb.h"

#include <stdio.h>

#include "pe/format.h"

enum {
	STREAM_OLD_DIRECTORY = 0,
	STREAM_INFO = 1, /* 2: types */
	STREAM_DBI = 3,
	INFO_GUID = 12,
	INFO_BYTES = 28, /* without the names of streams behind */
	INFO_VERSION_VC70 = 20000404,
	DBI_BYTES = 64,
	DBI_VERSION_V70 = 19990903, /* the least that has all that is read here */
	MODULE_BYTES = 64,          /* of a row without its two names */
	MODULE_STREAM = 34,
	MODULE_SIZES = 36,
	/* Places in the optional debug header ("The DBI Stream"). */
	DEBUG_OMAP_FROM = 4,
	DEBUG_SECTIONS = 5,
};

/* Sizes of the parts of the DBI stream, in their sequence behind the header. */
struct dbi_parts {
	uint32_t modules, contributions, section_map, sources, type_servers, debug, edit;
};

static enum status bad(struct diag *diag, const char *what)
{
	return diag_fail(diag, STATUS_BAD_SYMBOLS, "a damaged PDB: %s", what);
}

static enum status read_info(struct pdb *pdb, struct diag *diag)
{
	struct msf_reader r = msf_reader_of(&pdb->msf, STREAM_INFO);
	uint8_t info[INFO_BYTES];

	msf_read(&r, info, sizeof(info));
	if (r.failed)
		return bad(diag, "its info stream is too short");
	if (load_u32(info) < INFO_VERSION_VC70)
		return diag_fail(diag, STATUS_BAD_SYMBOLS,
				 "a PDB of a version before Visual Studio .NET");
	codeview_guid_text(info + INFO_GUID, pdb->guid);
	return STATUS_OK;
}

static enum status read_dbi_header(struct pdb *pdb, struct msf_reader *r,
				   struct dbi_parts *ret_parts, struct diag *diag)
{
	uint8_t h[DBI_BYTES];
	uint64_t sum;

	msf_read(r, h, sizeof(h));
	if (r->failed)
		return bad(diag, "its DBI stream is too short");
	if (load_u32(h) != UINT32_MAX || load_u32(h + 4) < DBI_VERSION_V70)
		return diag_fail(diag, STATUS_BAD_SYMBOLS,
				 "a PDB whose DBI stream is of an old version");
	if (load_u16(h + 58) != MACHINE_AMD64)
		return diag_fail(diag, STATUS_BAD_SYMBOLS,
				 "a PDB for another machine than x86-64");
	pdb->age = load_u32(h + 8);
	pdb->publics = load_u16(h + 16);
	pdb->records = load_u16(h + 20);
	*ret_parts = (struct dbi_parts){
		.modules = load_u32(h + 24),
		.contributions = load_u32(h + 28),
		.section_map = load_u32(h + 32),
		.sources = load_u32(h + 36),
		.type_servers = load_u32(h + 40),
		.debug = load_u32(h + 48),
		.edit = load_u32(h + 52),
	};
	sum = (uint64_t)ret_parts->modules + ret_parts->contributions +
	      ret_parts->section_map + ret_parts->sources + ret_parts->type_servers +
	      ret_parts->debug + ret_parts->edit;
	return sum <= msf_left(r) ? STATUS_OK
				  : bad(diag, "parts of its DBI stream leave it");
}

/* Steps over a name and its NUL. */
static void skip_name(struct msf_reader *r)
{
	uint8_t c;

	do
		msf_read(r, &c, 1);
	while (c);
}

/* The rows of the module list; `r` ends with them. */
static enum status read_modules(struct pdb *pdb, struct msf_reader *r, struct diag *diag)
{
	uint32_t begin = r->pos;

	while (msf_left(r) > 0) {
		struct pdb_module module = {.place = r->pos};
		uint8_t row[MODULE_BYTES];
		uint32_t size;

		msf_read(r, row, sizeof(row));
		skip_name(r);
		skip_name(r);
		size = r->pos - begin;
		msf_skip(r, (4 - size % 4) % 4);
		if (r->failed)
			return bad(diag, "its list of modules ends too early");
		module.stream = load_u16(row + MODULE_STREAM);
		module.symbol_bytes = load_u32(row + MODULE_SIZES);
		module.c11_bytes = load_u32(row + MODULE_SIZES + 4);
		module.c13_bytes = load_u32(row + MODULE_SIZES + 8);
		if (!vec_push(&pdb->modules, module))
			return diag_no_memory(diag);
	}
	return STATUS_OK;
}

/* Notes that a stream is in use; false when it is already. */
static bool use_stream(uint8_t *used, uint16_t stream)
{
	uint8_t bit = (uint8_t)(1 << stream % 8);

	if (stream == PDB_NO_STREAM)
		return true;
	if (used[stream / 8] & bit)
		return false;
	used[stream / 8] |= bit;
	return true;
}

/* Each part and each module has a stream of its own, so that nothing is read twice, and
 * none is changed through another.  Streams that the format gives a number have no other
 * use; 4, that of the types' second half, had one in the years before there was one. */
static enum status check_streams(const struct pdb *pdb, struct diag *diag)
{
	uint8_t used[(PDB_NO_STREAM + 1) / 8] = {0};

	for (uint16_t fixed = STREAM_OLD_DIRECTORY; fixed <= STREAM_DBI; fixed++)
		use_stream(used, fixed);
	if (!use_stream(used, pdb->publics) || !use_stream(used, pdb->records) ||
	    !use_stream(used, pdb->sections))
		return bad(diag, "two of its parts share a stream");
	for (uint32_t i = 0; i < pdb->modules.len; i++) {
		const struct pdb_module *m = &pdb->modules.data[i];
		uint64_t size = (uint64_t)m->symbol_bytes + m->c11_bytes + m->c13_bytes;

		if (m->stream == PDB_NO_STREAM)
			continue;
		if (m->stream >= pdb->msf.stream_count || !use_stream(used, m->stream))
			return bad(diag, "a module has no stream of its own");
		if (size > pdb->msf.streams[m->stream].size)
			return bad(diag, "a module has more than its stream");
	}
	return STATUS_OK;
}

static void read_debug_streams(struct pdb *pdb, struct msf_reader *r, uint32_t size)
{
	uint16_t streams[DEBUG_SECTIONS + 1];

	for (uint32_t i = 0; i <= DEBUG_SECTIONS; i++)
		streams[i] = i < size / 2 ? msf_read_u16(r) : PDB_NO_STREAM;
	pdb->sections = streams[DEBUG_SECTIONS];
	pdb->translated = streams[DEBUG_OMAP_FROM] != PDB_NO_STREAM;
}

static enum status read_dbi(struct pdb *pdb, struct diag *diag)
{
	struct msf_reader r = msf_reader_of(&pdb->msf, STREAM_DBI), part;
	struct dbi_parts parts = {0};
	enum status status = read_dbi_header(pdb, &r, &parts, diag);

	if (status != STATUS_OK)
		return status;
	part = r;
	part.end = part.pos + parts.modules;
	status = read_modules(pdb, &part, diag);
	if (status != STATUS_OK)
		return status;
	part = r;
	msf_skip(&part, parts.modules + parts.contributions + parts.section_map +
				parts.sources + parts.type_servers + parts.edit);
	read_debug_streams(pdb, &part, parts.debug);
	return check_streams(pdb, diag);
}

static enum status read_pdb(struct pdb *pdb, struct diag *diag)
{
	enum status status = read_info(pdb, diag);

	if (status == STATUS_OK)
		status = read_dbi(pdb, diag);
	if (status != STATUS_OK)
		pdb_close(pdb);
	return status;
}

enum status pdb_open_bytes(struct pdb *pdb, const void *bytes, uint64_t size,
			   struct diag *diag)
{
	enum status status;

	memset(pdb, 0, sizeof(*pdb));
	status = msf_open_bytes(&pdb->msf, bytes, size, diag);
	return status == STATUS_OK ? read_pdb(pdb, diag) : status;
}

enum status pdb_open(struct pdb *pdb, const char *path, struct diag *diag)
{
	enum status status;

	memset(pdb, 0, sizeof(*pdb));
	status = msf_open(&pdb->msf, path, diag);
	if (status == STATUS_OK)
		status = read_pdb(pdb, diag);
	if (status != STATUS_OK)
		diag_set_file(diag, path);
	return status;
}

void pdb_close(struct pdb *pdb)
{
	vec_release(&pdb->modules);
	msf_close(&pdb->msf);
	memset(pdb, 0, sizeof(*pdb));
}

/* The linker keeps a copy of the image's section headers (VirtualAddress stands 12 bytes
 * from a header's begin), and symbols count on them. */
static bool has_sections_of(const struct pdb *pdb, const struct image *image)
{
	struct msf_reader r = msf_reader_of(&pdb->msf, pdb->sections);

	if (pdb->sections == PDB_NO_STREAM)
		return true;
	for (uint32_t i = 0; i < image->section_count; i++) {
		uint8_t header[SECTION_HEADER_BYTES];

		msf_read(&r, header, sizeof(header));
		if (r.failed || load_u32(header + 12) != image->sections[i].rva.v)
			return false;
	}
	return true;
}

enum status pdb_check_image(const struct pdb *pdb, struct image *image, struct diag *diag)
{
	struct debug_directory debug;
	struct codeview codeview;
	char expected[64], found[64];
	enum status status = debug_directory_read(image, &debug, diag);

	if (status != STATUS_OK)
		return status;
	codeview_read(image, &debug, &codeview);
	if (!codeview.pdb)
		return diag_fail(diag, STATUS_OTHER_IMAGE,
				 "the image does not say which PDB belongs to it");
	if (strcmp(codeview.guid, pdb->guid) != 0 || codeview.age != pdb->age) {
		status = diag_fail(diag, STATUS_OTHER_IMAGE,
				   "the PDB belongs to another image");
		snprintf(expected, sizeof(expected), "%s age %u", codeview.guid,
			 codeview.age);
		snprintf(found, sizeof(found), "%s age %u", pdb->guid, pdb->age);
		diag_set_values(diag, expected, found);
		return status;
	}
	if (!has_sections_of(pdb, image))
		return diag_fail(diag, STATUS_OTHER_IMAGE,
				 "the PDB has other sections than the image");
	if (pdb->translated)
		return diag_fail(diag, STATUS_UNSUPPORTED,
				 "the PDB's addresses are those of before a rearrangement "
				 "(OMAP)");
	return STATUS_OK;
}
