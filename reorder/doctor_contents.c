/* The doctor's look at headers and tables.
 *
 * An image that is refused has much to tell as well, so a table that cannot be read
 * does not end it: the same reader fails in discovery, and that failure is the verdict.
 */
#include <string.h>
#include <strings.h>

#include "doctor.h"
#include "pe/section_name.h"

enum {
	DEBUG_TYPE_EX_DLL_CHARACTERISTICS = 20,
	EX_CET_COMPATIBLE = 1, /* IMAGE_DLLCHARACTERISTICS_EX_CET_COMPAT */
};

/* Microsoft Learn, "Load Configuration Structure" (GuardFlags); the last four are in
 * winnt.h only. */
static const struct {
	uint32_t flag;
	const char *name;
} guard_flags[] = {
	{0x00000100, "instrumented"},
	{0x00001000, "protected delay-load IAT"},
	{0x00004000, "export suppression"},
	{0x00010000, "long jump table"},
	{0x00100000, "return flow guard"},
	{0x00400000, "EH continuation table"},
	{0x00800000, "XFG"},
	{0x01000000, "cast guard"},
};

const char *doctor_guard_flag(uint32_t flags, unsigned index)
{
	for (size_t i = 0; i < sizeof(guard_flags) / sizeof(guard_flags[0]); i++)
		if ((flags & guard_flags[i].flag) && index-- == 0)
			return guard_flags[i].name;
	return NULL;
}

static const struct {
	const char *name, *key;
} handler_forms[HANDLER_FORM_COUNT] = {
	[HANDLER_UNKNOWN] = {"of unknown form", "unknown"},
	[HANDLER_SCOPES] = {"C scope tables", "c-scopes"},
	[HANDLER_LSDA] = {"Itanium C++ ABI", "itanium"},
	[HANDLER_FRAME3] = {"C++ FrameHandler3", "c++-frame3"},
	[HANDLER_FRAME4] = {"C++ FrameHandler4", "c++-frame4"},
	[HANDLER_COOKIE] = {"GS cookies", "gs-cookie"},
	[HANDLER_LABELS] = {"labels of assembly", "labels"},
};

const char *doctor_handler_form(enum handler_form form)
{
	return handler_forms[form].name;
}

const char *doctor_handler_key(enum handler_form form)
{
	return handler_forms[form].key;
}

void doctor_count_handlers(const struct graph *graph, struct doctor_handlers *ret_handlers)
{
	memset(ret_handlers, 0, sizeof(*ret_handlers));
	for (uint32_t i = 0; i < graph->handlers.len; i++)
		ret_handlers->users[graph->handlers.data[i].form]++;
}

const char *doctor_dynamic_symbol(uint64_t symbol)
{
	switch (symbol) {
	case DYNAMIC_GUARD_IMPORT_CONTROL_TRANSFER:
		return "import calls";
	case DYNAMIC_GUARD_INDIR_CONTROL_TRANSFER:
		return "indirect calls";
	case DYNAMIC_GUARD_SWITCHTABLE_BRANCH:
		return "switch jumps";
	case DYNAMIC_ARM64X:
		return "ARM64X";
	case DYNAMIC_FUNCTION_OVERRIDE:
		return "function overrides";
	default:
		return symbol > DYNAMIC_SYMBOL_LAST ? "kernel addresses" : "others";
	}
}

static void count_forwarders(struct doctor_contents *c)
{
	for (uint32_t i = 0; i < c->exports.count; i++)
		c->forwarders += c->exports.data[i].forwarder != NULL;
}

/* Imports stand DLL by DLL. */
static void count_imported_dlls(const struct image *image, struct doctor_contents *c)
{
	for (uint32_t i = 0; i < image->import_count; i++)
		c->imported_dlls += i == 0 || strcasecmp(image->imports[i].dll,
							 image->imports[i - 1].dll) != 0;
}

static void count_chained(const struct image *image, struct doctor_contents *c)
{
	for (uint32_t i = 0; i < c->functions.count; i++) {
		struct unwind_info info;

		if (unwind_info_read(image, c->functions.data[i].unwind, &info, NULL) ==
		    STATUS_OK)
			c->chained += (info.flags & UNWIND_CHAININFO) != 0;
	}
}

