/* What the steps of `appulse doctor` share. */
#ifndef APPULSE_REORDER_DOCTOR_H
#define APPULSE_REORDER_DOCTOR_H

#include "cli/pin_report.h"
#include "cli/tool.h"
#include "graph/analysis.h"
#include "pe/codeview.h"
#include "pe/image_kind.h"
#include "pe/toolchain.h"

/* One of the two things that may be done to an image. */
struct doctor_verdict {
	enum status status; /* STATUS_OK: it can be done */
	struct diag diag;   /* why not */
};

/* What the image contains.  A table that cannot be read counts as empty: the verdict
 * says which one and why. */
struct doctor_contents {
	struct exports exports;
	struct function_table functions;
	struct relocations relocs;
	struct tls tls;
	struct load_config config;
	struct volatile_metadata volatiles;
	struct dynamic_relocations dynamic;
	struct delay_imports delay;
	struct coff_symbols symbols;
	struct debug_directory debug;
	struct codeview codeview;
	uint32_t chained;       /* rows of the function table that continue another */
	uint32_t forwarders;    /* exports of other DLLs' functions */
	uint32_t imported_dlls;
	uint32_t overlay;       /* bytes behind sections, symbols and certificate */
	uint32_t certificate;   /* bytes */
	bool cet_compatible, dwarf, pogo, reproducible;
};

struct doctor {
	struct tool *tool;
	const char *path;
	struct pin_words pin_words; /* of --pin */
	struct image image;
	bool open;                 /* whether `image` is owned */
	struct sha256 hash;
	enum image_kind kind;
	bool node_addon;
	struct toolchain toolchain;
	struct doctor_contents contents;
	struct graph graph;
	bool discovered;           /* whether `graph` and `pins` are there */
	struct pin_report pins;
	struct name_files name_files;
	struct file_names names;   /* of these files */
	struct name_report named;  /* valid with `graph` */
	struct doctor_verdict instrument, reorder;
};

/* All that the headers and tables tell.  NO_MEMORY.  (doctor_contents.c) */
enum status doctor_read_contents(struct doctor *d, struct diag *diag);

/* What the data behind an exception handler is, for reports; "c++-3" in JSON. */
const char *doctor_handler_form(enum handler_form form);
const char *doctor_handler_key(enum handler_form form);

/* Rows of the function table by the form of their handler's data. */
struct doctor_handlers {
	uint32_t users[HANDLER_FORM_COUNT];
};

/* `graph` must be discovered; forms that nobody uses count 0. */
void doctor_count_handlers(const struct graph *graph, struct doctor_handlers *ret_handlers);

/* What the symbol of dynamic value relocations asks for. */
const char *doctor_dynamic_symbol(uint64_t symbol);

/* The guard flags that are set and named, one at a time: NULL behind the last. */
const char *doctor_guard_flag(uint32_t flags, unsigned index);

/* Prints the screen.  (doctor_text.c) */
void doctor_print(const struct doctor *d);

/* Fills the tool's JSON object.  (doctor_json.c) */
void doctor_put(const struct doctor *d);

/* What a user can do about functions that are pinned for the reason; about an image that
 * is refused with the status, NULL when there is nothing.  (doctor_advice.c) */
const char *doctor_pin_advice(enum pin_reason reason);
const char *doctor_refusal_advice(enum status status);

/* Remarks on what relinking means for this image, one at a time: NULL behind the last. */
const char *doctor_remark(const struct doctor *d, unsigned index);

#endif
