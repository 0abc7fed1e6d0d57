#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image_builder.h"
#include "layout/rewrite.h"

enum { TEXT = 0x1000, DATA = 0x2000, BLOCK_BYTES = 16, RELOC_BYTES = 12 };

/* Two blocks of 16 bytes that change places, beside data, as a graph that nobody has
 * discovered. */
struct swapped {
	struct built_image built;
	struct graph graph;
	struct image_file file;
	struct rva begins[2];
	struct layout layout;
	struct rewrite rewrite;
	struct reloc reloc;
	struct coff_symbol symbol;
};

static void add_block(struct graph *graph, uint32_t begin)
{
	struct block block = {{begin}, BLOCK_BYTES, graph->functions.len, 1, 0};
	struct function function = {
		.begin = {begin}, .size = BLOCK_BYTES, .block = graph->blocks.len};

	assert_true(vec_push(&graph->blocks, block));
	assert_true(vec_push(&graph->functions, function));
}

static void open_swapped(struct swapped *s)
{
	struct image_builder b;
	struct rva table;

	memset(s, 0, sizeof(*s));
	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	image_builder_fill(&b, 'a', BLOCK_BYTES);
	image_builder_fill(&b, 'b', BLOCK_BYTES);
	image_builder_section(&b, ".data", BUILT_DATA);
	image_builder_fill(&b, 0, 0x40);
	table = image_builder_section(&b, ".reloc", BUILT_CONST);
	image_builder_u32(&b, DATA);
	image_builder_u32(&b, RELOC_BYTES);
	image_builder_u16(&b, RELOC_DIR64 << 12 | 8);
	image_builder_u16(&b, 0);
	image_builder_directory(&b, DIRECTORY_RELOCATION, table, RELOC_BYTES);
	image_builder_symbol(&b, "second", BLOCK_BYTES, 1, 0x20, 2, 0);
	built_image_open(&s->built, &b);
	assert_int_equal(s->built.status, STATUS_OK);
	image_builder_release(&b);
	s->graph.image = &s->built.image;
	add_block(&s->graph, TEXT);
	add_block(&s->graph, TEXT + BLOCK_BYTES);
	s->begins[0] = rva_of(TEXT + BLOCK_BYTES);
	s->begins[1] = rva_of(TEXT);
	s->layout = (struct layout){.begins = s->begins, .block_count = 2};
	s->reloc = (struct reloc){{DATA + 8}, RELOC_DIR64};
	s->graph.tables.relocs = (struct relocations){&s->reloc, 1};
	s->symbol = (struct coff_symbol){
		.rva = {TEXT + BLOCK_BYTES},
		.value = {s->built.image.headers.symbol_table.v + 8},
		.section = 1,
	};
	s->graph.tables.symbols = (struct coff_symbols){&s->symbol, 1};
	assert_int_equal(image_file_init(&s->file, &s->built.image, NULL), STATUS_OK);
	s->rewrite = (struct rewrite){
		.graph = &s->graph, .layout = &s->layout, .file = &s->file};
}

static void release(struct swapped *s)
{
	image_file_release(&s->file);
	vec_release(&s->graph.blocks);
	vec_release(&s->graph.functions);
	vec_release(&s->graph.refs);
	built_image_close(&s->built);
}

static void add_ref(struct swapped *s, struct ref ref)
{
	assert_true(vec_push(&s->graph.refs, ref));
}

static uint64_t field(struct swapped *s, uint32_t rva, uint32_t size)
{
	const uint8_t *p = image_file_at(&s->file, rva_of(rva), size);

	assert_non_null(p);
	return size == 8 ? load_u64(p) : load_u32(p);
}