static void read_debug_entries(const struct image *image, struct doctor_contents *c)
{
	codeview_read(image, &c->debug, &c->codeview);
	for (uint32_t i = 0; i < c->debug.count; i++) {
		const struct debug_entry *entry = &c->debug.data[i];

		c->pogo |= entry->type == DEBUG_TYPE_POGO;
		c->reproducible |= entry->type == DEBUG_TYPE_REPRO;
		if (entry->type == DEBUG_TYPE_EX_DLL_CHARACTERISTICS && entry->size >= 4)
			c->cet_compatible = load_u32(image->bytes + entry->data_off.v) &
					    EX_CET_COMPATIBLE;
	}
	for (uint32_t i = 0; i < image->section_count; i++)
		c->dwarf |= strcmp(section_name(image, &image->sections[i]),
				   ".debug_info") == 0;
}

/* Bytes of the COFF symbol table with its strings, behind all sections. */
static uint64_t symbol_bytes(const struct image *image)
{
	uint64_t strings = image->headers.symbol_table.v +
			   (uint64_t)image->headers.symbol_count * SYMBOL_BYTES;

	if (!coff_symbols_present(image))
		return 0;
	return strings - image->headers.symbol_table.v +
	       (strings + 4 <= image->size ? load_u32(image->bytes + strings) : 0);
}

/* Where the data of sections ends in the file. */
static uint64_t end_of_sections(const struct image *image)
{
	uint64_t end = image->headers.size_of_headers;

	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *section = &image->sections[i];
		uint64_t raw_end = (uint64_t)section->raw.v + section->raw_size;

		if (section->raw_size && raw_end > end)
			end = raw_end;
	}
	return end;
}

/* Zeros alone are no overlay: linkers leave some at the end. */
static void measure_file(const struct image *image, struct doctor_contents *c)
{
	struct data_directory certificate = image->directories[DIRECTORY_CERTIFICATE];
	uint64_t begin = end_of_sections(image) + symbol_bytes(image), bytes = 0;
	bool holds = false;

	for (uint64_t i = begin; i < image->size; i++) {
		if (i - certificate.rva.v < certificate.size)
			continue;
		bytes++;
		holds |= image->bytes[i] != 0;
	}
	c->certificate = certificate.size;
	c->overlay = holds ? (uint32_t)bytes : 0;
}

static enum status read_tables(struct image *image, struct doctor_contents *c,
			       struct diag *diag)
{
	const enum status results[] = {
		load_config_read(image, &c->config, diag),
		exports_read(image, &c->exports, diag),
		function_table_read(image, &c->functions, diag),
		relocations_read(image, &c->relocs, diag),
		tls_read(image, &c->tls, diag),
		volatile_metadata_read(image, &c->config, &c->volatiles, diag),
		dynamic_relocations_read(image, &c->config, &c->dynamic, diag),
		delay_imports_read(image, &c->delay, diag),
		coff_symbols_read(image, &c->symbols, diag),
		debug_directory_read(image, &c->debug, diag),
	};

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		if (results[i] == STATUS_NO_MEMORY)
			return diag_no_memory(diag);
	return STATUS_OK;
}

enum status doctor_read_contents(struct doctor *d, struct diag *diag)
{
	struct doctor_contents *c = &d->contents;
	struct diag ignored;
	enum status status = read_tables(&d->image, c, &ignored);

	if (status == STATUS_OK)
		status = toolchain_read(&d->image, &d->toolchain, &ignored);
	if (status != STATUS_OK)
		return diag_no_memory(diag);
	d->kind = image_kind_of(&d->image);
	d->node_addon = image_is_node_addon(&d->image, &c->exports);
	count_forwarders(c);
	count_imported_dlls(&d->image, c);
	count_chained(&d->image, c);
	read_debug_entries(&d->image, c);
	measure_file(&d->image, c);
	return STATUS_OK;
}
