#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "verify_trial.h"

enum { SEEDS = 8 };

static void add_u32(uint8_t *field, uint32_t n)
{
	store_u32(field, load_u32(field) + n);
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		uint8_t byte = a[i];

		a[i] = b[i];
		b[i] = byte;
	}
}

/* ---- what must verify ---- */

static void test_accepts_the_original(void **state)
{
	struct verify_report report;
	struct trial t;

	(void)state;
	open_original(&t);
	/* The words of tables that are understood name no one in secret. */
	for (uint32_t i = 0; i < t.graph.functions.len; i++)
		assert_false(t.graph.functions.data[i].pins &
			     1u << PIN_HIDDEN_REFERENCE);
	t.bytes = malloc(t.full.size);
	assert_non_null(t.bytes);
	/* The signature is the one thing that no output has. */
	memcpy(t.bytes, t.full.bytes, t.full.size);
	memset(t.bytes + BUILT_DIRECTORIES + 8 * DIRECTORY_CERTIFICATE, 0, 8);
	t.size = t.full.size - 16;
	fix_checksum(t.bytes, t.size);
	expect_ok(&t, &report);
	assert_int_equal(report.functions, 13);
	/* Counted in full_image.h: 7 + 15 + 5 + 1 + 2 + 3 + 2 + 2 + 1 + 2 + 2 + 1 + 2. */
	assert_int_equal(report.instructions, 45);
	assert_int_equal(report.relocations, t.full.reloc_count);
	free(t.bytes);
	close_trial(&t);
}

static void test_accepts_relinks(void **state)
{
	const uint32_t alignments[] = {0, 512, 4096};

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		for (unsigned i = 0; i < 3; i++)
			for (int placement = PLACEMENT_EXCHANGE;
			     placement <= PLACEMENT_APPEND; placement++) {
				struct verify_report report;
				struct trial t;

				open_original(&t);
				relink(&t, seed, (enum placement)placement, alignments[i]);
				assert_true(t.relinked.moves.len >= 8);
				expect_ok(&t, &report);
				assert_int_equal(report.functions, 13);
				assert_int_equal(report.instructions, 45);
				close_trial(&t);
			}
}

/* Other shapes of the file.  In the second no section header has room: the headers grow,
 * and all data and what leads to it by file offset with them. */
static void test_accepts_other_shapes(void **state)
{
	static const struct full_variant variants[] = {
		{.data_first = true},
		{.more_sections = 11, .header_rows = 15},
		{.section_alignment = 8192, .more_sections = 3},
		{.section_alignment = 65536, .file_alignment = 4096},
		{.file_alignment = 32, .header_rows = 4},
		{.data_first = true, .more_sections = 4, .file_alignment = 4096},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct verify_report report;
			struct trial t;

			open_variant(&t, &variants[i]);
			relink(&t, seed, PLACEMENT_EXCHANGE, 0);
			assert_true(t.relinked.moves.len >= 8);
			expect_ok(&t, &report);
			close_trial(&t);
			open_variant(&t, &variants[i]);
			relink(&t, seed, PLACEMENT_APPEND, 0);
			expect_ok(&t, &report);
			assert_int_equal(report.functions, 13);
			if (i == 1)
				assert_int_equal(load_u32(t.bytes + BUILT_OPTIONAL + 60),
						 0x600); /* SizeOfHeaders was 0x400 */
			close_trial(&t);
		}
}

/* The headers may not grow into the first section. */
static void test_headers_have_a_limit(void **state)
{
	const struct full_variant variant = {
		.more_sections = 11, .header_rows = 15, .section_alignment = 512};
	struct relink_options options = {0};
	struct relinked relinked;
	struct order order;
	struct layout layout;
	struct diag diag;
	struct trial t;

	(void)state;
	open_variant(&t, &variant);
	assert_int_equal(order_random(&t.graph, 1, &order, &diag), STATUS_OK);
	assert_int_equal(layout_place(&t.graph, &order, PLACEMENT_APPEND, &layout, &diag),
			 STATUS_OK);
	assert_int_equal(relink_write(&t.graph, &layout, &options, &relinked, &diag),
			 STATUS_NO_ROOM);
	assert_non_null(strstr(diag.message, "section table"));
	layout_release(&layout);
	order_release(&order);
	close_trial(&t);
}

