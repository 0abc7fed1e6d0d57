/* What an instrumented image consists of, read byte by byte as trace/probe.h says it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../instrument/probe_plan.h"
#include "../../instrument/probe_writer.h"
#include "full_image.h"
#include "trace/probe.h"
#include "trace/probed_image.h"

enum { RELOC_MAX = 256 };

/* An original, what was written, and where its parts stand. */
struct probed_pair {
	const uint8_t *old_bytes;
	struct image old, image;
	struct graph graph;
	struct probe_plan plan;
	struct probed probed;
	struct rva code, data, meta; /* the added sections */
	uint32_t relocs[RELOC_MAX];  /* sites in file order */
	uint32_t reloc_count;
};

static const struct section *section_named(const struct image *image, const char *name)
{
	for (uint32_t i = 0; i < image->section_count; i++)
		if (strcmp(image->sections[i].name, name) == 0)
			return &image->sections[i];
	return NULL;
}

static const uint8_t *at(const struct probed_pair *p, struct rva rva, uint32_t size)
{
	const uint8_t *bytes = image_bytes(&p->image, rva, size);

	assert_non_null(bytes);
	return bytes;
}

static uint32_t u32_at(const struct probed_pair *p, struct rva rva)
{
	return load_u32(at(p, rva, 4));
}

static uint64_t va_at(const struct probed_pair *p, struct rva rva)
{
	return load_u64(at(p, rva, 8)) - p->image.headers.image_base;
}

/* Where a 32-bit displacement at `field` leads that ends its instruction. */
static struct rva led(const struct probed_pair *p, struct rva field)
{
	return rva_add(rva_add(field, 4), u32_at(p, field));
}

static void read_relocs(struct probed_pair *p)
{
	struct data_directory d = p->image.directories[DIRECTORY_RELOCATION];

	for (uint32_t block = 0, next; block < d.size; block = next) {
		uint32_t page = u32_at(p, rva_add(d.rva, block));

		next = block + u32_at(p, rva_add(d.rva, block + 4));
		assert_true(next > block && next % 4 == 0);
		for (uint32_t row = block + 8; row < next; row += 2) {
			uint16_t word = load_u16(at(p, rva_add(d.rva, row), 2));

			if (word == 0)
				continue;
			assert_int_equal(word >> 12, 10);
			assert_true(p->reloc_count < RELOC_MAX);
			p->relocs[p->reloc_count++] = page + (word & 0xfff);
		}
	}
}

static bool is_relocated(const struct probed_pair *p, struct rva site)
{
	for (uint32_t i = 0; i < p->reloc_count; i++)
		if (p->relocs[i] == site.v)
			return true;
	return false;
}

static void instrument_as(struct probed_pair *p, const uint8_t *bytes, size_t size,
			  const char *name, const char *only)
{
	struct probe_options options = {.agent = "agent-name.dll", .name = name};
	struct discovery_options discovery = {0};
	struct probe_filter filter = {.only = &only, .only_count = only ? 1 : 0};
	struct diag diag;

	memset(p, 0, sizeof(*p));
	diag_init(&diag);
	for (unsigned i = 0; i < sizeof(options.hash.bytes); i++)
		options.hash.bytes[i] = (uint8_t)(0xa0 + i);
	assert_int_equal(image_open_bytes(&p->old, bytes, size, "old", &diag), STATUS_OK);
	assert_int_equal(graph_discover(&p->graph, &p->old, &discovery, &diag), STATUS_OK);
	assert_int_equal(probe_plan_make(&p->graph, &filter, &p->plan, &diag), STATUS_OK);
	assert_int_equal(probe_write(&p->graph, &p->plan, &options, &p->probed, &diag),
			 STATUS_OK);
	assert_int_equal(image_open_bytes(&p->image, p->probed.bytes, p->probed.size, "new",
					  &diag),
			 STATUS_OK);
	p->code = section_named(&p->image, ".apcode")->rva;
	p->data = section_named(&p->image, ".apdata")->rva;
	p->meta = section_named(&p->image, ".apmeta")->rva;
	read_relocs(p);
}

