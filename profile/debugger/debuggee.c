#include "debuggee.h"

#include <stdlib.h>
#include <string.h>

/* How much of an image's head is read: the section table of every linker fits. */
enum { HEADER_BYTES = 4096 };

struct debuggee *debuggee_find(struct debuggee *list, DWORD pid)
{
	while (list && list->pid != pid)
		list = list->next;
	return list;
}

struct debuggee *debuggee_add(struct debuggee **list, DWORD pid, HANDLE process)
{
	struct debuggee *debuggee = calloc(1, sizeof(*debuggee));

	if (!debuggee)
		return NULL;
	*debuggee = (struct debuggee){.next = *list, .pid = pid, .process = process};
	*list = debuggee;
	return debuggee;
}

static void module_free(struct module *module)
{
	free(module->state);
	free(module);
}

void debuggee_remove(struct debuggee **list, DWORD pid)
{
	struct debuggee *gone;

	while (*list && (*list)->pid != pid)
		list = &(*list)->next;
	gone = *list;
	if (!gone)
		return;
	*list = gone->next;
	while (gone->modules)
		module_remove(gone, gone->modules->base);
	free(gone);
}

/* Fills the code ranges from the section table at `row`. */
static void read_sections(struct module *module, const BYTE *row, unsigned count)
{
	for (unsigned i = 0; i < count; i++, row += sizeof(IMAGE_SECTION_HEADER)) {
		IMAGE_SECTION_HEADER section;
		uint32_t size;

		memcpy(&section, row, sizeof(section));
		size = section.Misc.VirtualSize ? section.Misc.VirtualSize
						: section.SizeOfRawData;
		if (!(section.Characteristics & IMAGE_SCN_MEM_EXECUTE) ||
		    (section.Characteristics & IMAGE_SCN_MEM_WRITE) || size == 0 ||
		    section.VirtualAddress % IMAGE_PAGE_BYTES != 0 ||
		    section.VirtualAddress >= module->size ||
		    size > module->size - section.VirtualAddress ||
		    module->code_count == CODE_SECTION_MAX)
			continue;
		size = (size + IMAGE_PAGE_BYTES - 1) & ~(uint32_t)(IMAGE_PAGE_BYTES - 1);
		module->code[module->code_count++] =
			(struct code_range){section.VirtualAddress, size};
	}
}

/* Fills the header fields and code ranges; false when it is no PE image. */
static bool read_headers(struct module *module, const BYTE *head)
{
	IMAGE_DOS_HEADER dos;
	IMAGE_NT_HEADERS64 nt;
	size_t table;

	memcpy(&dos, head, sizeof(dos));
	if (dos.e_magic != IMAGE_DOS_SIGNATURE || dos.e_lfanew < 0 ||
	    (size_t)dos.e_lfanew > HEADER_BYTES - sizeof(nt))
		return false;
	memcpy(&nt, head + dos.e_lfanew, sizeof(nt));
	/* SizeOfImage and CheckSum stand at one place in PE32 and PE32+. */
	module->magic = nt.OptionalHeader.Magic;
	module->size = nt.OptionalHeader.SizeOfImage;
	module->time_stamp = nt.FileHeader.TimeDateStamp;
	module->checksum = nt.OptionalHeader.CheckSum;
	table = (size_t)dos.e_lfanew + offsetof(IMAGE_NT_HEADERS64, OptionalHeader) +
		nt.FileHeader.SizeOfOptionalHeader;
	if (nt.Signature != IMAGE_NT_SIGNATURE || module->size == 0 ||
	    nt.FileHeader.NumberOfSections > CODE_SECTION_MAX ||
	    table + nt.FileHeader.NumberOfSections * sizeof(IMAGE_SECTION_HEADER) >
		    HEADER_BYTES)
		return false;
	read_sections(module, head + table, nt.FileHeader.NumberOfSections);
	return true;
}

struct module *module_add(struct debuggee *debuggee, const struct wanted *wanted,
			  uint64_t base)
{
	struct module *module = calloc(1, sizeof(*module));
	BYTE head[HEADER_BYTES];
	SIZE_T got;

	if (!module)
		return NULL;
	module->wanted = wanted;
	module->base = base;
	if (!ReadProcessMemory(debuggee->process, (void *)(uintptr_t)base, head,
			       sizeof(head), &got) ||
	    got != sizeof(head) || !read_headers(module, head)) {
		free(module);
		return NULL;
	}
	module->next = debuggee->modules;
	debuggee->modules = module;
	return module;
}

void module_remove(struct debuggee *debuggee, uint64_t base)
{
	struct module **place = &debuggee->modules;
	struct module *gone;

	while (*place && (*place)->base != base)
		place = &(*place)->next;
	gone = *place;
	if (!gone)
		return;
	*place = gone->next;
	if (debuggee->asked == gone)
		debuggee->asked = NULL;
	module_free(gone);
}

struct module *module_at(const struct debuggee *debuggee, uint64_t address)
{
	for (struct module *m = debuggee->modules; m; m = m->next)
		if (address >= m->base && address - m->base < m->size)
			return m;
	return NULL;
}
