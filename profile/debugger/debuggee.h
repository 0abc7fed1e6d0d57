/* The processes that are debugged, and the wanted images loaded in them.
 *
 * An image is wanted when its file's base name is one of those asked for.  Which
 * of several files of that name it is, is for the reader of the log to say: the
 * log has its path and the header fields that tell builds apart.
 */
#ifndef APPULSE_DEBUGGER_DEBUGGEE_H
#define APPULSE_DEBUGGER_DEBUGGEE_H

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>

enum { IMAGE_PAGE_BYTES = 4096, CODE_SECTION_MAX = 96 };

/* A section of code. */
struct code_range {
	uint32_t rva, size; /* bytes; whole pages */
};

/* An image that was asked for. */
struct wanted {
	const wchar_t *name;      /* base name, borrowed */
	struct start_list *starts; /* owned by the caller; of mode `breakpoints` alone */
};

/* A wanted image in one process, from its load to its unload. */
struct module {
	struct module *next;
	uint32_t id;          /* 1, 2, ... in the order of loads */
	const struct wanted *wanted;
	uint64_t base;        /* VA in the process */
	uint32_t size;        /* SizeOfImage, bytes */
	uint32_t time_stamp, checksum;
	uint16_t magic;       /* of the optional header: 0x20b is PE32+ */
	struct code_range code[CODE_SECTION_MAX];
	uint32_t code_count;
	uint8_t *state;       /* owned: one byte for each page, or for each function
			       * start of `wanted`; what it means is the mode's */
	bool answered;        /* mode `working-set`: its pages are known */
};

struct debuggee {
	struct debuggee *next;
	DWORD pid;
	HANDLE process;       /* the system closes it when the process ends */
	uint64_t ntdll;       /* VA of its ntdll.dll; 0: not loaded yet */
	bool greeted;         /* the initial breakpoint was seen */
	struct module *modules;
	/* The last access violation that was taken for a lost race. */
	DWORD retry_thread;
	uint64_t retry_address;
	uint32_t retry_count;
	/* Mode `working-set`. */
	uint64_t end_call, unmap_call; /* VA of the system calls that end processes and
			       * unmap images, which have a breakpoint; 0: none */
	DWORD asker;          /* the thread that asks; 0: none does */
	bool asks_for_all;    /* at the end: for all modules, and else for one */
	CONTEXT call_context; /* of it, to go on into the call by */
	struct module *asked; /* for which it asks now; NULL: unloaded since */
	void *answer;         /* VA of the question, and then of the answer */
};

struct debuggee *debuggee_find(struct debuggee *list, DWORD pid);

/* Puts a new process at the head of `list`; NULL when memory is out. */
struct debuggee *debuggee_add(struct debuggee **list, DWORD pid, HANDLE process);
void debuggee_remove(struct debuggee **list, DWORD pid);

/* Adds the image at `base`, whose headers are read from the process.  NULL when
 * they are no image's or memory is out. */
struct module *module_add(struct debuggee *debuggee, const struct wanted *wanted,
			  uint64_t base);
void module_remove(struct debuggee *debuggee, uint64_t base);

/* The wanted module that holds `address`, or NULL. */
struct module *module_at(const struct debuggee *debuggee, uint64_t address);

#endif