static void instrument(struct probed_pair *p, const uint8_t *bytes, size_t size)
{
	instrument_as(p, bytes, size, "original.dll", NULL);
}

static void release(struct probed_pair *p)
{
	image_release(&p->image);
	probed_release(&p->probed);
	probe_plan_release(&p->plan);
	graph_release(&p->graph);
	image_release(&p->old);
}

static struct rva slots_of(const struct probed_pair *p)
{
	return rva_of((uint32_t)va_at(p, rva_add(p->data, 24)));
}

/* The thunk that stands for the function at `rva`, found through the list of RVAs. */
static struct rva thunk_of(const struct probed_pair *p, struct rva rva)
{
	struct rva list = rva_of((uint32_t)va_at(p, rva_add(p->data, 32)));

	for (uint32_t i = 0; i < u32_at(p, rva_add(p->data, 12)); i++)
		if (u32_at(p, rva_add(list, 4 * i)) == rva.v)
			return rva_add(p->code, 16 * i);
	fail_msg("no probe for 0x%x", rva.v);
	return rva_of(0);
}

static void assert_head(const struct probed_pair *p)
{
	uint32_t count = u32_at(p, rva_add(p->data, 12));
	struct rva list = rva_of((uint32_t)va_at(p, rva_add(p->data, 32)));

	assert_memory_equal(at(p, p->data, 8), "APLPUSE1", 8);
	assert_int_equal(u32_at(p, rva_add(p->data, 8)), 2);
	assert_int_equal(count, p->plan.functions.len);
	assert_int_equal(va_at(p, rva_add(p->data, 16)), 0);
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(*at(p, rva_add(p->data, 40 + i), 1), 0xa0 + i);
	assert_int_equal(load_u64(at(p, rva_add(p->data, 136), 8)), 0);
	assert_int_equal(va_at(p, rva_add(p->data, 144)), p->code.v);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(is_relocated(p, rva_add(p->data, 16 + 8 * i)));
	assert_true(is_relocated(p, rva_add(p->data, 144)));
	assert_int_equal(slots_of(p).v % 8, 0);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(u32_at(p, rva_add(list, 4 * i)),
				 p->graph.functions.data[p->plan.functions.data[i]].begin.v);
}

static void assert_units(const struct probed_pair *p)
{
	struct rva common = rva_of(0);

	for (uint32_t i = 0; i < p->plan.functions.len; i++) {
		struct rva unit = rva_add(p->code, 16 * i);
		struct rva slot = rva_add(slots_of(p), 8 * i);

		assert_memory_equal(at(p, unit, 2), "\xff\x25", 2); /* jmp [slot] */
		assert_int_equal(led(p, rva_add(unit, 2)).v, slot.v);
		assert_int_equal(*at(p, rva_add(unit, 6), 1), 0xe8); /* call common */
		if (i == 0)
			common = led(p, rva_add(unit, 7));
		assert_int_equal(led(p, rva_add(unit, 7)).v, common.v);
		/* jmp unit: 13 bytes back from its end */
		assert_memory_equal(at(p, rva_add(unit, 11), 2), "\xeb\xf3", 2);
		/* The slot leads to the stub at first, wherever the image is loaded. */
		assert_int_equal(va_at(p, slot), unit.v + 6);
		assert_true(is_relocated(p, slot));
	}
	/* push rax; lea rax, [head]; call [agent]; pop rax; ret */
	assert_memory_equal(at(p, common, 4), "\x50\x48\x8d\x05", 4);
	assert_int_equal(led(p, rva_add(common, 4)).v, p->data.v);
	assert_memory_equal(at(p, rva_add(common, 8), 2), "\xff\x15", 2);
	assert_memory_equal(at(p, rva_add(common, 14), 2), "\x58\xc3", 2);
	/* What it calls through is the agent's entry. */
	assert_int_equal(led(p, rva_add(common, 10)).v,
			 p->image.imports[p->image.import_count - 1].slot.v);
}

