/* Images that are damaged in one known way.
 *
 * Each must be refused with the status that says so, or be accepted; and whatever is
 * accepted must keep the promises of image_target.c: it is instrumented and relinked, and
 * the results verify.  Most were found by changing images at random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "full_image.h"
#include "fuzz_target.h"
#include "graph/graph.h"
#include "layout/order.h"
#include "layout/placement.h"
#include "layout/relink.h"

struct damage {
	const char *name;
	void (*make)(struct full_image *f);
	enum status opened;   /* what opening and discovering it answers */
	enum status relinked; /* what writing it anew answers, when it was opened */
};

static uint8_t *at(struct full_image *f, struct rva rva)
{
	return f->bytes + full_offset(f->bytes, rva);
}

static uint8_t *directory(struct full_image *f, uint32_t index)
{
	return f->bytes + BUILT_DIRECTORIES + 8 * index;
}

static uint8_t *section_row(struct full_image *f, uint32_t index)
{
	return f->bytes + BUILT_SECTIONS + 40 * index;
}

/* Makes the last relocation one of the word at `site`, in its own block. */
static void move_relocation(struct full_image *f, struct rva site)
{
	uint8_t *block = at(f, f->reloc);
	uint32_t size = load_u32(block + 4);

	/* The last entry of the first block goes; another block holds the new one. */
	assert_true(f->reloc_size == size);
	store_u32(block + 4, size - 12);
	store_u32(block + size - 12, site.v & ~0xfffu);
	store_u32(block + size - 8, 12);
	store_u16(block + size - 4, (uint16_t)(RELOC_DIR64 << 12 | (site.v & 0xfff)));
	store_u16(block + size - 2, 0);
}

static void nothing(struct full_image *f)
{
	(void)f;
}

static void directory_of_no_place(struct full_image *f)
{
	store_u32(directory(f, DIRECTORY_RESOURCE) + 4, 0x1234);
}

static void certificate_of_no_size(struct full_image *f)
{
	store_u32(directory(f, DIRECTORY_CERTIFICATE) + 4, 0);
}

static void certificate_of_no_place(struct full_image *f)
{
	store_u32(directory(f, DIRECTORY_CERTIFICATE), 0);
}

static void certificate_in_a_section(struct full_image *f)
{
	uint8_t *row = directory(f, DIRECTORY_CERTIFICATE);
	uint32_t begin = full_offset(f->bytes, f->entry);

	store_u32(row + 4, load_u32(row + 4) + load_u32(row) - begin);
	store_u32(row, begin);
}

/* The first relocations are the pointer's, the load configuration's, then those of
 * the callback and of the TLS directory. */
static void callback_without_relocation(struct full_image *f)
{
	uint8_t *block = at(f, f->reloc);

	for (uint32_t i = 8; i < load_u32(block + 4); i += 2)
		if ((load_u16(block + i) & 0xfff) == (f->callbacks.v & 0xfff))
			store_u16(block + i, 0);
}

static void callback_array_in_code(struct full_image *f)
{
	uint8_t *word = at(f, f->callbacks) + 8 + 8 * 4 - 8;

	store_u64(word, BUILT_IMAGE_BASE + f->entry.v + 16);
}

static void template_begins_at_function(struct full_image *f)
{
	store_u64(at(f, f->callbacks) + 16, BUILT_IMAGE_BASE + f->leaf.v);
	store_u64(at(f, f->callbacks) + 24, BUILT_IMAGE_BASE + f->leaf.v + 1);
}

static struct rva name_pointers(struct full_image *f)
{
	return rva_add(f->export_words, 12);
}

static void name_in_function_table(struct full_image *f)
{
	store_u32(at(f, name_pointers(f)), f->pdata.v);
}

static void name_in_guard_table(struct full_image *f)
{
	store_u32(at(f, name_pointers(f)), f->guard.v + 4);
}

static void name_in_relocations(struct full_image *f)
{
	store_u32(at(f, name_pointers(f)), f->reloc.v);
}

static void name_in_headers(struct full_image *f)
{
	store_u32(at(f, name_pointers(f)), 2);
}

static void name_in_code(struct full_image *f)
{
	store_u32(at(f, name_pointers(f)), f->call_field.v);
}

static void name_in_padding(struct full_image *f)
{
	at(f, f->padding)[3] = 0;
	store_u32(at(f, name_pointers(f)), f->padding.v);
}

static void name_in_relocated_word(struct full_image *f)
{
	store_u32(at(f, name_pointers(f)), f->pointer.v);
}

