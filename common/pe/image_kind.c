/* The subsystem says who may load an image (PE/COFF specification, "Windows
 * Subsystem"), but not all: a kernel-mode DLL may carry any, since the kernel's loader
 * does not look.  What is imported from the kernel, its HAL or another driver is sure.
 *
 * The agent of instrumented images is a DLL for Windows programs.  Nothing but those
 * can import it; a driver that did would not load, and a boot image would leave a machine
 * that does not start.  Neither can ntdll.dll, which is mapped without resolving any
 * imports, nor the DLLs that the agent imports: they would be initialized after it
 * (Microsoft Learn, "DllMain entry point", on the order of initialization).
 */
#include "pe/image_kind.h"

#include <string.h>
#include <strings.h>

/* PE/COFF specification, "Windows Subsystem". */
enum {
	SUBSYSTEM_NATIVE = 1,
	SUBSYSTEM_WINDOWS_GUI = 2,
	SUBSYSTEM_WINDOWS_CUI = 3,
	SUBSYSTEM_EFI_APPLICATION = 10,
	SUBSYSTEM_EFI_ROM = 13,
	SUBSYSTEM_WINDOWS_BOOT = 16,
};

static bool is_kernel_module(const char *dll)
{
	size_t length = strlen(dll);

	return strcasecmp(dll, "ntoskrnl.exe") == 0 || strcasecmp(dll, "hal.dll") == 0 ||
	       (length > 4 && strcasecmp(dll + length - 4, ".sys") == 0);
}

static bool imports_kernel(const struct image *image)
{
	for (uint32_t i = 0; i < image->import_count; i++)
		if (is_kernel_module(image->imports[i].dll))
			return true;
	return false;
}

enum image_kind image_kind_of(const struct image *image)
{
	uint16_t subsystem = image->headers.subsystem;

	if (subsystem >= SUBSYSTEM_EFI_APPLICATION && subsystem <= SUBSYSTEM_EFI_ROM)
		return IMAGE_EFI;
	if (subsystem == SUBSYSTEM_WINDOWS_BOOT)
		return IMAGE_BOOT;
	if (imports_kernel(image))
		return IMAGE_DRIVER;
	switch (subsystem) {
	case SUBSYSTEM_WINDOWS_GUI:
	case SUBSYSTEM_WINDOWS_CUI:
		return image->headers.characteristics & FILE_DLL ? IMAGE_DLL : IMAGE_EXE;
	case SUBSYSTEM_NATIVE:
		/* The kernel's own image and drivers that import nothing; programs like
		 * the session manager import ntdll.dll. */
		return image->import_count ? IMAGE_NATIVE : IMAGE_DRIVER;
	default:
		return IMAGE_OTHER;
	}
}

bool section_is_pageable(const struct section *section)
{
	return strncmp(section->name, "PAGE", 4) == 0;
}

const char *image_kind_name(enum image_kind kind)
{
	static const char *const names[] = {
		[IMAGE_DLL] = "DLL",
		[IMAGE_EXE] = "EXE",
		[IMAGE_DRIVER] = "driver",
		[IMAGE_NATIVE] = "native program",
		[IMAGE_BOOT] = "boot application",
		[IMAGE_EFI] = "EFI image",
		[IMAGE_OTHER] = "other",
	};

	return names[kind];
}

/* Node.js documentation, "Node-API", on module registration; src/node.h of Node.js for
 * addons that are bound to one version. */
bool image_is_node_addon(const struct image *image, const struct exports *exports)
{
	static const char versioned[] = "node_register_module_v";

	if (image_kind_of(image) != IMAGE_DLL)
		return false;
	for (uint32_t i = 0; i < exports->count; i++) {
		const char *name = exports->data[i].name;

		if (name && (strcmp(name, "napi_register_module_v1") == 0 ||
			     strncmp(name, versioned, sizeof(versioned) - 1) == 0))
			return true;
	}
	return false;
}

static bool is_below_agent(const struct exports *exports)
{
	static const char *const names[] = {"ntdll.dll", "kernel32.dll", "kernelbase.dll"};

	for (size_t i = 0; exports->dll_name && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcasecmp(exports->dll_name, names[i]) == 0)
			return true;
	return false;
}

enum status image_check_instrumentable(const struct image *image,
				       const struct exports *exports, struct diag *diag)
{
	enum image_kind kind = image_kind_of(image);

	if (kind == IMAGE_OTHER)
		return diag_fail(
			diag, STATUS_UNSUPPORTED,
			"an image for subsystem %u, only Windows programs and DLLs can "
			"load the agent",
			image->headers.subsystem);
	if (kind != IMAGE_DLL && kind != IMAGE_EXE)
		return diag_fail(
			diag, STATUS_UNSUPPORTED,
			"%s %s cannot load the agent, only Windows programs and DLLs can",
			kind == IMAGE_EFI ? "an" : "a", image_kind_name(kind));
	if (is_below_agent(exports))
		return diag_fail(diag, STATUS_UNSUPPORTED,
				 "'%s' is loaded before the agent, which needs it",
				 exports->dll_name);
	return STATUS_OK;
}