/* One of the two calls of imports is in another page then: the table grows, and goes
 * into a section of its own. */
static void test_accepts_dynamic_relocations_elsewhere(void **state)
{
	struct verify_report report;
	const uint8_t *config;
	struct trial t;

	(void)state;
	open_original(&t);
	relink_one(&t, t.full.guarded, PLACEMENT_APPEND);
	config = at(&t, t.full.config);
	assert_int_equal(load_u32(config + 0xe0), 0);
	assert_int_equal(load_u16(config + 0xe4), 6); /* of ".aptext" and ".dynrel" */
	expect_ok(&t, &report);
	close_trial(&t);
}

/* ---- faults in the output ---- */

static void call_stays(struct trial *t)
{
	add_u32(at(t, t->full.call_field), 16);
}

static void lea_stays(struct trial *t)
{
	add_u32(at(t, t->full.lea_field), (uint32_t)-16);
}

static void tail_call_stays(struct trial *t)
{
	add_u32(at(t, t->full.tail_field), 1);
}

static void branch_inside_changes(struct trial *t)
{
	/* The short branch to the default case now goes to case 2. */
	*at(t, rva_add(t->full.switches, 4)) -= 6;
}

static void memory_operand_changes(struct trial *t)
{
	add_u32(at(t, rva_add(t->full.entry, 18)), 8);
}

static void instruction_changes(struct trial *t)
{
	*at(t, rva_add(t->full.filter, 1)) ^= 2; /* mov eax, 1 becomes mov eax, 3 */
}

static void table_entry_off(struct trial *t)
{
	add_u32(at(t, rva_add(t->full.table, 4)), 6);
}

static void table_entry_inside(struct trial *t)
{
	add_u32(at(t, t->full.table), 1);
}

static void rows_unsorted(struct trial *t)
{
	swap_bytes(at(t, t->full.pdata), at(t, rva_add(t->full.pdata, 12)), 12);
}

static void row_short(struct trial *t)
{
	add_u32(at(t, rva_add(t->full.pdata, 4)), (uint32_t)-1);
}

static void rows_exchange_unwind(struct trial *t)
{
	/* Two rows of different unwind information: the first is not all rows'. */
	uint8_t *first = at(t, rva_add(t->full.pdata, 8)), *other = first + 12;

	while (load_u32(first) == load_u32(other))
		other += 12;
	swap_bytes(first, other, 4);
}

static void prolog_changes(struct trial *t)
{
	uint8_t *unwind = at(t, rva_of(t->full.handler_field.v - 8));

	unwind[5] = 0x32;
}

static void handler_stale(struct trial *t)
{
	store_u32(at(t, t->full.handler_field), moved(t, t->full.filter).v);
}

static void chain_stale(struct trial *t)
{
	add_u32(at(t, t->full.chained), 1);
}

static void chain_end_stale(struct trial *t)
{
	add_u32(at(t, rva_add(t->full.chained, 4)), 1);
}

static void scope_begin_off(struct trial *t)
{
	add_u32(at(t, rva_add(t->full.scope, 4)), 1);
}

static void scope_end_off(struct trial *t)
{
	add_u32(at(t, rva_add(t->full.scope, 8)), (uint32_t)-1);
}

static void scope_filter_stale(struct trial *t)
{
	store_u32(at(t, rva_add(t->full.scope, 12)), moved(t, t->full.handler).v);
}

static void scope_target_stale(struct trial *t)
{
	add_u32(at(t, rva_add(t->full.scope, 16)), 4);
}

static void guards_unsorted(struct trial *t)
{
	swap_bytes(at(t, t->full.guard), at(t, rva_add(t->full.guard, 5)), 5);
}

static void guard_flags_exchanged(struct trial *t)
{
	swap_bytes(at(t, rva_add(t->full.guard, 4)), at(t, rva_add(t->full.guard, 9)), 1);
}