/* All functions of the section lie in it, as would code behind the image. */
static void export_directory_without_end(struct full_image *f)
{
	store_u32(directory(f, DIRECTORY_EXPORT) + 4, 0x7fffffff);
}

static struct rva export_directory(struct full_image *f)
{
	return rva_of(load_u32(directory(f, DIRECTORY_EXPORT)));
}

static void export_addresses_in_code(struct full_image *f)
{
	store_u32(at(f, export_directory(f)) + 28, f->entry.v + 1);
}

/* Two bytes off, so that they are halves of the scope table's fields. */
static void export_addresses_in_scope_table(struct full_image *f)
{
	store_u32(at(f, export_directory(f)) + 28, f->scope.v + 2);
}

static void guard_entry_behind_the_image(struct full_image *f)
{
	store_u32(at(f, f->guard) + 10, 0x7000000);
}

/* What stands behind an instruction that ends control is reached by nothing; the
 * section ends with it. */
static void hole_before_the_end(struct full_image *f)
{
	memcpy(at(f, f->last), "\x0f\x0b\x90\x90", 4); /* ud2; nop; nop; call */
}

static void guard_table_descends(struct full_image *f)
{
	store_u32(at(f, f->guard), f->exported.v);
	store_u32(at(f, f->guard) + 10, f->leaf.v);
}

static void guard_table_in_function_table(struct full_image *f)
{
	store_u64(at(f, f->config) + 0x80, BUILT_IMAGE_BASE + f->pdata.v);
}

static void relocation_in_padding(struct full_image *f)
{
	move_relocation(f, f->padding);
}

static void relocation_of_an_operand(struct full_image *f)
{
	move_relocation(f, rva_add(f->call_field, 1));
}

/* From the last bytes of one function over padding into the next. */
static void relocation_across_functions(struct full_image *f)
{
	move_relocation(f, rva_add(f->callback, 16 - 4));
}

static void relocation_in_function_table(struct full_image *f)
{
	move_relocation(f, rva_add(f->pdata, 12));
}

/* The entry of a jump table changes when its function moves. */
static void relocation_of_table_entry(struct full_image *f)
{
	uint8_t *block = at(f, f->reloc);

	move_relocation(f, f->table);
	block += load_u32(block + 4);
	store_u16(block + 8, (uint16_t)(RELOC_HIGHLOW << 12 | (f->table.v & 0xfff)));
}

/* Two returns that nothing leads to, and no code behind them. */
static void island_before_no_code(struct full_image *f)
{
	memcpy(at(f, f->island), "\xc3\xc3\xcc\xcc\xcc\xcc", 6);
	memset(at(f, rva_add(f->island, 8)), 0x06, 8);
}

static void relocations_of_nothing(struct full_image *f)
{
	uint8_t *block = at(f, f->reloc);

	for (uint32_t i = 8; i < load_u32(block + 4); i += 2)
		store_u16(block + i, 0);
}

static void symbols_in_a_section(struct full_image *f)
{
	store_u32(f->bytes + BUILT_FILE_HEADER + 8, full_offset(f->bytes, f->entry));
}

static void symbols_none_in_headers(struct full_image *f)
{
	store_u32(f->bytes + BUILT_FILE_HEADER + 8, 16);
	store_u32(f->bytes + BUILT_FILE_HEADER + 12, 0);
}

/* The raw data of the first section shrinks, what stood behind is in no section. */
static void bytes_between_sections(struct full_image *f)
{
	uint8_t *row = section_row(f, 0);
	uint32_t raw = load_u32(row + 20), size = load_u32(row + 16);

	f->bytes[raw + size - 1] = 1;
	store_u32(row + 16, load_u32(row + 8));
}

static void bytes_behind_signature(struct full_image *f)
{
	uint8_t *bytes = realloc(f->bytes, f->size + 8);

	assert_non_null(bytes);
	f->bytes = bytes;
	memset(f->bytes + f->size, 'b', 8);
	f->size += 8;
}

static void debug_pointers_differ(struct full_image *f)
{
	uint8_t *offset = at(f, f->debug) + 24;

	store_u32(offset, load_u32(offset) - 8);
}

static void debug_data_in_code(struct full_image *f)
{
	uint8_t *entry = at(f, f->debug);

	store_u32(entry + 20, 0);
	store_u32(entry + 24, full_offset(f->bytes, f->entry));
}

static void debug_data_of_no_bytes(struct full_image *f)
{
	store_u32(at(f, f->debug) + 16, 0);
}

static void empty_row(struct full_image *f, struct rva rva)
{
	uint8_t *row = at(f, rva_add(f->pdata, 12 * 4)); /* of `part` */

	store_u32(row, rva.v);
	store_u32(row + 4, rva.v);
}

