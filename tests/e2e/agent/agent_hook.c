#include "agent_hook.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *agent_hook(HMODULE module, const char *name, void *function)
{
	uint8_t *base = (uint8_t *)module;
	IMAGE_NT_HEADERS *nt = (void *)(base + ((IMAGE_DOS_HEADER *)base)->e_lfanew);
	IMAGE_DATA_DIRECTORY *imports =
		&nt->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT];
	IMAGE_IMPORT_DESCRIPTOR *d = (void *)(base + imports->VirtualAddress);

	for (; d->Name; d++) {
		IMAGE_THUNK_DATA *names = (void *)(base + d->OriginalFirstThunk);
		IMAGE_THUNK_DATA *cells = (void *)(base + d->FirstThunk);

		for (; names->u1.AddressOfData; names++, cells++) {
			IMAGE_IMPORT_BY_NAME *entry =
				(void *)(base + names->u1.AddressOfData);
			void *old = (void *)cells->u1.Function;
			DWORD protection;

			if (strcmp((char *)entry->Name, name) != 0)
				continue;
			VirtualProtect(cells, sizeof(*cells), PAGE_READWRITE, &protection);
			cells->u1.Function = (ULONGLONG)function;
			return old;
		}
	}
	printf("the agent does not import %s\n", name);
	exit(1);
}