static void guard_flag_lost(struct trial *t)
{
	/* Of the callback, wherever its row is. */
	for (uint32_t i = 0; i < 5 * FULL_GUARD_COUNT; i += 5)
		if (load_u32(at(t, rva_add(t->full.guard, i))) ==
		    moved(t, t->full.callback).v)
			*at(t, rva_add(t->full.guard, i + 4)) = 0;
}

static void longjmp_off(struct trial *t)
{
	add_u32(at(t, t->full.long_jump), 1);
}

static void longjmp_stays(struct trial *t)
{
	/* At the next function of the original. */
	store_u32(at(t, t->full.long_jump), t->full.switches.v);
}

static void continuation_off(struct trial *t)
{
	add_u32(at(t, rva_add(t->full.continuations, 5)), 1);
}

static void continuations_unsorted(struct trial *t)
{
	swap_bytes(at(t, t->full.continuations), at(t, rva_add(t->full.continuations, 5)),
		   5);
}

static void hash_changed(struct trial *t)
{
	*at(t, t->full.hash) ^= 1;
}

static void hash_stays(struct trial *t)
{
	memset(at(t, t->full.hash), 0xcc, 8);
}

static void accesses_unsorted(struct trial *t)
{
	swap_bytes(at(t, t->full.accesses), at(t, rva_add(t->full.accesses, 4)), 4);
}

static void access_at_next_instruction(struct trial *t)
{
	/* The call of an import is behind a sub of 4 bytes. */
	for (uint32_t i = 0; i < 4 * FULL_ACCESS_COUNT; i += 4) {
		uint8_t *row = at(t, rva_add(t->full.accesses, i));

		if (load_u32(row) == moved(t, t->full.guarded).v + 4)
			add_u32(row, 6);
	}
}

static void range_grows(struct trial *t)
{
	add_u32(at(t, rva_add(t->full.ranges, 4)), 16);
}

static void range_moves(struct trial *t)
{
	add_u32(at(t, t->full.ranges), 16);
}

static void range_dropped(struct trial *t)
{
	/* The last row that there is. */
	uint8_t *size = at(t, rva_add(t->full.volatiles, 20));

	memset(at(t, rva_add(t->full.ranges, load_u32(size) - 8)), 0, 8);
	add_u32(size, (uint32_t)-8);
}

/* The table of dynamic value relocations, which may have moved; and its first group. */
static uint8_t *dynamic(struct trial *t)
{
	const uint8_t *config = at(t, t->full.config);
	uint32_t section = load_u16(config + 0xe4) - 1u;
	const uint8_t *row = t->bytes + BUILT_SECTIONS + 40 * section;

	return t->bytes + load_u32(row + 20) + load_u32(config + 0xe0);
}

static void fixup_at_next_byte(struct trial *t)
{
	add_u32(dynamic(t) + 8 + 12 + 8, 1);
}

static void fixup_asks_for_a_jump(struct trial *t)
{
	dynamic(t)[8 + 12 + 8 + 1] ^= 0x10;
}

static void fixup_symbol_changed(struct trial *t)
{
	uint8_t *group = dynamic(t) + 8;

	group += 12 + load_u32(group + 8); /* the second: of two bytes, as the third's */
	group[0] = 5;
}

static void fixup_dropped(struct trial *t)
{
	/* The last group: one block of one entry. */
	uint8_t *table = dynamic(t);

	store_u16(table + load_u32(table + 4) + 8 - 4, 0);
}

static void fixups_of_a_later_version(struct trial *t)
{
	dynamic(t)[0] = 3;
}

static void fixups_leave_bytes(struct trial *t)
{
	/* Behind the table, or where it was. */
	t->bytes[full_offset(t->bytes, t->full.dynamic) + FULL_DYNAMIC_BYTES - 1] = 1;
}

static void export_stale(struct trial *t)
{
	store_u32(at(t, t->full.export_words), moved(t, t->full.leaf).v);
}

static void export_renamed(struct trial *t)
{
	*at(t, t->full.export_name) = 'b';
}

static void import_renamed(struct trial *t)
{
	uint8_t *hint =
		t->bytes + full_offset(t->bytes, rva_of(load_u32(at(t, t->full.iat))));

	hint[2] = 'B';
}