/* What the field says afterwards, written down from the definition of each kind. */
static void every_kind_says_where_its_target_went(void **state)
{
	const uint32_t a = TEXT, b = TEXT + BLOCK_BYTES; /* before */
	struct swapped s;

	(void)state;
	open_swapped(&s);
	add_ref(&s, (struct ref){.site = {a + 1}, .target = {b}, .kind = REF_BRANCH,
				 .size = 4, .enters = true});
	add_ref(&s, (struct ref){.site = {a + 8}, .target = {DATA}, .kind = REF_MEMORY,
				 .size = 4, .tail = 1});
	add_ref(&s, (struct ref){.site = {b + 3}, .target = {a + 4}, .kind = REF_ADDRESS,
				 .size = 4});
	add_ref(&s, (struct ref){.site = {DATA}, .target = {b + 4}, .kind = REF_RVA,
				 .size = 4});
	add_ref(&s, (struct ref){.site = {DATA + 4}, .target = {b}, .kind = REF_RVA_END,
				 .size = 4});
	add_ref(&s, (struct ref){.site = {DATA + 8}, .target = {a}, .kind = REF_VA64,
				 .size = 8});
	add_ref(&s, (struct ref){.site = {DATA + 16}, .target = {b}, .kind = REF_VA32,
				 .size = 4});
	add_ref(&s, (struct ref){.site = {DATA + 20}, .target = {a + 6},
				 .base = {DATA + 20}, .kind = REF_TABLE, .size = 4});
	add_ref(&s, (struct ref){.site = {DATA + 24}, .target = {a + 6}, .base = {b},
				 .kind = REF_TABLE, .size = 4});
	add_ref(&s, (struct ref){.site = {DATA + 28}, .target = {b + 2}, .kind = REF_SELF,
				 .size = 4});
	add_ref(&s, (struct ref){.site = {b + 7}, .target = {a + 6},
				 .kind = REF_DISPLACEMENT, .size = 4});
	rewrite_blocks(&s.rewrite);
	assert_int_equal(rewrite_refs(&s.rewrite, NULL), STATUS_OK);
	/* Block a stands where b stood, b where a stood. */
	assert_int_equal((int32_t)field(&s, b + 1, 4), (int32_t)(a - (b + 5)));
	assert_int_equal(field(&s, b + 8, 4), DATA - (b + 8 + 4 + 1));
	assert_int_equal((int32_t)field(&s, a + 3, 4), (int32_t)(b + 4 - (a + 7)));
	assert_int_equal(field(&s, DATA, 4), a + 4);
	assert_int_equal(field(&s, DATA + 4, 4), b + BLOCK_BYTES);
	assert_int_equal(field(&s, DATA + 8, 8), BUILT_IMAGE_BASE + b);
	assert_int_equal(field(&s, DATA + 16, 4), (uint32_t)(BUILT_IMAGE_BASE + a));
	assert_int_equal((int32_t)field(&s, DATA + 20, 4), (int32_t)(b + 6 - (DATA + 20)));
	assert_int_equal(field(&s, DATA + 24, 4), b + 6 - a);
	assert_int_equal((int32_t)field(&s, DATA + 28, 4), (int32_t)(a + 2 - (DATA + 28)));
	assert_int_equal(field(&s, a + 7, 4), b + 6);
	/* The bytes between the fields went along. */
	assert_int_equal(*image_file_at(&s.file, rva_of(a), 1), 'b');
	assert_int_equal(*image_file_at(&s.file, rva_of(b), 1), 'a');
	assert_int_equal(*image_file_at(&s.file, rva_of(b + 15), 1), 'a');
	release(&s);
}

static void thunks_take_what_enters(void **state)
{
	const struct rva thunks[2] = {{0}, {0x9000}};
	struct swapped s;

	(void)state;
	open_swapped(&s);
	s.rewrite.layout = NULL;
	s.rewrite.thunks = thunks;
	/* Enters the second function; goes there; enters inside it; enters the first. */
	add_ref(&s, (struct ref){.site = {TEXT}, .target = {TEXT + 16}, .kind = REF_BRANCH,
				 .size = 4, .enters = true});
	add_ref(&s, (struct ref){.site = {TEXT + 4}, .target = {TEXT + 16},
				 .kind = REF_BRANCH, .size = 4});
	add_ref(&s, (struct ref){.site = {TEXT + 8}, .target = {TEXT + 18},
				 .kind = REF_BRANCH, .size = 4, .enters = true});
	add_ref(&s, (struct ref){.site = {TEXT + 12}, .target = {TEXT}, .kind = REF_BRANCH,
				 .size = 4, .enters = true});
	add_ref(&s, (struct ref){.site = {DATA}, .target = {TEXT + 16}, .kind = REF_VA64,
				 .size = 8, .enters = true});
	assert_int_equal(rewrite_refs(&s.rewrite, NULL), STATUS_OK);
	assert_int_equal(field(&s, TEXT, 4), 0x9000 - (TEXT + 4));
	assert_int_equal(field(&s, TEXT + 4, 4), 16 - 8);
	assert_int_equal(field(&s, TEXT + 8, 4), 18 - 12);
	assert_int_equal((int32_t)field(&s, TEXT + 12, 4), -16);
	assert_int_equal(field(&s, DATA, 8), BUILT_IMAGE_BASE + 0x9000);
	release(&s);
}

static void too_far_is_a_failure(void **state)
{
	const struct rva thunks[2] = {{0}, {0x90000000}};
	struct swapped s;
	struct diag diag;

	(void)state;
	open_swapped(&s);
	s.rewrite.layout = NULL;
	s.rewrite.thunks = thunks;
	add_ref(&s, (struct ref){.site = {TEXT}, .target = {TEXT + 16}, .kind = REF_BRANCH,
				 .size = 4, .enters = true});
	assert_int_equal(rewrite_refs(&s.rewrite, &diag), STATUS_MALFORMED);
	assert_int_equal(diag.rva.v, TEXT);
	release(&s);
}

/* The words of the relocation table that the file has now. */
static uint32_t relocated(struct swapped *s, struct rva *ret_sites)
{
	struct data_directory d = s->file.directories[DIRECTORY_RELOCATION];
	uint32_t count = 0;

	for (uint32_t at = 0; at < d.size;) {
		const uint8_t *block = image_file_at(&s->file, rva_add(d.rva, at), 8);
		uint32_t size = load_u32(block + 4);

		for (uint32_t i = 8; i < size; i += 2) {
			uint16_t word = load_u16(block + i);

			if (word)
				ret_sites[count++] = rva_of(load_u32(block) + (word & 0xfff));
		}
		at += size;
	}
	return count;
}

