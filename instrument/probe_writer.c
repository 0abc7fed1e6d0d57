/* Writing an instrumented image, step by step:
 *
 *   1. copy the image, add the three sections
 *   2. lead every reference that enters a probed function to its thunk
 *   3. fill the sections
 *   4. sort the guard tables, whose entries are thunks now; add the relocations of
 *      the slots; point the directories at the new tables
 *   5. lay out the file
 *
 * The import and function tables are copied because they cannot grow in place.
 * The agent is imported last, so that the other DLLs are loaded as before.  A
 * bound import table is dropped, and the import table's time stamps that go with it:
 * it would keep the loader from looking up the agent (PE/COFF specification, "Import
 * Directory Table").  Without an IAT directory, Windows makes the section writable
 * that holds the import table while it fills the address tables (observed: ReactOS
 * 0.4, LdrpSnapIAT), so an image without one gets the directory that says the same.
 */
#include "probe_writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "layout/image_file.h"
#include "layout/rewrite.h"
#include "trace/probe.h"

/* push rax; lea rax, [probe_image]; call [appulse_probe2]; pop rax; ret */
enum { COMMON_BYTES = 16, COMMON_LEA = 1, COMMON_CALL = 8 };

enum { UNWIND_BYTES = 8, AGENT_IAT_BYTES = 16, HINT_NAME_BYTES = 24 };

/* Where everything in the added sections stands. */
struct probe_places {
	uint32_t count;                /* probes */
	uint32_t import_count, function_count; /* rows of the tables, the new one included */
	struct rva code, common;       /* PROBE_CODE_SECTION */
	struct rva data, slots, iat;   /* PROBE_DATA_SECTION; data: struct probe_image */
	struct rva meta, functions, imports, lookup, hint_name, agent, unwind_table,
		unwind_info;           /* PROBE_META_SECTION */
	uint32_t code_size, data_size, meta_size; /* bytes */
};

struct probe_job {
	const struct graph *graph;
	const struct probe_plan *plan;
	const struct probe_options *options;
	struct image_file file;
	struct probe_places places;
	struct rva *thunks; /* by function */
	struct diag *diag;
};

/* Rows of the import table before its zero row. */
static uint32_t count_imports(const struct image *image)
{
	struct rva table = image->directories[DIRECTORY_IMPORT].rva;
	uint32_t count = 0;

	if (table.v == 0)
		return 0;
	for (;; count++) {
		const uint8_t *row = image_bytes(
			image, rva_add(table, count * IMPORT_DESCRIPTOR_BYTES),
			IMPORT_DESCRIPTOR_BYTES);

		if (!row || load_u32(row + 12) == 0)
			return count;
	}
}

/* Reserves `size` bytes, aligned to 8, of a section that begins at `begin`. */
static struct rva reserve(struct rva begin, uint32_t *used, uint32_t size)
{
	struct rva at = rva_add(begin, *used);

	*used += (size + 7) / 8 * 8;
	return at;
}

static void place_code(struct probe_places *p)
{
	p->code_size = p->count * PROBE_UNIT_BYTES;
	p->common = rva_add(p->code, p->code_size);
	p->code_size += COMMON_BYTES;
}

static void place_data(struct probe_places *p)
{
	reserve(p->data, &p->data_size, sizeof(struct probe_image));
	p->slots = reserve(p->data, &p->data_size, p->count * 8);
	p->iat = reserve(p->data, &p->data_size, AGENT_IAT_BYTES);
}

static void place_meta(struct probe_places *p, const char *agent)
{
	p->functions = reserve(p->meta, &p->meta_size, p->count * 4);
	p->imports = reserve(p->meta, &p->meta_size,
			     (p->import_count + 1) * IMPORT_DESCRIPTOR_BYTES);
	p->lookup = reserve(p->meta, &p->meta_size, AGENT_IAT_BYTES);
	p->hint_name = reserve(p->meta, &p->meta_size, HINT_NAME_BYTES);
	p->agent = reserve(p->meta, &p->meta_size, (uint32_t)strlen(agent) + 1);
	p->unwind_table = reserve(p->meta, &p->meta_size,
				  p->function_count * RUNTIME_FUNCTION_BYTES);
	p->unwind_info = reserve(p->meta, &p->meta_size, UNWIND_BYTES);
}