static void callback_stale(struct trial *t)
{
	store_u64(at(t, t->full.callbacks),
		  BUILT_IMAGE_BASE + moved(t, t->full.exported).v);
}

static void pointer_stale(struct trial *t)
{
	add_u32(at(t, t->full.pointer), 16);
}

static uint8_t *directory(struct trial *t, uint32_t index)
{
	return t->bytes + BUILT_DIRECTORIES + 8 * index;
}

static uint8_t *first_relocs(struct trial *t)
{
	struct rva rva = {load_u32(directory(t, DIRECTORY_RELOCATION))};

	return t->bytes + full_offset(t->bytes, rva);
}

static void relocation_dropped(struct trial *t)
{
	store_u16(first_relocs(t) + 8, 0);
}

static void relocation_added(struct trial *t)
{
	uint8_t *last = first_relocs(t) + load_u32(first_relocs(t) + 4) - 2;

	store_u16(last, RELOC_DIR64 << 12 | ((t->full.plain.v + 8) & 0xfff));
}

static void relocation_type_changed(struct trial *t)
{
	uint8_t *entry = first_relocs(t) + 8;

	store_u16(entry, (uint16_t)(RELOC_HIGHLOW << 12 | (load_u16(entry) & 0xfff)));
}

static void relocation_site_moved(struct trial *t)
{
	uint8_t *entry = first_relocs(t) + 8;

	store_u16(entry, load_u16(entry) - 8);
}

static void symbol_stale(struct trial *t)
{
	uint8_t *symbols = t->bytes + load_u32(t->bytes + BUILT_FILE_HEADER + 8);

	add_u32(symbols + 2 * 18 + 8, 16);
}

static void symbol_in_other_section(struct trial *t)
{
	uint8_t *symbols = t->bytes + load_u32(t->bytes + BUILT_FILE_HEADER + 8);

	store_u16(symbols + 2 * 18 + 12, 2);
}

static void symbol_renamed(struct trial *t)
{
	t->bytes[load_u32(t->bytes + BUILT_FILE_HEADER + 8)] ^= 1;
}

static void aux_record_changed(struct trial *t)
{
	t->bytes[load_u32(t->bytes + BUILT_FILE_HEADER + 8) + 18 + 8] ^= 1;
}

static void absolute_symbol_changed(struct trial *t)
{
	t->bytes[load_u32(t->bytes + BUILT_FILE_HEADER + 8) + 5 * 18 + 8] ^= 1;
}

static void symbol_strings_changed(struct trial *t)
{
	t->bytes[load_u32(t->bytes + BUILT_FILE_HEADER + 8) + 6 * 18 + 4] ^= 1;
}

static void entry_stale(struct trial *t)
{
	uint8_t *field = t->bytes + BUILT_OPTIONAL + 16;

	store_u32(field, moved(t, t->full.leaf).v);
}

static void data_changed(struct trial *t)
{
	*at(t, t->full.plain) ^= 1;
}

static void hole_filled(struct trial *t)
{
	/* The padding behind the first function is int3 in every output that moves
	 * anything, or holds another block: then a nop takes a byte of that one. */
	t->bytes[full_offset(t->bytes, t->full.padding)] = 0x90;
}

static void overlay_changed(struct trial *t)
{
	t->bytes[t->size - 10] ^= 1;
}

static void overlay_cut(struct trial *t)
{
	t->size -= 10;
}

static void slack_changed(struct trial *t)
{
	/* Behind the last relocation, in the file only. */
	t->bytes[full_offset(t->bytes, t->full.reloc) + 511] = 1;
}

static uint8_t *section_row(struct trial *t, uint32_t index)
{
	return t->bytes + BUILT_SECTIONS + 40 * index;
}

static void section_writable(struct trial *t)
{
	section_row(t, 0)[39] |= 0x80;
}

static void added_section_writable(struct trial *t)
{
	section_row(t, load_u16(t->bytes + BUILT_FILE_HEADER + 2) - 1u)[39] |= 0x80;
}