/* The import table is the old one with the agent behind it. */
static void assert_imports(const struct probed_pair *p)
{
	const struct import *agent = &p->image.imports[p->image.import_count - 1];

	assert_int_equal(p->image.import_count, p->old.import_count + 1);
	for (uint32_t i = 0; i < p->old.import_count; i++) {
		assert_string_equal(p->image.imports[i].dll, p->old.imports[i].dll);
		assert_int_equal(p->image.imports[i].slot.v, p->old.imports[i].slot.v);
	}
	assert_string_equal(agent->dll, "agent-name.dll");
	assert_string_equal(agent->name, "appulse_probe2");
	/* Windows' loader writes there, so no directory needs to say that it may. */
	assert_true(section_named(&p->image, ".apdata")->characteristics & SECTION_WRITE);
	assert_true(rva_in(agent->slot, p->data,
			   section_named(&p->image, ".apdata")->virtual_size));
}

static void assert_added_sections(const struct probed_pair *p)
{
	const struct section *last = &p->old.sections[p->old.section_count - 1];
	const struct section *added = &p->image.sections[p->old.section_count];

	assert_true(p->image.section_count - p->old.section_count >= 3);
	assert_true(p->code.v >= last->rva.v + last->virtual_size);
	assert_int_equal(added[0].characteristics, 0x60000020); /* code: not writable */
	assert_int_equal(added[1].characteristics, 0xc0000040);
	assert_int_equal(added[2].characteristics, 0x40000040);
	for (uint32_t i = p->old.section_count; i < p->image.section_count; i++)
		assert_int_equal(p->image.sections[i].rva.v % 4096, 0);
}

/* The function table is the old one with a row for the common code behind it. */
static void assert_function_table(const struct probed_pair *p)
{
	struct data_directory was = p->old.directories[DIRECTORY_EXCEPTION];
	struct data_directory is = p->image.directories[DIRECTORY_EXCEPTION];
	struct rva row = rva_add(is.rva, was.size);
	struct rva common = led(p, rva_add(p->code, 7));

	assert_int_equal(is.size, was.size + 12);
	if (was.size)
		assert_memory_equal(at(p, is.rva, was.size),
				    image_bytes(&p->old, was.rva, was.size), was.size);
	assert_int_equal(u32_at(p, row), common.v);
	assert_int_equal(u32_at(p, rva_add(row, 4)), common.v + 16);
	/* Behind the push 8 bytes lie above the return address into the stub. */
	assert_memory_equal(at(p, rva_of(u32_at(p, rva_add(row, 8))), 8),
			    "\x01\x01\x01\x00\x01\x02\x00\x00", 8);
}

static void assert_relocations(const struct probed_pair *p)
{
	for (uint32_t i = 1; i < p->reloc_count; i++)
		assert_true(p->relocs[i] >= p->relocs[i - 1] + 8);
	assert_int_equal(p->reloc_count,
			 p->graph.tables.relocs.count + 4 + p->plan.functions.len);
	for (uint32_t i = 0; i < p->graph.tables.relocs.count; i++)
		assert_true(is_relocated(p, p->graph.tables.relocs.data[i].site));
}

/* No byte of the code has changed but for fields that lead to thunks. */
static void assert_code_kept(const struct probed_pair *p)
{
	const struct section *code = section_named(&p->old, ".text");
	const uint8_t *was = image_bytes(&p->old, code->rva, code->virtual_size);
	const uint8_t *is = at(p, code->rva, code->virtual_size);
	uint32_t end = section_named(&p->image, ".apcode")->virtual_size;

	for (uint32_t i = 0; i < code->virtual_size; i++) {
		const struct ref *ref = &p->graph.refs.data[graph_ref_from(
			&p->graph, rva_of(code->rva.v + (i < 3 ? 0 : i - 3)))];
		struct rva to;

		if (was[i] == is[i])
			continue;
		assert_true(rva_in(rva_add(code->rva, i), ref->site, 4) && ref->enters);
		to = led(p, ref->site);
		assert_true(rva_in(to, p->code, end) && (to.v - p->code.v) % 16 == 0);
	}
}

