/* Which images no tool of ours may touch, and the signs that they are known by.
 *
 * .NET images, its Native AOT's, Go programs and packed images have code that is found by its
 * place (metadata tokens, Go's function table, an unpacker's stream), so moving
 * it breaks them in ways that no reading of PE tables can see.  The signs:
 *
 *   .NET    the CLR directory (PE/COFF specification, "Optional Header Data
 *           Directories")
 *   Go      "\xff Go build ID: \"" in the first 32 KiB of executable code, which
 *           Go's own linker puts there (Go's source, cmd/internal/buildid), or
 *           "\xff Go buildinf:" followed by the pointer size 8 at a multiple of
 *           16 in writable data (Go's source, debug/buildinfo), which stays when
 *           an external linker was used
 *   AOT     sections `.managed` or `hydrated`, or an export of that name: .NET's Native
 *           AOT compiler keeps types and pointers to code in a stream of commands that
 *           start-up unpacks (.NET runtime, DehydratedData.cs), where no net finds them
 *   packed  sections that a packer or protector names (section_packer), or code that is
 *           writable
 *   CHPE    ARM64EC and ARM64X images say that they are for x86-64 and have the
 *           CHPE metadata pointer in the load configuration
 *
 * Refused as well: what the load configuration has that moved code would break, or
 * that is not known (docs/load-config.md).
 *
 * An image without base relocations is none of them: graph/absolute_refs.c tells which
 * numbers in it may be addresses.
 */
#include <string.h>

#include "pe/image.h"
#include "pe/load_config.h"
#include "pe/section_name.h"

enum { GO_ID_SPAN = 32 * 1024, GO_INFO_ALIGNMENT = 16, GO_POINTER_BYTES = 8 };

static const char go_id[] = "\xff Go build ID: \"";
static const char go_info[] = "\xff Go buildinf:";

/* The section's bytes in the file. */
static const uint8_t *section_data(const struct image *image, const struct section *section,
				   uint32_t *ret_size)
{
	*ret_size = section->raw_size < section->virtual_size ? section->raw_size
							      : section->virtual_size;
	return image_bytes(image, section->rva, *ret_size);
}

static bool has_go_id(const uint8_t *data, uint32_t size)
{
	return memmem(data, size < GO_ID_SPAN ? size : GO_ID_SPAN, go_id,
		      sizeof(go_id) - 1) != NULL;
}

static bool has_go_info(const uint8_t *data, uint32_t size)
{
	uint32_t length = sizeof(go_info) - 1;

	for (uint32_t i = 0; size - i > length; i += GO_INFO_ALIGNMENT) {
		if (data[i] == 0xff && memcmp(data + i, go_info, length) == 0 &&
		    data[i + length] == GO_POINTER_BYTES)
			return true;
		if (size - i < GO_INFO_ALIGNMENT)
			break;
	}
	return false;
}

static bool is_go(const struct image *image)
{
	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *section = &image->sections[i];
		uint32_t size;
		const uint8_t *data = section_data(image, section, &size);

		if (!data)
			continue;
		if ((section->characteristics & SECTION_EXECUTE) && has_go_id(data, size))
			return true;
		if ((section->characteristics & SECTION_WRITE) && has_go_info(data, size))
			return true;
	}
	return false;
}

static bool is_native_aot(const struct image *image)
{
	static const char name[] = "\0DotNetRuntimeDebugHeader";
	const struct data_directory *exports = &image->directories[DIRECTORY_EXPORT];
	const uint8_t *table = image_bytes(image, exports->rva, exports->size);

	for (uint32_t i = 0; i < image->section_count; i++)
		if (strcmp(image->sections[i].name, ".managed") == 0 ||
		    strcmp(image->sections[i].name, "hydrated") == 0)
			return true;
	return table && memmem(table, exports->size, name, sizeof(name));
}

static enum status check_packed(const struct image *image, struct diag *diag)
{
	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *section = &image->sections[i];
		const char *packer = section_packer(section);

		if (packer)
			return diag_fail_at(diag, STATUS_PACKED, section->rva,
					    "packed or protected by %s: section '%s'", packer,
					    section->name);
		if ((section->characteristics & SECTION_EXECUTE) &&
		    (section->characteristics & SECTION_WRITE))
			return diag_fail_at(diag, STATUS_PACKED, section->rva,
					    "a packed or self-modifying image: section "
					    "'%s' is executable and writable",
					    section->name);
	}
	return STATUS_OK;
}

static enum status check_load_config(const struct image *image, struct diag *diag)
{
	struct load_config config;
	enum status status = load_config_read(image, &config, diag);

	if (status != STATUS_OK)
		return status;
	if (config.chpe_metadata.v)
		return diag_fail_at(diag, STATUS_UNSUPPORTED, config.chpe_metadata,
				    "an ARM64EC or ARM64X image (it has CHPE metadata)");
	if (config.hot_patches)
		return diag_fail_at(diag, STATUS_UNSUPPORTED, config.rva,
				    "an image for hot patches, which name its code by "
				    "place");
	if (config.lock_prefixes.v)
		return diag_fail_at(diag, STATUS_UNSUPPORTED, config.lock_prefixes,
				    "a list of lock prefixes, which x86-64 images do not "
				    "have");
	if (config.unknown.v)
		return diag_fail_at(diag, STATUS_UNSUPPORTED, config.unknown,
				    "a load configuration of %u bytes, with a field that "
				    "is not known", config.size);
	return STATUS_OK;
}

bool image_has_relocations(const struct image *image)
{
	const struct data_directory *directory = &image->directories[DIRECTORY_RELOCATION];

	return directory->rva.v && directory->size;
}

bool image_may_lie_anywhere(const struct image *image)
{
	const struct pe_headers *headers = &image->headers;

	return !(headers->characteristics & FILE_RELOCS_STRIPPED) &&
	       ((headers->characteristics & FILE_DLL) ||
		(headers->dll_characteristics & DLL_DYNAMIC_BASE));
}

/* Which of the two is true decides whether the table is the whole truth. */
static enum status check_relocations(const struct image *image, struct diag *diag)
{
	if (!(image->headers.characteristics & FILE_RELOCS_STRIPPED) ||
	    !image_has_relocations(image))
		return STATUS_OK;
	return diag_fail_at(diag, STATUS_NO_RELOCATIONS,
			    image->directories[DIRECTORY_RELOCATION].rva,
			    "base relocations, though it says that they are stripped");
}

enum status image_check_supported(const struct image *image, struct diag *diag)
{
	enum status status;

	if (image->directories[DIRECTORY_CLR].rva.v)
		status = diag_fail(diag, STATUS_DOTNET, "a .NET image");
	else if (is_native_aot(image))
		status = diag_fail(diag, STATUS_NATIVE_AOT,
				   "an image of .NET's Native AOT compiler");
	else if (is_go(image))
		status = diag_fail(diag, STATUS_GO, "a Go image");
	else
		status = check_packed(image, diag);
	if (status == STATUS_OK)
		status = check_load_config(image, diag);
	if (status == STATUS_OK)
		status = check_relocations(image, diag);
	if (status != STATUS_OK)
		diag_set_file(diag, image->path);
	return status;
}