static void added_section_dirty(struct trial *t)
{
	uint8_t *row = section_row(t, load_u16(t->bytes + BUILT_FILE_HEADER + 2) - 1u);

	/* The last byte that is in memory: a hole, or one of a block. */
	t->bytes[load_u32(row + 20) + load_u32(row + 8) - 1] ^= 1;
}

static void section_renamed(struct trial *t)
{
	section_row(t, 1)[1] ^= 1;
}

static void characteristics_changed(struct trial *t)
{
	t->bytes[BUILT_OPTIONAL + 70] ^= 0x40; /* IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE */
}

static void image_base_changed(struct trial *t)
{
	t->bytes[BUILT_OPTIONAL + 26] ^= 1;
}

static void time_stamp_changed(struct trial *t)
{
	t->bytes[BUILT_FILE_HEADER + 4] ^= 1;
}

static void image_size_off(struct trial *t)
{
	add_u32(t->bytes + BUILT_OPTIONAL + 56, 0x1000);
}

static void code_size_off(struct trial *t)
{
	add_u32(t->bytes + BUILT_OPTIONAL + 4, 512);
}

static void directory_dropped(struct trial *t)
{
	memset(directory(t, DIRECTORY_LOAD_CONFIG), 0, 8);
}

static void certificate_kept(struct trial *t)
{
	store_u32(directory(t, DIRECTORY_CERTIFICATE), (uint32_t)t->size - 16);
	store_u32(directory(t, DIRECTORY_CERTIFICATE) + 4, 8);
}

static void debug_data_elsewhere(struct trial *t)
{
	add_u32(at(t, rva_add(t->full.debug, 24)), 4);
}

static void no_longer_made_for_cet(struct trial *t)
{
	*at(t, t->full.extra_characteristics) = 0;
}

static void path_of_pdb_changed(struct trial *t)
{
	*at(t, rva_add(t->full.guid, 22)) ^= 1;
}

struct fault {
	const char *name;
	void (*plant)(struct trial *t);
	const char *message; /* part of what the verifier says */
	bool only_append;    /* there is something to damage only with an added section */
};