/* Sizes do not depend on addresses, so each section is laid out once at 0 for its
 * size, and again where it came to stand. */
static enum status add_sections(struct probe_job *job)
{
	struct probe_places *p = &job->places;
	enum status status;

	p->count = job->plan->functions.len;
	p->import_count = count_imports(job->graph->image) + 1;
	p->function_count = job->graph->tables.functions.count + 1;
	place_code(p);
	place_data(p);
	place_meta(p, job->options->agent);
	status = image_file_add_section(&job->file, PROBE_CODE_SECTION, p->code_size, 0xcc,
					SECTION_CODE | SECTION_EXECUTE | SECTION_READ, &p->code,
					job->diag);
	if (status == STATUS_OK)
		status = image_file_add_section(
			&job->file, PROBE_DATA_SECTION, p->data_size, 0,
			SECTION_INITIALIZED | SECTION_READ | SECTION_WRITE, &p->data, job->diag);
	if (status == STATUS_OK)
		status = image_file_add_section(&job->file, PROBE_META_SECTION, p->meta_size, 0,
						SECTION_INITIALIZED | SECTION_READ, &p->meta,
						job->diag);
	p->code_size = p->data_size = p->meta_size = 0;
	place_code(p);
	place_data(p);
	place_meta(p, job->options->agent);
	return status;
}

static struct rva unit_of(const struct probe_job *job, uint32_t probe)
{
	return rva_add(job->places.code, probe * PROBE_UNIT_BYTES);
}

static uint64_t va(const struct probe_job *job, struct rva rva)
{
	return va_of(rva, job->graph->image->headers.image_base).v;
}

static void store_relative(uint8_t *field, struct rva field_rva, struct rva target)
{
	store_u32(field, (uint32_t)rva_diff(target, rva_add(field_rva, 4)));
}

static void write_unit(struct probe_job *job, uint32_t probe)
{
	struct rva unit = unit_of(job, probe);
	uint8_t *code = image_file_at(&job->file, unit, PROBE_UNIT_BYTES);

	code[0] = 0xff; /* jmp [slot] */
	code[1] = 0x25;
	store_relative(code + 2, rva_add(unit, 2), rva_add(job->places.slots, probe * 8));
	code[PROBE_STUB_OFFSET] = 0xe8; /* call common */
	store_relative(code + PROBE_STUB_OFFSET + 1, rva_add(unit, PROBE_STUB_OFFSET + 1),
		       job->places.common);
	code[PROBE_RETURN_OFFSET] = 0xeb; /* jmp unit */
	code[PROBE_RETURN_OFFSET + 1] = (uint8_t)-(PROBE_RETURN_OFFSET + 2);
}

static void write_common(struct probe_job *job)
{
	static const uint8_t common[COMMON_BYTES] = {
		0x50,                         /* push rax */
		0x48, 0x8d, 0x05, 0, 0, 0, 0, /* lea  rax, [probe_image] */
		0xff, 0x15, 0, 0, 0, 0,       /* call [appulse_probe2] */
		0x58,                         /* pop  rax */
		0xc3,                         /* ret */
	};
	struct rva at = job->places.common;
	uint8_t *code = image_file_at(&job->file, at, COMMON_BYTES);

	memcpy(code, common, COMMON_BYTES);
	store_relative(code + COMMON_LEA + 3, rva_add(at, COMMON_LEA + 3), job->places.data);
	store_relative(code + COMMON_CALL + 2, rva_add(at, COMMON_CALL + 2), job->places.iat);
}

/* The original's name, cut between characters, in text that readers of traces take. */
static void write_name(const char *name, uint8_t *ret_name)
{
	size_t length = strlen(name);
	char copy[PROBE_NAME_BYTES] = "";

	if (length >= PROBE_NAME_BYTES) {
		length = PROBE_NAME_BYTES - 1;
		while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80)
			length--;
	}
	memcpy(copy, name, length);
	utf8_clean(copy, false);
	memcpy(ret_name, copy, sizeof(copy));
}