static void assert_whole(const struct probed_pair *p)
{
	assert_true(image_is_probed(&p->image));
	assert_false(image_is_probed(&p->old));
	assert_added_sections(p);
	assert_head(p);
	assert_units(p);
	assert_imports(p);
	assert_function_table(p);
	assert_relocations(p);
	assert_code_kept(p);
}

static void everything_that_enters_leads_to_a_thunk(void **state)
{
	struct full_image f;
	struct probed_pair p;
	uint32_t rows[FULL_GUARD_COUNT];

	(void)state;
	full_image_make(&f);
	instrument(&p, f.bytes, f.size);
	assert_whole(&p);
	assert_true(p.probed.dropped_signature);
	assert_int_equal(led(&p, f.call_field).v, thunk_of(&p, f.switches).v);
	assert_int_equal(led(&p, f.lea_field).v, thunk_of(&p, f.leaf).v);
	assert_int_equal(led(&p, f.tail_field).v, thunk_of(&p, f.switches).v);
	assert_int_equal(p.image.headers.entry.v, thunk_of(&p, f.entry).v);
	assert_int_equal(va_at(&p, f.pointer), thunk_of(&p, f.tail).v);
	assert_int_equal(va_at(&p, f.callbacks), thunk_of(&p, f.callback).v);
	assert_int_equal(u32_at(&p, f.export_words), thunk_of(&p, f.exported).v);
	assert_int_equal(u32_at(&p, rva_add(f.export_words, 4)), thunk_of(&p, f.leaf).v);
	assert_int_equal(u32_at(&p, f.handler_field), thunk_of(&p, f.handler).v);
	/* The filter of a scope table is called; its range and its landing pad are not. */
	assert_int_equal(u32_at(&p, rva_add(f.scope, 12)), thunk_of(&p, f.filter).v);
	assert_int_equal(u32_at(&p, rva_add(f.scope, 4)), f.guarded.v + 4);
	assert_int_equal(u32_at(&p, rva_add(f.scope, 8)), f.guarded.v + 11);
	assert_int_equal(u32_at(&p, rva_add(f.scope, 16)), f.landing.v);
	/* Nor are other functions' unwind data, and jump tables. */
	assert_int_equal(u32_at(&p, f.chained), f.whole.v);
	assert_memory_equal(at(&p, f.table, 16), image_bytes(&p.old, f.table, 16), 16);
	/* The guard table ascends, with the flags that belong to its rows. */
	for (unsigned i = 0; i < FULL_GUARD_COUNT; i++)
		rows[i] = u32_at(&p, rva_add(f.guard, 5 * i));
	assert_true(rows[0] < rows[1] && rows[1] < rows[2]);
	for (unsigned i = 0; i < FULL_GUARD_COUNT; i++) {
		uint8_t flags = *at(&p, rva_add(f.guard, 5 * i + 4), 1);
		const struct rva targets[] = {f.leaf, f.callback, f.exported};

		assert_int_equal(rows[i], thunk_of(&p, targets[flags]).v);
	}
	release(&p);
	full_image_release(&f);
}

/* Thunks stand behind all functions that have none. */
static void guard_tables_are_sorted(void **state)
{
	struct full_image f;
	struct probed_pair p;

	(void)state;
	full_image_make(&f);
	instrument_as(&p, f.bytes, f.size, "original.dll", "leaf");
	assert_whole(&p);
	assert_int_equal(p.plan.functions.len, 1);
	/* The flags of a row are its number in the original. */
	assert_int_equal(u32_at(&p, f.guard), f.callback.v);
	assert_int_equal(*at(&p, rva_add(f.guard, 4), 1), 1);
	assert_int_equal(u32_at(&p, rva_add(f.guard, 5)), f.exported.v);
	assert_int_equal(*at(&p, rva_add(f.guard, 9), 1), 2);
	assert_int_equal(u32_at(&p, rva_add(f.guard, 10)), thunk_of(&p, f.leaf).v);
	assert_int_equal(*at(&p, rva_add(f.guard, 14), 1), 0);
	/* What has no probe is referred to as before. */
	assert_int_equal(led(&p, f.call_field).v, f.switches.v);
	assert_int_equal(p.image.headers.entry.v, f.entry.v);
	release(&p);
	full_image_release(&f);
}

