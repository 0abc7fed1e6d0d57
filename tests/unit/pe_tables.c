/* Prints what the readers of pe/ find in an image, a line a fact, for
 * real_images.py to compare.  All numbers are hexadecimal without a prefix,
 * addresses are RVAs. */
#include <stdio.h>
#include <string.h>

#include "pe/coff_symbols.h"
#include "pe/debug_directory.h"
#include "pe/delay_imports.h"
#include "pe/exports.h"
#include "pe/image.h"
#include "pe/load_config.h"
#include "pe/lsda.h"
#include "pe/pseudo_relocs.h"
#include "pe/relocations.h"
#include "pe/scope_table.h"
#include "pe/tls.h"
#include "pe/unwind_info.h"

static const char *or_dash(const char *text)
{
	return text ? text : "-";
}

static void print_headers(const struct image *image)
{
	printf("base %llx\n", (unsigned long long)image->headers.image_base);
	printf("entry %x\n", image->headers.entry.v);
	printf("time %x\n", image->headers.time_date_stamp);
	printf("checksum %x\n", image->headers.checksum);
	for (uint32_t i = 0; i < DIRECTORY_COUNT; i++)
		printf("directory %x %x %x\n", i, image->directories[i].rva.v,
		       image->directories[i].size);
	for (uint32_t i = 0; i < image->section_count; i++)
		printf("section %x %x %x\n", image->sections[i].rva.v,
		       image->sections[i].raw_size, image->sections[i].raw.v);
	for (uint32_t i = 0; i < image->import_count; i++)
		printf("import %s %s %x\n", image->imports[i].dll,
		       or_dash(image->imports[i].name), image->imports[i].ordinal);
}

static enum status print_fixed_tables(struct image *image, struct diag *diag)
{
	struct relocations relocs = {0};
	struct exports exports = {0};
	struct tls tls = {0};
	struct coff_symbols symbols = {0};
	struct pseudo_relocs pseudo = {0};
	enum status status = relocations_read(image, &relocs, diag);

	if (status == STATUS_OK)
		status = exports_read(image, &exports, diag);
	if (status == STATUS_OK)
		status = tls_read(image, &tls, diag);
	if (status == STATUS_OK)
		status = coff_symbols_read(image, &symbols, diag);
	if (status == STATUS_OK)
		status = pseudo_relocs_read(image, &pseudo, diag);
	for (uint32_t i = 0; i < relocs.count; i++)
		printf("reloc %x %x\n", relocs.data[i].site.v, relocs.data[i].type);
	for (uint32_t i = 0; i < exports.count; i++)
		printf("export %x %x %s\n", exports.data[i].ordinal,
		       exports.data[i].target.v, or_dash(exports.data[i].name));
	for (uint32_t i = 0; i < tls.count; i++)
		printf("tls %x\n", tls.callbacks[i].target.v);
	for (uint32_t i = 0; i < symbols.count; i++)
		printf("symbol %x %s\n", symbols.data[i].rva.v, symbols.data[i].name);
	for (uint32_t i = 0; i < pseudo.count; i++)
		printf("pseudo %x %x %x\n", pseudo.data[i].symbol.v,
		       pseudo.data[i].target.v, pseudo.data[i].bits);
	return status;
}

static enum status print_rare_tables(struct image *image, struct diag *diag)
{
	struct load_config config;
	struct delay_imports delayed = {0};
	struct debug_directory debug = {0};
	enum status status = load_config_read(image, &config, diag);

	if (status == STATUS_OK)
		status = delay_imports_read(image, &delayed, diag);
	if (status == STATUS_OK)
		status = debug_directory_read(image, &debug, diag);
	for (uint32_t i = 0; i < delayed.count; i++)
		printf("delayed %s %x\n", delayed.data[i].dll, delayed.data[i].count);
	for (uint32_t i = 0; i < debug.count; i++)
		printf("debug %x %x\n", debug.data[i].type, debug.data[i].size);
	return status;
}

/* What the handler data of a function can be read as. */
static void print_handler(struct image *image, const struct runtime_function *row,
			  const struct unwind_info *info)
{
	struct lsda lsda;
	struct scope_table scopes;
	uint32_t size = row->end.v - row->begin.v;
	bool is_lsda = lsda_read(image, &image->arena, info->handler_data, row->begin, size,
				 &lsda, NULL, NULL) == STATUS_OK;
	bool is_scopes =
		scope_table_read(image, &image->arena, info->handler_data, &scopes,
				 NULL) == STATUS_OK;

	printf("handler %x %x %s %s\n", row->begin.v, info->handler.v,
	       is_lsda ? "lsda" : "-", is_scopes ? "scopes" : "-");
	for (uint32_t i = 0; is_lsda && i < lsda.site_count; i++)
		printf("pad %x %x\n", row->begin.v,
		       (uint32_t)(lsda.lp_start.v + lsda.sites[i].landing_pad));
}

static enum status print_functions(struct image *image, struct diag *diag)
{
	struct function_table table = {0};
	enum status status = function_table_read(image, &table, diag);

	for (uint32_t i = 0; i < table.count && status == STATUS_OK; i++) {
		const struct runtime_function *row = &table.data[i];
		struct unwind_info info;

		printf("function %x %x %x\n", row->begin.v, row->end.v, row->unwind.v);
		status = unwind_info_read(image, row->unwind, &info, diag);
		if (status == STATUS_OK &&
		    (info.flags & (UNWIND_EHANDLER | UNWIND_UHANDLER)))
			print_handler(image, row, &info);
	}
	return status;
}

int main(int argc, char **argv)
{
	struct image image;
	struct diag diag;
	enum status status;
	char message[2048];

	if (argc != 2)
		return 2;
	diag_init(&diag);
	status = image_open(&image, argv[1], &diag);
	if (status == STATUS_OK) {
		print_headers(&image);
		status = image_check_supported(&image, &diag);
		if (status == STATUS_OK)
			status = print_fixed_tables(&image, &diag);
		if (status == STATUS_OK)
			status = print_rare_tables(&image, &diag);
		if (status == STATUS_OK)
			status = print_functions(&image, &diag);
		image_release(&image);
	}
	if (status != STATUS_OK) {
		diag_format(&diag, message, sizeof(message));
		fprintf(stderr, "%s: %s\n", status_name(status), message);
	}
	return status_exit_code(status);
}