static void write_data(struct probe_job *job)
{
	const struct probe_places *p = &job->places;
	uint8_t *image = image_file_at(&job->file, p->data, sizeof(struct probe_image));
	uint8_t *slots = image_file_at(&job->file, p->slots, p->count * 8);
	uint8_t *functions = image_file_at(&job->file, p->functions, p->count * 4);

	store_u64(image + offsetof(struct probe_image, magic), PROBE_MAGIC);
	store_u32(image + offsetof(struct probe_image, version), PROBE_VERSION);
	store_u32(image + offsetof(struct probe_image, count), p->count);
	store_u64(image + offsetof(struct probe_image, base), va(job, rva_of(0)));
	store_u64(image + offsetof(struct probe_image, slots), va(job, p->slots));
	store_u64(image + offsetof(struct probe_image, functions), va(job, p->functions));
	memcpy(image + offsetof(struct probe_image, hash), job->options->hash.bytes,
	       PROBE_HASH_BYTES);
	store_u64(image + offsetof(struct probe_image, units), va(job, p->code));
	write_name(job->options->name, image + offsetof(struct probe_image, name));
	for (uint32_t i = 0; i < p->count; i++) {
		uint32_t function = job->plan->functions.data[i];

		store_u64(slots + 8 * i,
			  va(job, rva_add(unit_of(job, i), PROBE_STUB_OFFSET)));
		store_u32(functions + 4 * i, job->graph->functions.data[function].begin.v);
	}
}

/* A row whose address table has a lookup table beside it can be looked up afresh. */
static void unbind(uint8_t *row)
{
	if (load_u32(row) == 0)
		return;
	store_u32(row + 4, 0); /* TimeDateStamp */
	store_u32(row + 8, 0); /* ForwarderChain */
}

static void keep_addresses_writable(struct probe_job *job)
{
	const struct image *image = job->graph->image;
	const struct section *section =
		image_section_at(image, image->directories[DIRECTORY_IMPORT].rva);

	if (image->directories[DIRECTORY_IAT].size == 0 && section &&
	    DIRECTORY_IAT < image->headers.directory_count)
		job->file.directories[DIRECTORY_IAT] =
			(struct data_directory){section->rva, section->virtual_size};
}

static void write_imports(struct probe_job *job)
{
	const struct probe_places *p = &job->places;
	const struct image *image = job->graph->image;
	uint32_t old = (p->import_count - 1) * IMPORT_DESCRIPTOR_BYTES;
	uint8_t *table = image_file_at(&job->file, p->imports,
				       (p->import_count + 1) * IMPORT_DESCRIPTOR_BYTES);
	uint8_t *row = table + old;
	uint8_t *name = image_file_at(&job->file, p->hint_name, HINT_NAME_BYTES);

	_Static_assert(2 + sizeof(PROBE_ENTRY) <= HINT_NAME_BYTES, "the entry's name fits");
	if (old)
		memcpy(table, image_bytes(image, image->directories[DIRECTORY_IMPORT].rva, old),
		       old);
	for (uint32_t at = 0; at < old; at += IMPORT_DESCRIPTOR_BYTES)
		unbind(table + at);
	store_u32(row, p->lookup.v);
	store_u32(row + 12, p->agent.v);
	store_u32(row + 16, p->iat.v);
	memcpy(name + 2, PROBE_ENTRY, sizeof(PROBE_ENTRY));
	store_u64(image_file_at(&job->file, p->lookup, 8), p->hint_name.v);
	store_u64(image_file_at(&job->file, p->iat, 8), p->hint_name.v);
	memcpy(image_file_at(&job->file, p->agent, (uint32_t)strlen(job->options->agent) + 1),
	       job->options->agent, strlen(job->options->agent) + 1);
	job->file.directories[DIRECTORY_IMPORT] = (struct data_directory){
		p->imports, (p->import_count + 1) * IMPORT_DESCRIPTOR_BYTES};
	job->file.directories[DIRECTORY_BOUND_IMPORT] = (struct data_directory){0};
	keep_addresses_writable(job);
}

/* Unwinding from the common code leads to the stub, and through it, as a leaf, to the
 * caller of the function (Microsoft Learn, "x64 exception handling", UWOP_ALLOC_SMALL:
 * operation 2, size 8 * info + 8). */