/* A function that calls another, and whatever else the test wants. */
static void begin_small(struct image_builder *b)
{
	struct rva entry;

	image_builder_init(b);
	image_builder_section(b, ".text", BUILT_CODE);
	entry = image_builder_put(b, "\xe8\x01\0\0\0\xc3\x31\xc0\xc3", 9);
	b->entry = entry;
}

static void end_small(struct image_builder *b, struct rva relocated)
{
	struct rva table = image_builder_section(b, ".reloc", BUILT_CONST);

	image_builder_u32(b, relocated.v & ~0xfffu);
	image_builder_u32(b, 12);
	image_builder_u16(b, (uint16_t)(10 << 12 | (relocated.v & 0xfff)));
	image_builder_u16(b, 0);
	image_builder_directory(b, DIRECTORY_RELOCATION, table, 12);
}

/* No imports, no function table, no load configuration, and a last section that is
 * mostly .bss. */
static void an_image_with_nothing(void **state)
{
	struct image_builder b;
	struct probed_pair p;
	struct rva word;
	uint8_t *bytes;
	size_t size;

	(void)state;
	begin_small(&b);
	image_builder_section(&b, ".data", BUILT_DATA);
	word = image_builder_va(&b, b.entry);
	end_small(&b, word);
	image_builder_section(&b, ".bss", BUILT_DATA);
	image_builder_virtual_size(&b, 0x123456);
	bytes = image_builder_finish(&b, &size);
	instrument(&p, bytes, size);
	assert_whole(&p);
	assert_int_equal(p.plan.functions.len, 2);
	assert_int_equal(p.code.v, 0x4000 + 0x124000);
	assert_int_equal(led(&p, rva_of(0x1001)).v, thunk_of(&p, rva_of(0x1006)).v);
	assert_int_equal(va_at(&p, word), thunk_of(&p, b.entry).v);
	release(&p);
	free(bytes);
	image_builder_release(&b);
}

static struct rva put_import(struct image_builder *b, const char *dll, bool lookup,
			     struct rva *ret_slot)
{
	struct rva name = image_builder_string(b, dll), hint, table = rva_of(0), row;

	image_builder_align(b, 2);
	hint = image_builder_u16(b, 0);
	image_builder_string(b, "Function");
	image_builder_align(b, 8);
	if (lookup) {
		table = image_builder_u64(b, hint.v);
		image_builder_u64(b, 0);
	}
	*ret_slot = image_builder_u64(b, hint.v);
	image_builder_u64(b, 0);
	row = image_builder_u32(b, table.v);
	image_builder_u32(b, 0x5eaf1234); /* TimeDateStamp */
	image_builder_u32(b, 0xffffffff); /* ForwarderChain */
	image_builder_u32(b, name.v);
	image_builder_u32(b, ret_slot->v);
	image_builder_fill(b, 0, 20);
	return row;
}

/* An image that imports one function, with the directories that the test names. */
static void instrument_importing(struct probed_pair *p, bool lookup, bool iat, bool bound,
				 uint8_t **ret_bytes)
{
	struct image_builder b;
	struct rva word, table, slot;
	size_t size;

	begin_small(&b);
	image_builder_section(&b, ".idata", BUILT_CONST);
	table = put_import(&b, "first.dll", lookup, &slot);
	image_builder_directory(&b, DIRECTORY_IMPORT, table, 40);
	if (iat)
		image_builder_directory(&b, DIRECTORY_IAT, slot, 16);
	if (bound)
		image_builder_directory(&b, DIRECTORY_BOUND_IMPORT,
					image_builder_fill(&b, 0, 16), 16);
	image_builder_section(&b, ".data", BUILT_DATA);
	word = image_builder_va(&b, b.entry);
	end_small(&b, word);
	*ret_bytes = image_builder_finish(&b, &size);
	instrument(p, *ret_bytes, size);
	assert_whole(p);
	image_builder_release(&b);
}