static const struct fault faults[] = {
	{"a call leads elsewhere", call_stays, "target of an instruction", false},
	{"a lea leads elsewhere", lea_stays, "target of an instruction", false},
	{"a tail call leads elsewhere", tail_call_stays, "", false},
	{"a branch inside a function", branch_inside_changes, "", false},
	{"a memory operand", memory_operand_changes, "target of an instruction", false},
	{"an instruction", instruction_changes, "a byte that nothing explains", false},
	{"a jump table entry, off by one case", table_entry_off, "target of a reference",
	 false},
	{"a jump table entry, inside a case", table_entry_inside, "", false},
	{"the function table, unsorted", rows_unsorted, "out of order", false},
	{"a row's end", row_short, "end of a row", false},
	{"two rows' unwind information", rows_exchange_unwind,
	 "unwind information of a row", false},
	{"a prolog", prolog_changes, "a byte that nothing explains", false},
	{"an exception handler", handler_stale, "exception handler", false},
	{"a chained row's begin", chain_stale, "begin of a chained row", false},
	{"a chained row's end", chain_end_stale, "end of a chained row", false},
	{"a scope's begin", scope_begin_off, "target of a reference", false},
	{"a scope's end", scope_end_off, "target of a reference", false},
	{"a scope's filter", scope_filter_stale, "target of a reference", false},
	{"a scope's target", scope_target_stale, "", false},
	{"the guard table, unsorted", guards_unsorted, "guard table", false},
	{"flags of the guard table", guard_flags_exchanged, "flags of entry", false},
	{"a flag of the guard table is lost", guard_flag_lost, "flags of entry", false},
	{"the target of longjmp, off by one", longjmp_off, "guard table", false},
	{"the target of longjmp, at its old place", longjmp_stays, "guard table", false},
	{"a continuation target, off by one", continuation_off, "guard table", false},
	{"the continuation targets, unsorted", continuations_unsorted, "guard table",
	 false},
	{"a hash before a function", hash_changed, "a byte that nothing explains", false},
	{"a hash that has not moved", hash_stays, "a byte that nothing explains", false},
	{"the volatile accesses, unsorted", accesses_unsorted, "accesses do not ascend",
	 false},
	{"a volatile access, one instruction on", access_at_next_instruction,
	 "volatile access", false},
	{"a volatile range that covers more", range_grows, "volatile metadata", false},
	{"a volatile range elsewhere", range_moves, "volatile metadata", false},
	{"a volatile range is missing", range_dropped, "number of ranges", false},
	{"a dynamic relocation's place", fixup_at_next_byte,
	 "place of a dynamic value relocation", false},
	{"what a dynamic relocation asks for", fixup_asks_for_a_jump, "asks for", false},
	{"the symbol of dynamic relocations", fixup_symbol_changed, "symbol of dynamic",
	 false},
	{"a dynamic relocation is missing", fixup_dropped, "a place that is none", false},
	{"dynamic relocations of a later version", fixups_of_a_later_version, "version 3",
	 false},
	{"bytes behind the dynamic relocations", fixups_leave_bytes, "", false},
	{"an export's target", export_stale, "target of export 1", false},
	{"an export's name", export_renamed, "name of export 1", false},
	{"an import's name", import_renamed, "import 0", false},
	{"a TLS callback", callback_stale, "relocated word", false},
	{"a pointer in data", pointer_stale, "relocated word", false},
	{"a relocation is missing", relocation_dropped, "base relocation is missing",
	 false},
	{"a relocation more", relocation_added, "that the original has not", false},
	{"a relocation's type", relocation_type_changed, "type of a base relocation",
	 false},
	{"a relocation's site", relocation_site_moved, "that the original has not", false},
	{"a symbol's address", symbol_stale, "address of symbol 2", false},
	{"a symbol's section", symbol_in_other_section, "address of symbol 2", false},
	{"a symbol's name", symbol_renamed, "name or type of symbol 0", false},
	{"an auxiliary record", aux_record_changed, "auxiliary record of symbol 0", false},
	{"an absolute symbol", absolute_symbol_changed, "symbol 5 has changed", false},
	{"the symbols' strings", symbol_strings_changed, "symbol names", false},
	{"the entry point", entry_stale, "AddressOfEntryPoint", false},
	{"a byte of data", data_changed, "a byte that nothing explains", false},
	{"a byte of padding", hole_filled, "", false},
	{"the overlay", overlay_changed, "overlay", false},
	{"the overlay, cut", overlay_cut, "overlay", false},
	{"a byte behind a section", slack_changed, "a byte behind the section", false},
	{"code that is writable", section_writable, "header byte", false},
	{"new code that is writable", added_section_writable, "writable and executable",
	 true},
	{"a byte of the new section", added_section_dirty, "", true},
	{"a section's name", section_renamed, "header byte", false},
	{"DLL characteristics", characteristics_changed, "header byte", false},
	{"the image base", image_base_changed, "header byte", false},
	{"the time stamp", time_stamp_changed, "header byte", false},
	{"SizeOfImage", image_size_off, "SizeOfImage", false},
	{"SizeOfCode", code_size_off, "SizeOfCode", false},
	{"a data directory", directory_dropped, "header byte", false},
	{"a signature", certificate_kept, "certificate", false},
	{"a debug entry's file offset", debug_data_elsewhere,
	 "file offset of a debug entry", false},
	{"the flag for CET", no_longer_made_for_cet, "a byte that nothing explains", false},
	{"the PDB's path", path_of_pdb_changed, "a byte that nothing explains", false},
};

static void plant(const struct fault *fault, uint64_t seed, enum placement placement)
{
	struct verify_report report;
	char text[2048];
	struct diag diag;
	struct trial t;
	enum status status;

	open_original(&t);
	relink(&t, seed, placement, 0);
	fault->plant(&t);
	fix_checksum(t.bytes, t.size);
	status = verify(&t, &report, &diag);
	diag_format(&diag, text, sizeof(text));
	if (status != STATUS_VERIFY)
		fail_msg("%s, seed %u: %s: %s", fault->name, (unsigned)seed,
			 status_name(status), text);
	if (!strstr(diag.message, fault->message))
		fail_msg("%s, seed %u: %s", fault->name, (unsigned)seed, text);
	assert_int_equal(diag.status, STATUS_VERIFY);
	assert_string_equal(diag.file, "new");
	close_trial(&t);
}

