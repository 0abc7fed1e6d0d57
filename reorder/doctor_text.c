/* The doctor's screen: 80 columns, and few enough lines to be seen at once.
 *
 *     label       item, item, item
 *                 what finds no room in the line above
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/human.h"
#include "cli/table.h"
#include "doctor.h"

enum { COLUMNS = 80, INDENT = 12 };

/* A labelled line that wraps between its items; one without items is not printed. */
struct line {
	const char *label;
	unsigned column; /* where the next character goes; 0: nothing printed yet */
	bool continues;  /* an item stands before */
};

static void begin(struct line *line, const char *label)
{
	*line = (struct line){.label = label};
}

static void item(struct line *line, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void item(struct line *line, const char *fmt, ...)
{
	va_list args;
	char *text;
	unsigned width;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	utf8_clean(text, false);
	width = (unsigned)utf8_width(text);
	if (line->column == 0)
		line->column = (unsigned)printf("%-*s", INDENT, line->label);
	/* One more column for a comma that may follow. */
	if (line->continues && line->column + 2 + width + 1 > COLUMNS) {
		printf(",\n%*s", INDENT, "");
		line->column = INDENT;
		line->continues = false;
	}
	line->column += (unsigned)printf("%s%s", line->continues ? ", " : "", text);
	line->continues = true;
	free(text);
}

static void end(const struct line *line)
{
	if (line->column)
		putchar('\n');
}

/* "n words", left out when there are none. */
static void count_item(struct line *line, uint64_t n, const char *word)
{
	if (n)
		item(line, "%s", human_things(n, word).text);
}

/* A sentence, wrapped between its words. */
static void sentence(const char *label, const char *text)
{
	unsigned column = (unsigned)printf("%-*s", INDENT, label);
	bool first = true;

	while (*text) {
		size_t length = strcspn(text, " ");

		if (!first && column + 1 + length > COLUMNS) {
			printf("\n%*s", INDENT, "");
			column = INDENT;
			first = true;
		}
		column += (unsigned)printf("%s%.*s", first ? "" : " ", (int)length, text);
		first = false;
		text += length + strspn(text + length, " ");
	}
	putchar('\n');
}

static void print_kind(const struct doctor *d)
{
	const struct pe_headers *h = &d->image.headers;
	struct line line;

	begin(&line, "image");
	item(&line, "%s", basename(d->path));
	item(&line, "%s", human_things(d->image.size, "byte").text);
	end(&line);
	begin(&line, "kind");
	item(&line, "%s", image_kind_name(d->kind));
	if (d->node_addon)
		item(&line, "addon of Node.js");
	item(&line, "x86-64");
	count_item(&line, d->image.section_count, "section");
	item(&line, "alignment %s", human_count(h->section_alignment).text);
	item(&line, "in the file %s", human_count(h->file_alignment).text);
	end(&line);
}

static void print_linker(const struct toolchain *t)
{
	const char *studio = t->linker == LINKER_MICROSOFT
				     ? visual_studio_of(t->linker_major, t->linker_minor)
				     : NULL;
	struct line line;

	begin(&line, "linker");
	if (t->linker == LINKER_UNKNOWN)
		item(&line, "unknown, says version %u.%02u", t->linker_major,
		     t->linker_minor);
	else if (t->linker == LINKER_LLD)
		item(&line, "%s", linker_name(t->linker)); /* its version is no version */
	else
		item(&line, "%s %u.%02u", linker_name(t->linker), t->linker_major,
		     t->linker_minor);
	if (studio)
		item(&line, "of %s", studio);
	if (t->linker_found)
		item(&line, "by its %s%s", t->linker_found,
		     t->rich.count && !t->rich.intact ? " (changed since)" : "");
	end(&line);
}

static void print_compilers(const struct toolchain *t)
{
	static const char *const names[RICH_TOOL_COUNT] = {
		[RICH_UNMARKED] = "other",    [RICH_C] = "C",
		[RICH_CPP] = "C++",           [RICH_LTCG_C] = "C by LTCG",
		[RICH_LTCG_CPP] = "C++ by LTCG", [RICH_POGO_C] = "C with PGO",
		[RICH_POGO_CPP] = "C++ with PGO", [RICH_ASSEMBLER] = "assembler",
	};
	uint64_t counts[RICH_TOOL_COUNT] = {0};
	struct line line;

	for (uint32_t i = 0; i < t->rich.count; i++)
		counts[rich_tool_of(t->rich.entries[i].product)] +=
			t->rich.entries[i].count;
	begin(&line, "objects");
	for (unsigned i = 0; i < RICH_TOOL_COUNT; i++)
		if (names[i] && counts[i])
			item(&line, "%s %s", names[i], human_count(counts[i]).text);
	end(&line);
	begin(&line, "signs of");
	for (uint32_t i = 0; i < t->sign_count; i++) {
		const struct toolchain_sign *sign = &t->signs[i];

		item(&line, "%s%s%s (%s)", sign->name, sign->version[0] ? " " : "",
		     sign->version, sign->found);
	}
	end(&line);
}

static void print_tables(const struct doctor *d)
{
	const struct doctor_contents *c = &d->contents;
	struct line line;

	begin(&line, "tables");
	count_item(&line, c->functions.count, "unwind row");
	if (c->chained)
		item(&line, "%s chained", human_count(c->chained).text);
	count_item(&line, c->relocs.count, "relocation");
	count_item(&line, c->exports.count, "export");
	count_item(&line, c->forwarders, "forwarder");
	count_item(&line, d->image.import_count, "import");
	count_item(&line, c->imported_dlls, "imported DLL");
	count_item(&line, c->delay.count, "delay-loaded DLL");
	count_item(&line, c->tls.count, "TLS callback");
	if (d->image.directories[DIRECTORY_BOUND_IMPORT].rva.v)
		item(&line, "bound imports");
	if (d->image.directories[DIRECTORY_RESOURCE].size)
		item(&line, "resources");
	if (c->overlay)
		item(&line, "overlay of %s", human_bytes(c->overlay).text);
	end(&line);
}

static void print_handlers(const struct doctor *d)
{
	struct doctor_handlers handlers;
	struct line line;

	doctor_count_handlers(&d->graph, &handlers);
	begin(&line, "handlers");
	for (unsigned i = HANDLER_UNKNOWN + 1; i <= HANDLER_FORM_COUNT; i++) {
		unsigned form = i % HANDLER_FORM_COUNT; /* the unknown ones last */

		if (handlers.users[form])
			item(&line, "%s: %s", doctor_handler_form((enum handler_form)form),
			     human_things(handlers.users[form], "function").text);
	}
	end(&line);
}

static void print_guard(const struct doctor *d)
{
	const struct doctor_contents *c = &d->contents;
	const char *name;
	struct line line;

	begin(&line, "guard");
	count_item(&line, c->config.functions.count, "function");
	count_item(&line, c->config.address_taken_iat.count, "import slot");
	count_item(&line, c->config.long_jumps.count, "long jump");
	count_item(&line, c->config.eh_continuations.count, "EH continuation");
	for (unsigned i = 0; (name = doctor_guard_flag(c->config.guard_flags, i)); i++)
		item(&line, "%s", name);
	if (c->cet_compatible)
		item(&line, "CET compatible");
	if (c->config.security_cookie.v)
		item(&line, "security cookie");
	end(&line);
	begin(&line, "load config");
	if (c->config.size)
		item(&line, "%s", human_things(c->config.size, "byte").text);
	if (c->volatiles.rva.v)
		item(&line, "volatile metadata for %s",
		     human_things(c->volatiles.access_count, "instruction").text);
	for (uint32_t i = 0; i < c->dynamic.group_count; i++)
		item(&line, "%s%s %s", i ? "" : "dynamic relocations: ",
		     doctor_dynamic_symbol(c->dynamic.groups[i].symbol),
		     human_count(c->dynamic.groups[i].count).text);
	end(&line);
}

static void print_debug(const struct doctor *d)
{
	const struct doctor_contents *c = &d->contents;
	struct line line;

	begin(&line, "debug");
	if (c->codeview.pdb)
		item(&line, "%s", c->codeview.pdb[0] ? c->codeview.pdb : "no PDB");
	if (c->codeview.pdb)
		item(&line, "%s age %u", c->codeview.guid, c->codeview.age);
	count_item(&line, c->symbols.count, "COFF symbol");
	if (c->dwarf)
		item(&line, "DWARF");
	if (c->pogo)
		item(&line, "POGO");
	if (c->reproducible)
		item(&line, "reproducible");
	end(&line);
	begin(&line, "signature");
	if (c->certificate)
		item(&line, "%s", human_things(c->certificate, "byte").text);
	end(&line);
}

static void print_verdict(const char *label, const struct doctor_verdict *verdict)
{
	char text[sizeof(struct diag)];

	if (verdict->status == STATUS_OK) {
		sentence(label, "yes");
		return;
	}
	snprintf(text, sizeof(text), "no, %s: %s", status_name(verdict->status),
		 verdict->diag.message);
	utf8_clean(text, false);
	sentence(label, text);
}

/* "name 1,234, 0x1a2b 567": the largest functions, as many as fit. */
static void write_largest(const struct doctor *d, const struct pin_count *row,
			  char *ret_text, size_t size)
{
	size_t used = 0;

	ret_text[0] = '\0';
	for (unsigned i = 0; i < PIN_LARGEST && i < row->functions; i++) {
		const struct function *f = &d->graph.functions.data[row->largest[i]];
		char name[64];
		int n;

		if (f->name)
			snprintf(name, sizeof(name), "%s", f->name);
		else
			snprintf(name, sizeof(name), "0x%x", f->begin.v);
		n = snprintf(ret_text + used, size - used, "%s%s %s", i ? ", " : "", name,
			     human_count(f->size).text);
		if (n < 0 || (size_t)n >= size - used) {
			/* The first one is cut, a later one left out. */
			if (i)
				ret_text[used] = '\0';
			return;
		}
		used += (size_t)n;
	}
}

/* With many reasons those under this share of the code stand in one line. */
enum { PIN_ROWS = 7, PIN_SHARE = 1000 };

static bool is_folded(const struct doctor *d, const struct pin_count *row)
{
	const char *name;

	return pin_report_row(&d->pins, PIN_ROWS, &name) &&
	       row->bytes * PIN_SHARE < d->pins.bytes;
}

static void print_folded(const struct doctor *d)
{
	const struct pin_count *row;
	const char *name;
	struct line line;

	begin(&line, "also");
	for (unsigned i = 0; (row = pin_report_row(&d->pins, i, &name)); i++)
		if (is_folded(d, row))
			item(&line, "%s %s", name, human_count(row->functions).text);
	end(&line);
}

static void print_pins(const struct doctor *d)
{
	static const struct table_column columns[] = {{"pinned", TABLE_LEFT},
						      {"functions", TABLE_RIGHT},
						      {"bytes", TABLE_RIGHT},
						      {"largest", TABLE_LEFT}};
	const struct pin_count *row;
	const char *name;
	struct table table;

	if (!pin_report_row(&d->pins, 0, &name))
		return;
	putchar('\n');
	table_init(&table, columns, 4);
	for (unsigned i = 0; (row = pin_report_row(&d->pins, i, &name)); i++) {
		char largest[40];

		if (is_folded(d, row))
			continue;
		write_largest(d, row, largest, sizeof(largest));
		table_cell(&table, "%s", name);
		table_cell(&table, "%s", human_count(row->functions).text);
		table_cell(&table, "%s", human_count(row->bytes).text);
		table_cell(&table, "%s", largest);
	}
	(void)table_print(&table, stdout, NULL);
	table_release(&table);
	print_folded(d);
}

enum { ADVICE_COUNT = 3, ADVICE_SHARE = 1000 };

/* The reasons that hold most of the code, and a thousandth of it at least; how many. */
static unsigned find_worst(const struct pin_report *pins,
			   unsigned ret_reasons[ADVICE_COUNT])
{
	unsigned count = 0;

	for (unsigned r = 0; r < PIN_REASON_COUNT; r++) {
		unsigned at = count;

		if (pins->reasons[r].bytes * ADVICE_SHARE < pins->bytes ||
		    pins->reasons[r].functions == 0)
			continue;
		if (count < ADVICE_COUNT)
			count++;
		else if (pins->reasons[ret_reasons[--at]].bytes >= pins->reasons[r].bytes)
			continue;
		while (at > 0 &&
		       pins->reasons[ret_reasons[at - 1]].bytes < pins->reasons[r].bytes) {
			ret_reasons[at] = ret_reasons[at - 1];
			at--;
		}
		ret_reasons[at] = r;
	}
	return count;
}

static void print_advice(const struct doctor *d)
{
	const char *text = doctor_refusal_advice(d->reorder.status);
	unsigned reasons[ADVICE_COUNT], count = 0;

	if (text)
		sentence("advice", text);
	for (unsigned i = 0; (text = doctor_remark(d, i)); i++)
		sentence("note", text);
	if (d->discovered)
		count = find_worst(&d->pins, reasons);
	for (unsigned i = 0; i < count; i++) {
		enum pin_reason reason = (enum pin_reason)reasons[i];
		char line[256];

		snprintf(line, sizeof(line), "%s: %s", pin_reason_name(reason),
			 doctor_pin_advice(reason));
		sentence("advice", line);
	}
}

static void print_movable(const struct doctor *d)
{
	const struct pin_report *p = &d->pins;
	struct line line;

	begin(&line, "movable");
	item(&line, "%s of %s (%s)", human_count(p->movable_functions).text,
	     human_things(p->functions, "function").text,
	     human_percent(p->movable_functions, p->functions).text);
	item(&line, "%s of %s (%s)", human_count(p->movable_bytes).text,
	     human_things(p->bytes, "byte").text,
	     human_percent(p->movable_bytes, p->bytes).text);
	end(&line);
	if (p->unknown.functions) {
		begin(&line, "unclear");
		item(&line, "%s in code sections, %s",
		     human_things(p->unknown.functions, "place").text,
		     human_things(p->unknown.bytes, "byte").text);
		end(&line);
	}
}

static void print_names(const struct doctor *d)
{
	uint32_t named = d->named.own + d->named.added;
	struct line line;

	begin(&line, "named");
	if (d->names.used_count)
		item(&line, "%s of %s (%s)", human_count(named).text,
		     human_things(d->named.functions, "function").text,
		     human_percent(named, d->named.functions).text);
	end(&line);
}

/* Where the words stand that pin as hidden references. */
static void print_hidden(const struct doctor *d)
{
	struct line line;

	begin(&line, "hidden");
	for (uint32_t i = 0; i < d->image.section_count; i++)
		if (d->graph.hidden_words[i])
			item(&line, "%s in %s",
			     human_things(d->graph.hidden_words[i], "word").text,
			     d->image.sections[i].name);
	end(&line);
}

void doctor_print(const struct doctor *d)
{
	print_kind(d);
	print_linker(&d->toolchain);
	print_compilers(&d->toolchain);
	print_tables(d);
	if (d->discovered)
		print_handlers(d);
	print_guard(d);
	print_debug(d);
	if (d->reorder.status == STATUS_OK)
		print_verdict("instrument", &d->instrument);
	else
		sentence("instrument", "no"); /* for the same reason */
	print_verdict("reorder", &d->reorder);
	if (d->discovered) {
		print_movable(d);
		print_names(d);
		print_hidden(d);
		print_pins(d);
	}
	putchar('\n');
	print_advice(d);
}