static void bound_imports_are_unbound(void **state)
{
	struct probed_pair p;
	struct rva table;
	uint8_t *bytes;

	(void)state;
	instrument_importing(&p, true, true, true, &bytes);
	assert_int_equal(p.image.directories[DIRECTORY_BOUND_IMPORT].size, 0);
	table = p.image.directories[DIRECTORY_IMPORT].rva;
	assert_int_equal(u32_at(&p, rva_add(table, 4)), 0);
	assert_int_equal(u32_at(&p, rva_add(table, 8)), 0);
	release(&p);
	free(bytes);
	/* The words in the address table are all that there is. */
	instrument_importing(&p, false, true, false, &bytes);
	table = p.image.directories[DIRECTORY_IMPORT].rva;
	assert_int_equal(u32_at(&p, rva_add(table, 4)), 0x5eaf1234);
	release(&p);
	free(bytes);
}

static void addresses_stay_writable_for_the_loader(void **state)
{
	struct probed_pair p;
	struct data_directory was, is;
	uint8_t *bytes;

	(void)state;
	instrument_importing(&p, true, true, false, &bytes);
	was = p.old.directories[DIRECTORY_IAT];
	is = p.image.directories[DIRECTORY_IAT];
	assert_int_equal(is.rva.v, was.rva.v);
	assert_int_equal(is.size, was.size);
	release(&p);
	free(bytes);
	/* Without one, Windows goes by the section of the import table, which has moved. */
	instrument_importing(&p, true, false, false, &bytes);
	is = p.image.directories[DIRECTORY_IAT];
	assert_int_equal(is.rva.v, section_named(&p.old, ".idata")->rva.v);
	assert_int_equal(is.size, section_named(&p.old, ".idata")->virtual_size);
	release(&p);
	free(bytes);
}

static void assert_name(const char *name, const char *expected)
{
	struct full_image f;
	struct probed_pair p;
	const char *found;

	full_image_make(&f);
	instrument_as(&p, f.bytes, f.size, name, NULL);
	found = (const char *)at(&p, rva_add(p.data, 72), 64);
	assert_int_equal(found[63], 0);
	assert_string_equal(found, expected);
	for (size_t i = strlen(found); i < 64; i++)
		assert_int_equal(found[i], 0);
	release(&p);
	full_image_release(&f);
}

#define TEN "0123456789"
#define SIXTY TEN TEN TEN TEN TEN TEN

static void names_are_cut_between_characters(void **state)
{
	(void)state;
	assert_name("a.dll", "a.dll");
	assert_name(SIXTY "abc", SIXTY "abc");
	assert_name(SIXTY "abcd", SIXTY "abc");
	assert_name(SIXTY "ab\u00e4", SIXTY "ab");
	assert_name(SIXTY "a\u00e4x", SIXTY "a\u00e4");
	assert_name(SIXTY "\u20ac", SIXTY "\u20ac");
	assert_name(SIXTY "a\u20ac", SIXTY "a");
	assert_name(SIXTY "a\U0001f600.dll", SIXTY "a");
	/* Readers of traces take plain text only. */
	assert_name("a\xff\x1b[b.dll", "a??[b.dll");
}

/* Slots on the last bytes of a page and the first of the next: 500 functions make more
 * than 4000 bytes of slots, and relocations on two pages. */