static void write_unwind(struct probe_job *job)
{
	static const uint8_t info[UNWIND_BYTES] = {
		1,          /* version 1, no flags */
		1,          /* bytes of prolog: push rax */
		1,          /* codes */
		0,          /* no frame register */
		1, 2 | 0 << 4, /* behind the push: 8 bytes */
	};
	const struct probe_places *p = &job->places;
	const struct function_table *old = &job->graph->tables.functions;
	uint32_t old_size = old->count * RUNTIME_FUNCTION_BYTES;
	uint8_t *table = image_file_at(&job->file, p->unwind_table,
				       old_size + RUNTIME_FUNCTION_BYTES);

	memcpy(image_file_at(&job->file, p->unwind_info, UNWIND_BYTES), info, UNWIND_BYTES);
	for (uint32_t i = 0; i < old->count; i++) {
		store_u32(table + i * RUNTIME_FUNCTION_BYTES, old->data[i].begin.v);
		store_u32(table + i * RUNTIME_FUNCTION_BYTES + 4, old->data[i].end.v);
		store_u32(table + i * RUNTIME_FUNCTION_BYTES + 8, old->data[i].unwind.v);
	}
	store_u32(table + old_size, p->common.v);
	store_u32(table + old_size + 4, p->common.v + COMMON_BYTES);
	store_u32(table + old_size + 8, p->unwind_info.v);
	job->file.directories[DIRECTORY_EXCEPTION] =
		(struct data_directory){p->unwind_table, old_size + RUNTIME_FUNCTION_BYTES};
}

/* The slots, and the pointers of struct probe_image. */
static enum status add_relocations(struct probe_job *job, const struct rewrite *rewrite)
{
	const struct probe_places *p = &job->places;
	const uint32_t fields[] = {offsetof(struct probe_image, base),
				   offsetof(struct probe_image, slots),
				   offsetof(struct probe_image, functions),
				   offsetof(struct probe_image, units)};
	VEC(struct reloc) relocs = {0};
	enum status status = STATUS_OK;

	for (unsigned i = 0; i < sizeof(fields) / sizeof(*fields) && status == STATUS_OK;
	     i++) {
		struct reloc reloc = {rva_add(p->data, fields[i]), RELOC_DIR64};

		if (!vec_push(&relocs, reloc))
			status = diag_no_memory(job->diag);
	}
	for (uint32_t i = 0; i < p->count && status == STATUS_OK; i++) {
		struct reloc reloc = {rva_add(p->slots, 8 * i), RELOC_DIR64};

		if (!vec_push(&relocs, reloc))
			status = diag_no_memory(job->diag);
	}
	if (status == STATUS_OK)
		status = rewrite_relocations(rewrite, relocs.data, relocs.len, job->diag);
	vec_release(&relocs);
	return status;
}

static enum status edit(struct probe_job *job)
{
	struct rewrite rewrite = {.graph = job->graph, .file = &job->file};
	enum status status = add_sections(job);

	if (status != STATUS_OK)
		return status;
	for (uint32_t i = 0; i < job->plan->functions.len; i++)
		job->thunks[job->plan->functions.data[i]] = unit_of(job, i);
	rewrite.thunks = job->thunks;
	status = rewrite_refs(&rewrite, job->diag);
	if (status != STATUS_OK)
		return status;
	for (uint32_t i = 0; i < job->plan->functions.len; i++)
		write_unit(job, i);
	write_common(job);
	write_data(job);
	write_imports(job);
	write_unwind(job);
	status = rewrite_sort_tables(&rewrite, job->diag);
	if (status == STATUS_OK)
		status = add_relocations(job, &rewrite);
	return status;
}

enum status probe_write(const struct graph *graph, const struct probe_plan *plan,
			const struct probe_options *options, struct probed *ret_probed,
			struct diag *diag)
{
	struct probe_job job = {.graph = graph, .plan = plan, .options = options, .diag = diag};
	enum status status = image_file_init(&job.file, graph->image, diag);

	memset(ret_probed, 0, sizeof(*ret_probed));
	if (status != STATUS_OK)
		return status;
	assert(plan->functions.len > 0 &&
	       graph->image->headers.directory_count > DIRECTORY_RELOCATION);
	job.thunks = calloc((size_t)graph->functions.len + 1, sizeof(*job.thunks));
	status = job.thunks ? edit(&job) : diag_no_memory(diag);
	if (status == STATUS_OK)
		status = image_file_emit(&job.file, &ret_probed->bytes, &ret_probed->size, diag);
	ret_probed->dropped_signature = job.file.had_certificate;
	free(job.thunks);
	image_file_release(&job.file);
	return status;
}

void probed_release(struct probed *probed)
{
	free(probed->bytes);
	memset(probed, 0, sizeof(*probed));
}
