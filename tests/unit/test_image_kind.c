#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pe/image_kind.h"

/* What image_kind.c looks at, of an image that imports from one DLL. */
struct made {
	struct image image;
	struct import import;
	struct exports exports;
	struct export_entry export;
};

static void make(struct made *made, uint16_t subsystem, uint16_t characteristics,
		 const char *dll)
{
	memset(made, 0, sizeof(*made));
	made->image.headers.subsystem = subsystem;
	made->image.headers.characteristics = characteristics;
	made->import.dll = dll;
	made->image.imports = &made->import;
	made->image.import_count = dll != NULL;
	made->exports = (struct exports){"made.dll", &made->export, 1};
	made->export.name = "function";
}

static void kinds_are_told_apart(void **state)
{
	static const struct {
		uint16_t subsystem, characteristics;
		const char *dll;
		enum image_kind kind;
		bool instrumentable;
	} cases[] = {
		{2, 0x2022, "KERNEL32.dll", IMAGE_DLL, true},
		{3, 0x2022, NULL, IMAGE_DLL, true},
		{2, 0x22, "KERNEL32.dll", IMAGE_EXE, true},
		{3, 0x22, "KERNEL32.dll", IMAGE_EXE, true},
		{1, 0x22, "ntoskrnl.exe", IMAGE_DRIVER, false},
		{1, 0x22, NULL, IMAGE_DRIVER, false},
		{3, 0x2022, "NTOSKRNL.EXE", IMAGE_DRIVER, false},
		{2, 0x2022, "HAL.dll", IMAGE_DRIVER, false},
		{2, 0x2022, "ndis.sys", IMAGE_DRIVER, false},
		{1, 0x22, "ntdll.dll", IMAGE_NATIVE, false},
		{16, 0x22, NULL, IMAGE_BOOT, false},
		{10, 0x22, NULL, IMAGE_EFI, false},
		{13, 0x22, NULL, IMAGE_EFI, false},
		{9, 0x22, "coredll.dll", IMAGE_OTHER, false},
		{14, 0x22, NULL, IMAGE_OTHER, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made made;
		struct diag diag;

		make(&made, cases[i].subsystem, cases[i].characteristics, cases[i].dll);
		assert_int_equal(image_kind_of(&made.image), cases[i].kind);
		assert_int_equal(
			image_check_instrumentable(&made.image, &made.exports, &diag),
			cases[i].instrumentable ? STATUS_OK : STATUS_UNSUPPORTED);
	}
}

static void what_the_agent_needs_cannot_import_it(void **state)
{
	static const char *const names[] = {"ntdll.dll", "KERNEL32.dll", "kernelbase.dll"};
	struct made made;
	struct diag diag;

	(void)state;
	make(&made, 3, 0x2022, "ntdll.dll");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		made.exports.dll_name = names[i];
		assert_int_equal(
			image_check_instrumentable(&made.image, &made.exports, &diag),
			STATUS_UNSUPPORTED);
	}
	made.exports.dll_name = NULL;
	assert_int_equal(image_check_instrumentable(&made.image, &made.exports, &diag),
			 STATUS_OK);
}

static void addons_register_themselves(void **state)
{
	struct made made;

	(void)state;
	make(&made, 2, 0x2022, "KERNEL32.dll");
	assert_false(image_is_node_addon(&made.image, &made.exports));
	made.export.name = NULL;
	assert_false(image_is_node_addon(&made.image, &made.exports));
	made.export.name = "napi_register_module_v1";
	assert_true(image_is_node_addon(&made.image, &made.exports));
	made.export.name = "node_register_module_v108";
	assert_true(image_is_node_addon(&made.image, &made.exports));
	/* node.exe exports functions of that sort, but is a program. */
	made.image.headers.characteristics = 0x22;
	assert_false(image_is_node_addon(&made.image, &made.exports));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_are_told_apart),
		cmocka_unit_test(what_the_agent_needs_cannot_import_it),
		cmocka_unit_test(addons_register_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