static void relocations_move_with_their_words(void **state)
{
	struct swapped s;
	struct rva sites[4], old;

	(void)state;
	open_swapped(&s);
	old = s.file.directories[DIRECTORY_RELOCATION].rva;
	/* A word inside the second block. */
	s.reloc.site = rva_of(TEXT + BLOCK_BYTES + 8);
	assert_int_equal(rewrite_relocations(&s.rewrite, NULL, 0, NULL), STATUS_OK);
	assert_int_equal(relocated(&s, sites), 1);
	assert_int_equal(sites[0].v, TEXT + 8);
	assert_int_equal(s.file.directories[DIRECTORY_RELOCATION].rva.v, old.v);
	assert_int_equal(s.file.sections.len, 3);
	release(&s);
}

/* Takes the table away, as if the linker had made none. */
static void open_unrelocated(struct swapped *s, uint16_t characteristics)
{
	open_swapped(s);
	s->built.image.headers.characteristics = characteristics;
	s->built.image.directories[DIRECTORY_RELOCATION] = (struct data_directory){0};
	s->file.directories[DIRECTORY_RELOCATION] = (struct data_directory){0};
	s->graph.tables.relocs.count = 0;
}

/* The first ones, of an image that may lie anywhere; at a fixed base it needs none. */
static void relocations_where_there_were_none(void **state)
{
	const struct reloc more[] = {{{DATA + 0x20}, RELOC_DIR64}};
	struct swapped s;
	struct rva sites[4];

	(void)state;
	open_unrelocated(&s, FILE_DLL);
	assert_int_equal(rewrite_relocations(&s.rewrite, NULL, 0, NULL), STATUS_OK);
	assert_int_equal(s.file.directories[DIRECTORY_RELOCATION].size, 0);
	assert_int_equal(rewrite_relocations(&s.rewrite, more, 1, NULL), STATUS_OK);
	assert_int_equal(relocated(&s, sites), 1);
	assert_int_equal(sites[0].v, DATA + 0x20);
	assert_int_equal(s.file.sections.len, 4);
	assert_int_equal(s.file.directories[DIRECTORY_RELOCATION].rva.v,
			 s.file.sections.data[3].rva.v);
	release(&s);
	open_unrelocated(&s, FILE_RELOCS_STRIPPED);
	assert_int_equal(rewrite_relocations(&s.rewrite, more, 1, NULL), STATUS_OK);
	assert_int_equal(s.file.directories[DIRECTORY_RELOCATION].size, 0);
	assert_int_equal(s.file.sections.len, 3);
	release(&s);
}

static void more_relocations_than_room(void **state)
{
	const struct reloc more[] = {{{0x5000}, RELOC_DIR64}, {{DATA + 0x20}, RELOC_DIR64}};
	struct swapped s;
	struct rva sites[4], old;

	(void)state;
	open_swapped(&s);
	old = s.file.directories[DIRECTORY_RELOCATION].rva;
	assert_int_equal(rewrite_relocations(&s.rewrite, more, 2, NULL), STATUS_OK);
	assert_int_equal(relocated(&s, sites), 3);
	assert_int_equal(sites[0].v, DATA + 8);
	assert_int_equal(sites[1].v, DATA + 0x20);
	assert_int_equal(sites[2].v, 0x5000);
	/* In a section of its own; nobody reads the old table for the new one. */
	assert_int_equal(s.file.sections.len, 4);
	assert_int_equal(s.file.directories[DIRECTORY_RELOCATION].rva.v,
			 s.file.sections.data[3].rva.v);
	assert_true(s.file.sections.data[3].characteristics & SECTION_DISCARDABLE);
	for (uint32_t i = 0; i < RELOC_BYTES; i++)
		assert_int_equal(*image_file_at(&s.file, rva_add(old, i), 1), 0);
	release(&s);
}

/* A symbol's section number changes with the section. */
static void symbols_move_with_their_code(void **state)
{
	struct swapped s;
	const uint8_t *row;
	struct rva added;

	(void)state;
	open_swapped(&s);
	rewrite_symbols(&s.rewrite);
	row = image_file_at_offset(&s.file, s.built.image.headers.symbol_table, 18);
	assert_int_equal(load_u32(row + 8), 0);
	assert_int_equal(load_u16(row + 12), 1);
	assert_int_equal(image_file_add_section(&s.file, ".new", 64, 0, BUILT_CODE, &added,
						NULL),
			 STATUS_OK);
	s.begins[1] = rva_add(added, 32);
	rewrite_symbols(&s.rewrite);
	assert_int_equal(load_u32(row + 8), 32);
	assert_int_equal(load_u16(row + 12), 4);
	assert_memory_equal(row, "second\0\0", 8);
	release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_says_where_its_target_went),
		cmocka_unit_test(thunks_take_what_enters),
		cmocka_unit_test(too_far_is_a_failure),
		cmocka_unit_test(relocations_move_with_their_words),
		cmocka_unit_test(more_relocations_than_room),
		cmocka_unit_test(relocations_where_there_were_none),
		cmocka_unit_test(symbols_move_with_their_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