static void empty_row_before_function(struct full_image *f)
{
	empty_row(f, f->leaf);
}

static void empty_row_in_padding(struct full_image *f)
{
	empty_row(f, rva_add(f->leaf, 7));
}

/* What is entered in the padding before a function runs on into the function. */
static void pointer_to_padding(struct full_image *f)
{
	store_u64(at(f, f->pointer), BUILT_IMAGE_BASE + rva_add(f->entry, 40).v);
}

static void table_entry_to_no_code(struct full_image *f)
{
	uint8_t *entry = at(f, f->table);

	/* Behind the last function's call stand bytes that are no instruction. */
	memset(at(f, rva_add(f->last, 16)), 0x06, 8);
	store_u32(entry, f->last.v + 16 - f->table.v);
}

static void short_branch_into_instruction(struct full_image *f)
{
	/* jmp from the leaf into the call's displacement, 1 byte in the island. */
	uint8_t *code = at(f, f->exported);

	code[0] = 0xeb;
	code[1] = (uint8_t)(f->island.v + 2 - f->exported.v - 2);
	code[2] = 0xc3;
}

/* Padding instructions may have an operand as long as what stands behind. */
static void call_behind_the_image(struct full_image *f)
{
	const uint8_t *headers = f->bytes + BUILT_OPTIONAL;

	store_u32(at(f, f->call_field), load_u32(headers + 56) + 3 - f->call_field.v - 4);
}

static void call_into_instruction(struct full_image *f)
{
	store_u32(at(f, f->call_field), f->switches.v + 8 - f->call_field.v - 4);
}

static void import_name_in_headers(struct full_image *f)
{
	uint8_t *row = at(f, rva_of(load_u32(directory(f, DIRECTORY_IMPORT))));

	store_u64(at(f, rva_of(load_u32(row))), BUILT_SECTIONS - 2);
}

static void entry_in_padding(struct full_image *f)
{
	store_u32(f->bytes + BUILT_OPTIONAL + 16, f->padding.v + 1);
}

static void code_of_nearly_4_gib(struct full_image *f)
{
	store_u32(f->bytes + BUILT_OPTIONAL + 4, 0xfffffff8);
}

static void volatile_access_behind_sections(struct full_image *f)
{
	store_u32(at(f, rva_add(f->accesses, 4 * (FULL_ACCESS_COUNT - 1))), 0x4775);
}

static void scope_table_without_end(struct full_image *f)
{
	store_u32(at(f, f->scope), 0x0fffffff);
}