static void slots_across_pages(void **state)
{
	enum { FUNCTIONS = 700 };
	static const uint8_t function[16] = {0x31, 0xc0, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
					     0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};
	struct image_builder b;
	struct discovery_options discovery = {0};
	struct probe_filter filter = {0};
	struct probe_options options = {.agent = "a.dll", .name = "n"};
	struct relocations relocs;
	struct image old, new;
	struct graph graph;
	struct probe_plan plan;
	struct probed probed;
	struct rva words, slots;
	uint8_t *bytes;
	size_t size;

	(void)state;
	image_builder_init(&b);
	image_builder_section(&b, ".text", BUILT_CODE);
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		image_builder_put(&b, function, sizeof(function));
	image_builder_section(&b, ".data", BUILT_DATA);
	words = image_builder_here(&b);
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		image_builder_va(&b, rva_of(0x1000 + 16 * i));
	image_builder_section(&b, ".reloc", BUILT_CONST);
	image_builder_directory(&b, DIRECTORY_RELOCATION, image_builder_here(&b),
				2 * 8 + 2 * FUNCTIONS);
	for (uint32_t page = 0; page < 2; page++) {
		uint32_t count = page ? FUNCTIONS - 512 : 512;

		image_builder_u32(&b, words.v + 0x1000 * page);
		image_builder_u32(&b, 8 + 2 * count);
		for (uint32_t i = 0; i < count; i++)
			image_builder_u16(&b, (uint16_t)(10 << 12 | 8 * i));
	}
	bytes = image_builder_finish(&b, &size);
	assert_int_equal(image_open_bytes(&old, bytes, size, "old", NULL), STATUS_OK);
	assert_int_equal(graph_discover(&graph, &old, &discovery, NULL), STATUS_OK);
	assert_int_equal(probe_plan_make(&graph, &filter, &plan, NULL), STATUS_OK);
	assert_int_equal(plan.functions.len, FUNCTIONS);
	assert_int_equal(probe_write(&graph, &plan, &options, &probed, NULL), STATUS_OK);
	assert_int_equal(image_open_bytes(&new, probed.bytes, probed.size, "new", NULL),
			 STATUS_OK);
	assert_int_equal(relocations_read(&new, &relocs, NULL), STATUS_OK);
	assert_int_equal(relocs.count, 2 * FUNCTIONS + 4);
	slots = rva_add(section_named(&new, ".apdata")->rva, sizeof(struct probe_image));
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		assert_int_equal(relocs.data[FUNCTIONS + 4 + i].site.v, slots.v + 8 * i);
	image_release(&new);
	probed_release(&probed);
	probe_plan_release(&plan);
	graph_release(&graph);
	image_release(&old);
	free(bytes);
	image_builder_release(&b);
}

static void no_room_for_more_sections(void **state)
{
	struct probe_options options = {.agent = "a.dll", .name = "n"};
	struct discovery_options discovery = {0};
	struct probe_filter filter = {0};
	struct image_builder b;
	struct built_image built;
	struct graph graph;
	struct probe_plan plan;
	struct probed probed;
	struct diag diag;

	(void)state;
	begin_small(&b);
	b.header_rows = 96;
	/* Of 96 sections 94 are there, the relocations' included. */
	b.sections[0].rva = rva_of(0x2000);
	b.entry = rva_of(0x2000);
	for (unsigned i = 0; i < 92; i++) {
		image_builder_section(&b, ".s", BUILT_DATA);
		image_builder_va(&b, b.entry);
	}
	end_small(&b, b.sections[1].rva);
	built_image_open(&built, &b);
	assert_int_equal(built.status, STATUS_OK);
	assert_int_equal(built.image.section_count, 94);
	assert_int_equal(graph_discover(&graph, &built.image, &discovery, &diag), STATUS_OK);
	assert_int_equal(probe_plan_make(&graph, &filter, &plan, &diag), STATUS_OK);
	assert_int_equal(probe_write(&graph, &plan, &options, &probed, &diag),
			 STATUS_NO_ROOM);
	assert_null(probed.bytes);
	probe_plan_release(&plan);
	graph_release(&graph);
	built_image_close(&built);
	image_builder_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_that_enters_leads_to_a_thunk),
		cmocka_unit_test(guard_tables_are_sorted),
		cmocka_unit_test(an_image_with_nothing),
		cmocka_unit_test(bound_imports_are_unbound),
		cmocka_unit_test(addresses_stay_writable_for_the_loader),
		cmocka_unit_test(names_are_cut_between_characters),
		cmocka_unit_test(slots_across_pages),
		cmocka_unit_test(no_room_for_more_sections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