static void test_finds_planted_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			plant(&faults[i], seed, PLACEMENT_APPEND);
			if (!faults[i].only_append)
				plant(&faults[i], seed, PLACEMENT_EXCHANGE);
		}
}

static void test_finds_a_wrong_checksum(void **state)
{
	struct verify_report report;
	struct diag diag;
	struct trial t;

	(void)state;
	open_original(&t);
	relink(&t, 1, PLACEMENT_EXCHANGE, 0);
	add_u32(t.bytes + BUILT_OPTIONAL + 64, 1);
	assert_int_equal(verify(&t, &report, &diag), STATUS_VERIFY);
	assert_non_null(strstr(diag.message, "CheckSum"));
	close_trial(&t);
}

/* The message names the function, the address, and both values. */
static void test_says_what_is_wrong(void **state)
{
	struct verify_report report;
	char expected[32];
	struct diag diag;
	struct trial t;

	(void)state;
	open_original(&t);
	relink(&t, 3, PLACEMENT_APPEND, 0);
	call_stays(&t);
	fix_checksum(t.bytes, t.size);
	assert_int_equal(verify(&t, &report, &diag), STATUS_VERIFY);
	assert_true(diag.has_rva);
	assert_int_equal(diag.rva.v, moved(&t, t.full.call_field).v - 1);
	snprintf(expected, sizeof(expected), "0x%x", moved(&t, t.full.switches).v);
	assert_string_equal(diag.expected, expected);
	snprintf(expected, sizeof(expected), "0x%x", moved(&t, t.full.switches).v + 16);
	assert_string_equal(diag.found, expected);
	snprintf(expected, sizeof(expected), "0x%x", t.full.entry.v);
	assert_string_equal(diag.function, expected);
	close_trial(&t);
}

/* Whether the byte at `offset` may be anything: of the new GUID. */
static bool is_free(struct trial *t, size_t offset)
{
	size_t guid = full_offset(t->bytes, t->full.guid);

	return offset >= guid && offset < guid + 16;
}

/* No byte of the file can change unseen. */
static void change_bytes(struct trial *t, uint8_t flip)
{
	for (size_t i = 0; i < t->size; i++) {
		struct verify_report report;
		struct diag diag;
		enum status status;

		t->bytes[i] ^= flip;
		if (i < BUILT_OPTIONAL + 64 || i >= BUILT_OPTIONAL + 68)
			fix_checksum(t->bytes, t->size);
		status = verify(t, &report, &diag);
		if ((status == STATUS_OK) != is_free(t, i))
			fail_msg("byte 0x%zx of %zu, changed by 0x%x: %s", i, t->size, flip,
				 status_name(status));
		t->bytes[i] ^= flip;
		fix_checksum(t->bytes, t->size);
	}
	close_trial(t);
}

static void change_every_byte(uint64_t seed, enum placement placement, uint8_t flip)
{
	struct trial t;

	open_original(&t);
	relink(&t, seed, placement, 0);
	change_bytes(&t, flip);
}

static void test_sees_every_byte(void **state)
{
	struct trial t;

	(void)state;
	open_original(&t);
	relink_one(&t, t.full.guarded, PLACEMENT_APPEND);
	change_bytes(&t, 0x80);
	change_every_byte(1, PLACEMENT_EXCHANGE, 0x01);
	change_every_byte(2, PLACEMENT_APPEND, 0x80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepts_the_original),
		cmocka_unit_test(test_accepts_relinks),
		cmocka_unit_test(test_accepts_other_shapes),
		cmocka_unit_test(test_headers_have_a_limit),
		cmocka_unit_test(test_accepts_dynamic_relocations_elsewhere),
		cmocka_unit_test(test_finds_planted_faults),
		cmocka_unit_test(test_finds_a_wrong_checksum),
		cmocka_unit_test(test_says_what_is_wrong),
		cmocka_unit_test(test_sees_every_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