static const struct damage damages[] = {
	{"nothing", nothing, STATUS_OK, STATUS_OK},
	{"a directory of no place", directory_of_no_place, STATUS_OK, STATUS_OK},
	{"a signature of no size", certificate_of_no_size, STATUS_OK, STATUS_OK},
	{"a signature of no place", certificate_of_no_place, STATUS_OK, STATUS_OK},
	{"a signature in a section", certificate_in_a_section, STATUS_OK, STATUS_MALFORMED},
	{"a callback without relocation", callback_without_relocation, STATUS_OK,
	 STATUS_OK},
	{"a callback array in code", callback_array_in_code, STATUS_OK, STATUS_OK},
	{"a TLS template that begins at a function", template_begins_at_function, STATUS_OK,
	 STATUS_OK},
	{"a name in the function table", name_in_function_table, STATUS_MALFORMED,
	 STATUS_OK},
	{"a name in a guard table", name_in_guard_table, STATUS_MALFORMED, STATUS_OK},
	{"a name in the relocations", name_in_relocations, STATUS_MALFORMED, STATUS_OK},
	{"a name in the headers", name_in_headers, STATUS_MALFORMED, STATUS_OK},
	{"a name in code", name_in_code, STATUS_OK, STATUS_OK},
	{"a name in padding", name_in_padding, STATUS_OK, STATUS_OK},
	{"a name in a relocated word", name_in_relocated_word, STATUS_OK, STATUS_OK},
	{"an export directory without end", export_directory_without_end, STATUS_MALFORMED,
	 STATUS_OK},
	{"exported addresses in code", export_addresses_in_code, STATUS_OK, STATUS_OK},
	{"exported addresses in a scope table", export_addresses_in_scope_table, STATUS_OK,
	 STATUS_OK},
	{"a guard entry behind the image", guard_entry_behind_the_image, STATUS_OK,
	 STATUS_OK},
	{"a hole before the section's end", hole_before_the_end, STATUS_OK, STATUS_OK},
	{"a guard table that descends", guard_table_descends, STATUS_MALFORMED, STATUS_OK},
	{"a guard table in the function table", guard_table_in_function_table,
	 STATUS_MALFORMED, STATUS_OK},
	{"a relocation in padding", relocation_in_padding, STATUS_OK, STATUS_OK},
	{"a relocation of an operand", relocation_of_an_operand, STATUS_OK, STATUS_OK},
	{"a relocation across functions", relocation_across_functions, STATUS_OK,
	 STATUS_OK},
	{"a relocation in the function table", relocation_in_function_table,
	 STATUS_MALFORMED, STATUS_OK},
	{"a relocation of a jump table's entry", relocation_of_table_entry, STATUS_OK,
	 STATUS_OK},
	{"an island before bytes that are no code", island_before_no_code, STATUS_OK,
	 STATUS_OK},
	{"relocations of nothing", relocations_of_nothing, STATUS_OK, STATUS_OK},
	{"symbols in a section", symbols_in_a_section, STATUS_MALFORMED, STATUS_OK},
	{"no symbols, in the headers", symbols_none_in_headers, STATUS_OK, STATUS_OK},
	{"bytes between sections", bytes_between_sections, STATUS_OK, STATUS_UNSUPPORTED},
	{"bytes behind the signature", bytes_behind_signature, STATUS_OK,
	 STATUS_UNSUPPORTED},
	{"debug data at two places", debug_pointers_differ, STATUS_OK, STATUS_OK},
	{"debug data of no bytes", debug_data_of_no_bytes, STATUS_OK, STATUS_OK},
	{"debug data in code", debug_data_in_code, STATUS_OK, STATUS_OK},
	{"an empty row before a function", empty_row_before_function, STATUS_OK, STATUS_OK},
	{"an empty row in padding", empty_row_in_padding, STATUS_OK, STATUS_OK},
	{"a pointer to padding", pointer_to_padding, STATUS_OK, STATUS_OK},
	{"a jump table that leads to no code", table_entry_to_no_code, STATUS_OK,
	 STATUS_OK},
	{"a short branch into an instruction", short_branch_into_instruction, STATUS_OK,
	 STATUS_OK},
	{"a call behind the image", call_behind_the_image, STATUS_OK, STATUS_OK},
	{"a call into an instruction", call_into_instruction, STATUS_OK, STATUS_OK},
	{"an import's name in the headers", import_name_in_headers, STATUS_MALFORMED,
	 STATUS_OK},
	{"an entry point in padding", entry_in_padding, STATUS_OK, STATUS_OK},
	{"code of nearly 4 GiB", code_of_nearly_4_gib, STATUS_OK, STATUS_OK},
	{"a volatile access behind all sections", volatile_access_behind_sections,
	 STATUS_MALFORMED, STATUS_OK},
	{"a scope table without end", scope_table_without_end, STATUS_OK, STATUS_OK},
};

static enum status write_anew(const struct graph *graph, struct diag *diag)
{
	const struct relink_options options = {0};
	struct relinked relinked;
	struct layout layout;
	struct order order;
	enum status status = order_original(graph, &order, diag);

	assert_int_equal(status, STATUS_OK);
	status = layout_place(graph, &order, PLACEMENT_EXCHANGE, &layout, diag);
	assert_int_equal(status, STATUS_OK);
	status = relink_write(graph, &layout, &options, &relinked, diag);
	if (status == STATUS_OK)
		relinked_release(&relinked);
	layout_release(&layout);
	order_release(&order);
	return status;
}

static void expect(const struct damage *damage, enum status expected, enum status found)
{
	if (found != expected)
		fail_msg("%s: %s, expected %s", damage->name, status_name(found),
			 status_name(expected));
}

static void check(const struct damage *damage)
{
	struct full_image f;
	struct image image;
	struct graph graph;
	struct diag diag;
	enum status status;

	full_image_make(&f);
	damage->make(&f);
	diag_init(&diag);
	status = image_open_bytes(&image, f.bytes, f.size, "damaged", &diag);
	if (status == STATUS_OK) {
		status = graph_discover(&graph, &image, NULL, &diag);
		expect(damage, damage->opened, status);
		if (status == STATUS_OK) {
			expect(damage, damage->relinked, write_anew(&graph, &diag));
			graph_release(&graph);
		}
		image_release(&image);
	} else {
		expect(damage, damage->opened, status);
	}
	LLVMFuzzerTestOneInput(f.bytes, f.size);
	full_image_release(&f);
}

static void test_damaged_images(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		fprintf(stderr, "%s\n", damages[i].name);
		check(&damages[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damaged_images),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
