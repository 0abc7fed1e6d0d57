/* An image made in memory that has one of everything that points at code: calls,
 * tail calls, lea, memory operands, a jump table, pointers in data, unwind
 * information with a chained row, a handler and a scope table, exports, imports,
 * TLS callbacks, guard tables, volatile metadata, dynamic value
 * relocations, a debug entry, symbols, an overlay and a
 * signature.  Its code is written by hand, so that the tests know every place. */
#ifndef APPULSE_TESTS_FULL_IMAGE_H
#define APPULSE_TESTS_FULL_IMAGE_H

#include <stdlib.h>
#include <string.h>

#include "image_builder.h"

enum { FULL_RELOC_MAX = 32, FULL_GUARD_COUNT = 3, FULL_OVERLAY_BYTES = 24,
       FULL_ACCESS_COUNT = 3, FULL_RANGE_COUNT = 2 };

/* In what it may differ. */
struct full_variant {
	bool has_hash;   /* `exported` has one before it, for XFG, and so takes no thunk */
	bool data_first; /* the text is not the first section */
	uint32_t more_sections;     /* small ones of data, the first with zero memory */
	uint32_t section_alignment, file_alignment; /* 0: those of the builder */
	uint32_t header_rows;       /* that the headers have room for; 0: the builder's */
};

struct full_image {
	uint8_t *bytes; /* owned */
	size_t size;
	struct full_variant variant;
	struct rva text;
	/* Functions in the text. */
	struct rva entry, switches, guarded, handler, filter, whole, part, leaf, callback,
		exported, island, tail, last;
	/* Places in the text: of an instruction's field, or inside a function. */
	struct rva hash, call_field, lea_field, tail_field, padding, landing;
	/* Places in data. */
	struct rva table, scope, chained, handler_field, export_words, export_name, iat,
		pointer, guard, long_jump, continuations, accesses, ranges, volatiles,
		dynamic, guid,
		extra_characteristics, debug, callbacks, plain, config;
	struct rva pdata, reloc;
	uint32_t pdata_rows, reloc_size;
	struct rva relocs[FULL_RELOC_MAX];
	uint32_t reloc_count;
};

/* Makes the 32-bit field at `field` mean `target`. */
static inline void full_point(struct image_builder *b, struct rva field, struct rva target)
{
	store_u32(image_builder_at(b, field), target.v - field.v - 4);
}

/* Code, then padding up to 16 bytes of kind `pad`. */
static inline struct rva full_code(struct image_builder *b, const void *code, size_t size,
				   uint8_t pad)
{
	struct rva begin = image_builder_put(b, code, size);

	while (image_builder_here(b).v % 16)
		image_builder_put(b, &pad, 1);
	return begin;
}

#define FULL_CODE(b, bytes, pad) full_code(b, bytes, sizeof(bytes) - 1, pad)

static inline void full_text(struct full_image *f, struct image_builder *b)
{
	f->text = image_builder_section(b, ".text", BUILT_CODE);
	f->entry = FULL_CODE(b,
			     "\x48\x83\xec\x28"     /* sub rsp, 40 */
			     "\xe8\0\0\0\0"         /* call switches */
			     "\x48\x8d\x05\0\0\0\0" /* lea rax, [leaf] */
			     "\xff\x15\0\0\0\0"     /* call [pointer] */
			     "\xff\x15\0\0\0\0"     /* call [iat] */
			     "\x48\x83\xc4\x28"     /* add rsp, 40 */
			     "\xc3",                /* ret */
			     0x90);
	f->call_field = rva_add(f->entry, 5);
	f->lea_field = rva_add(f->entry, 12);
	f->padding = rva_add(f->entry, 33);
	f->switches = FULL_CODE(b,
				"\x83\xf9\x03"         /* cmp ecx, 3 */
				"\x77\x24"             /* ja default */
				"\x89\xc9"             /* mov ecx, ecx */
				"\x48\x8d\x15\0\0\0\0" /* lea rdx, [table] */
				"\x48\x63\x04\x8a"     /* movsxd rax, [rdx + rcx * 4] */
				"\x48\x01\xd0"         /* add rax, rdx */
				"\xff\xe0"             /* jmp rax */
				"\xb8\1\0\0\0\xc3"     /* case 0 at 23 */
				"\xb8\2\0\0\0\xc3"     /* case 1 at 29 */
				"\xb8\3\0\0\0\xc3"     /* cases 2 and 3 at 35 */
				"\x31\xc0\xc3",        /* default at 41 */
				0xcc);
	f->guarded = FULL_CODE(b,
			       "\x48\x83\xec\x28" /* sub rsp, 40 */
			       "\xff\x15\0\0\0\0" /* call [iat] */
			       "\x90"             /* nop */
			       "\x48\x83\xc4\x28" /* landing: add rsp, 40 */
			       "\xc3",
			       0x90);
	f->landing = rva_add(f->guarded, 11);
	f->handler = FULL_CODE(b, "\xff\x25\0\0\0\0", 0x90); /* jmp [iat] */
	f->filter = FULL_CODE(b, "\xb8\1\0\0\0\xc3", 0xcc);
	f->whole = FULL_CODE(b, "\x85\xc9\x0f\x85\0\0\0\0\xc3", 0xcc); /* test; jnz part */
	f->part = FULL_CODE(b, "\x8d\x41\x05\xc3", 0xcc);
	f->leaf = FULL_CODE(b, "\x8d\x41\x01\xc3", 0xcc);
	f->callback = FULL_CODE(b, "\xc3", 0xcc);
	if (f->variant.has_hash) {
		image_builder_fill(b, 0xcc, 8);
		f->hash = image_builder_put(b, "\x70\xa1\x35\x82\x19\xe4\xb7\xc6", 8);
	}
	f->exported = FULL_CODE(b, "\x8d\x41\x02\xc3", 0xcc);
	f->island = FULL_CODE(b, "\xb8\x77\0\0\0\xc3", 0xcc);
	f->tail = FULL_CODE(b, "\xe9\0\0\0\0", 0x90); /* jmp switches */
	f->tail_field = rva_add(f->tail, 1);
	f->last = FULL_CODE(b, "\x48\x83\xec\x28\xe8\0\0\0\0",
			    0xcc); /* a call without return */
}

static inline void full_link(struct full_image *f, struct image_builder *b)
{
	full_point(b, f->call_field, f->switches);
	full_point(b, f->lea_field, f->leaf);
	full_point(b, rva_add(f->entry, 18), f->pointer);
	full_point(b, rva_add(f->entry, 24), f->iat);
	full_point(b, rva_add(f->switches, 10), f->table);
	full_point(b, rva_add(f->guarded, 6), f->iat);
	full_point(b, rva_add(f->handler, 2), f->iat);
	full_point(b, rva_add(f->whole, 4), f->part);
	full_point(b, f->tail_field, f->switches);
	full_point(b, rva_add(f->last, 5), f->entry);
}

/* A word that holds a VA, with its relocation. */
static inline struct rva full_va(struct full_image *f, struct image_builder *b,
				 struct rva target)
{
	struct rva site = image_builder_va(b, target);

	f->relocs[f->reloc_count++] = site;
	return site;
}

static inline void full_imports(struct full_image *f, struct image_builder *b)
{
	struct rva name, hint, lookup, descriptor;

	name = image_builder_string(b, "kernel.dll");
	image_builder_align(b, 2);
	hint = image_builder_u16(b, 7);
	image_builder_string(b, "Sleep");
	lookup = (image_builder_align(b, 8), image_builder_u64(b, hint.v));
	image_builder_u64(b, 0);
	f->iat = image_builder_u64(b, hint.v);
	image_builder_u64(b, 0);
	descriptor = image_builder_u32(b, lookup.v);
	image_builder_u32(b, 0);
	image_builder_u32(b, 0);
	image_builder_u32(b, name.v);
	image_builder_u32(b, f->iat.v);
	image_builder_fill(b, 0, 20);
	image_builder_directory(b, DIRECTORY_IMPORT, descriptor, 40);
}

static inline void full_exports(struct full_image *f, struct image_builder *b)
{
	struct rva dll = image_builder_string(b, "full.dll"), beta, names, ordinals,
		   directory;

	f->export_name = image_builder_string(b, "alpha");
	beta = image_builder_string(b, "beta");
	f->export_words = (image_builder_align(b, 4), image_builder_u32(b, f->exported.v));
	image_builder_u32(b, f->leaf.v);
	image_builder_u32(b, 0);
	names = image_builder_u32(b, f->export_name.v);
	image_builder_u32(b, beta.v);
	ordinals = image_builder_u16(b, 0);
	image_builder_u16(b, 2);
	directory = image_builder_u32(b, 0);
	image_builder_u32(b, 0);
	image_builder_u32(b, 0);
	image_builder_u32(b, dll.v);
	image_builder_u32(b, 1); /* the first ordinal */
	image_builder_u32(b, 3);
	image_builder_u32(b, 2);
	image_builder_u32(b, f->export_words.v);
	image_builder_u32(b, names.v);
	image_builder_u32(b, ordinals.v);
	/* What leads into the directory is a forwarder. */
	store_u32(image_builder_at(b, rva_add(f->export_words, 8)),
		  image_builder_here(b).v);
	image_builder_string(b, "other.F");
	image_builder_directory(b, DIRECTORY_EXPORT, directory, 40 + 8);
}

static inline void full_volatiles(struct full_image *f, struct image_builder *b)
{
	/* The call through a pointer; the call of an import; a lea. */
	f->accesses = (image_builder_align(b, 4), image_builder_u32(b, f->entry.v + 16));
	image_builder_u32(b, f->guarded.v + 4);
	image_builder_u32(b, f->exported.v);
	/* Three functions with the padding between and behind them, and two. */
	f->ranges = image_builder_u32(b, f->entry.v);
	image_builder_u32(b, f->handler.v - f->entry.v);
	image_builder_u32(b, f->callback.v);
	image_builder_u32(b, f->exported.v + 4 - f->callback.v);
	f->volatiles = image_builder_u32(b, 24);
	image_builder_u32(b, 0x80038003);
	image_builder_u32(b, f->accesses.v);
	image_builder_u32(b, 4 * FULL_ACCESS_COUNT);
	image_builder_u32(b, f->ranges.v);
	image_builder_u32(b, 8 * FULL_RANGE_COUNT);
}

static inline void full_load_config(struct full_image *f, struct image_builder *b)
{
	const struct rva targets[FULL_GUARD_COUNT] = {f->leaf, f->callback, f->exported};
	/* The last may have a hash of its type before it. */
	const uint8_t flags[FULL_GUARD_COUNT] = {0, 1, f->variant.has_hash ? 8 | 2 : 2};

	f->guard = image_builder_here(b);
	for (uint8_t i = 0; i < FULL_GUARD_COUNT; i++) {
		image_builder_u32(b, targets[i].v);
		image_builder_put(b, &flags[i], 1);
	}
	/* Where longjmp may go, behind a call; where an exception may lead to. */
	f->long_jump = image_builder_u32(b, f->call_field.v + 4);
	image_builder_put(b, "", 1);
	f->continuations = image_builder_u32(b, f->guarded.v + 10);
	image_builder_put(b, "", 1);
	image_builder_u32(b, f->landing.v);
	image_builder_put(b, "", 1);
	full_volatiles(f, b);
	f->config = image_builder_align(b, 8);
	image_builder_u32(b, 0x118);
	image_builder_fill(b, 0, 0x80 - 4);
	full_va(f, b, f->guard);
	image_builder_u64(b, FULL_GUARD_COUNT);
	image_builder_u32(b, 0x10410500); /* flags: all tables, one byte more a row */
	image_builder_fill(b, 0, 0xb0 - 0x94);
	full_va(f, b, f->long_jump);
	image_builder_u64(b, 1);
	image_builder_fill(b, 0, 0x100 - 0xc0);
	full_va(f, b, f->volatiles);
	full_va(f, b, f->continuations);
	image_builder_u64(b, 2);
	image_builder_directory(b, DIRECTORY_LOAD_CONFIG, f->config, 0x118);
}

static inline void full_tls(struct full_image *f, struct image_builder *b)
{
	struct rva directory;

	f->callbacks = (image_builder_align(b, 8), full_va(f, b, f->callback));
	image_builder_u64(b, 0);
	directory = full_va(f, b, f->plain);
	full_va(f, b, rva_add(f->plain, 8));
	full_va(f, b, f->plain);
	full_va(f, b, f->callbacks);
	image_builder_u64(b, 0);
	image_builder_directory(b, DIRECTORY_TLS, directory, 40);
}

static inline void full_debug(struct full_image *f, struct image_builder *b)
{
	struct rva data = (image_builder_align(b, 4), image_builder_put(b, "RSDS", 4));

	f->guid = image_builder_put(b, "0123456789abcdef", 16);
	image_builder_u32(b, 1);
	image_builder_string(b, "c:\\full.pdb");
	image_builder_align(b, 4);
	f->extra_characteristics = image_builder_u32(b, 1); /* made for CET */
	f->debug = image_builder_u32(b, 0);
	image_builder_fill(b, 0, 8);
	image_builder_u32(b, 2); /* CodeView */
	image_builder_u32(b, 24 + 12);
	image_builder_u32(b, data.v);
	image_builder_u32(b, 0); /* the file offset: full_finish sets it */
	image_builder_fill(b, 0, 12);
	image_builder_u32(b, 20); /* IMAGE_DEBUG_TYPE_EX_DLLCHARACTERISTICS */
	image_builder_u32(b, 4);
	image_builder_u32(b, f->extra_characteristics.v);
	image_builder_u32(b, 0);
	image_builder_directory(b, DIRECTORY_DEBUG, f->debug, 2 * 28);
}

static inline void full_row(struct full_image *f, struct image_builder *b, struct rva begin,
			    uint32_t size, struct rva unwind)
{
	image_builder_u32(b, begin.v);
	image_builder_u32(b, begin.v + size);
	image_builder_u32(b, unwind.v);
	f->pdata_rows++;
}

static inline void full_unwind(struct full_image *f, struct image_builder *b)
{
	struct rva plain, allocates, handled, chained;

	plain = (image_builder_align(b, 4), image_builder_u32(b, 0x01));
	allocates = image_builder_put(b, "\x01\x04\x01\x00\x04\x42\x00\x00", 8);
	handled = image_builder_put(b, "\x09\x04\x01\x00\x04\x42\x00\x00", 8);
	f->handler_field = image_builder_u32(b, f->handler.v);
	f->scope = image_builder_u32(b, 1);
	image_builder_u32(b, f->guarded.v + 4);
	image_builder_u32(b, f->guarded.v + 11);
	image_builder_u32(b, f->filter.v);
	image_builder_u32(b, f->landing.v);
	chained = image_builder_u32(b, 0x21);
	f->chained = image_builder_u32(b, f->whole.v);
	image_builder_u32(b, f->whole.v + 9);
	image_builder_u32(b, plain.v);

	f->pdata = image_builder_section(b, ".pdata", BUILT_CONST);
	full_row(f, b, f->entry, 33, allocates);
	full_row(f, b, f->switches, 44, plain);
	full_row(f, b, f->guarded, 16, handled);
	full_row(f, b, f->whole, 9, plain);
	full_row(f, b, f->part, 4, chained);
	full_row(f, b, f->last, 9, allocates);
	image_builder_directory(b, DIRECTORY_EXCEPTION, f->pdata, 12 * f->pdata_rows);
}

enum { FULL_DYNAMIC_BYTES = 8 + 12 + 16 + 12 + 12 + 12 + 12 + 12 + 12 };

static inline void full_dynamic_group(struct image_builder *b, uint64_t symbol,
				      uint32_t page, uint32_t bytes)
{
	image_builder_u64(b, symbol);
	image_builder_u32(b, 8 + bytes);
	image_builder_u32(b, page);
	image_builder_u32(b, 8 + bytes);
}

/* Two calls of imports, a call through a pointer, a switch, and a word of data that
 * holds an address of the kernel. */
static inline void full_dynamic(struct full_image *f, struct image_builder *b)
{
	uint32_t text = f->entry.v & ~0xfffu;

	f->dynamic = image_builder_u32(b, 1);
	image_builder_u32(b, FULL_DYNAMIC_BYTES - 8);
	full_dynamic_group(b, 3, text, 8);
	image_builder_u32(b, 1 << 12 | (f->entry.v + 22 - text));
	image_builder_u32(b, 1 << 12 | 5 << 13 | (f->guarded.v + 4 - text));
	full_dynamic_group(b, 4, text, 4);
	image_builder_u16(b, (uint16_t)(1 << 12 | (f->entry.v + 16 - text)));
	image_builder_u16(b, 0);
	full_dynamic_group(b, 5, text, 4);
	image_builder_u16(b, (uint16_t)(f->switches.v + 21 - text));
	image_builder_u16(b, 0);
	full_dynamic_group(b, 0xfffff78000000000, f->plain.v & ~0xfffu, 4);
	image_builder_u16(b, (uint16_t)(RELOC_DIR64 << 12 | (f->plain.v & 0xfff)));
	image_builder_u16(b, 0);
	store_u32(image_builder_at(b, rva_add(f->config, 0xe0)), f->dynamic.v - f->reloc.v);
	store_u16(image_builder_at(b, rva_add(f->config, 0xe4)),
		  (uint16_t)b->section_count);
}

/* The sites ascend, one block for each page. */
static inline void full_relocs(struct full_image *f, struct image_builder *b)
{
	f->reloc = image_builder_section(b, ".reloc", BUILT_CONST);
	for (uint32_t i = 0, end; i < f->reloc_count; i = end) {
		for (end = i; end < f->reloc_count &&
			      f->relocs[end].v >> 12 == f->relocs[i].v >> 12;)
			end++;
		image_builder_u32(b, f->relocs[i].v & ~0xfffu);
		image_builder_u32(b, 8 + 2 * ((end - i + 1) & ~1u));
		for (uint32_t k = i; k < end; k++)
			image_builder_u16(b, (uint16_t)(RELOC_DIR64 << 12 |
							(f->relocs[k].v & 0xfff)));
		if ((end - i) % 2)
			image_builder_u16(b, 0);
	}
	f->reloc_size = image_builder_here(b).v - f->reloc.v;
	image_builder_directory(b, DIRECTORY_RELOCATION, f->reloc, f->reloc_size);
	full_dynamic(f, b);
}

static inline void full_symbols(struct full_image *f, struct image_builder *b)
{
	static const uint8_t strings[] = {21,  0,   0,   0,   'a', '_', 'l',
					  'o', 'n', 'g', '_', 's', 'y', 'm',
					  'b', 'o', 'l', 0,   'x', 'y', 0};

	uint16_t text = f->variant.data_first ? 2 : 1;

	image_builder_symbol(b, "leaf", f->leaf.v - f->text.v, text, 0x20, 2, 1);
	image_builder_symbol(b, "aux", 99, text, 0, 0, 0);
	image_builder_symbol(b, "filter", f->filter.v - f->text.v, text, 0x20, 3, 0);
	image_builder_symbol(b, "label", f->landing.v - f->text.v, text, 0, 6, 0);
	image_builder_symbol(b, "plain", 8, 2, 0, 3, 0);
	image_builder_symbol(b, "absolute", 0x1234, 0xffff, 0, 3, 0);
	for (size_t i = 0; i < sizeof(strings); i++)
		if (!vec_push(&b->symbols, strings[i]))
			abort();
}

static inline uint32_t full_offset(const uint8_t *bytes, struct rva rva)
{
	const uint8_t *row = bytes + BUILT_SECTIONS;

	while (rva.v - load_u32(row + 12) >= load_u32(row + 16))
		row += 40;
	return load_u32(row + 20) + (rva.v - load_u32(row + 12));
}

/* The file's overlay and signature, and what depends on file offsets. */
static inline void full_finish(struct full_image *f, struct image_builder *b)
{
	uint8_t *bytes = image_builder_finish(b, &f->size);
	uint8_t *entry, *certificate;
	size_t size = (f->size + FULL_OVERLAY_BYTES + 7) & ~(size_t)7;

	f->bytes = calloc(1, size + 16);
	if (!f->bytes)
		abort();
	memcpy(f->bytes, bytes, f->size);
	memset(f->bytes + f->size, 'o', FULL_OVERLAY_BYTES);
	certificate = f->bytes + size;
	memset(certificate, 's', 16);
	store_u32(certificate, 16);
	store_u32(f->bytes + BUILT_DIRECTORIES + 8 * DIRECTORY_CERTIFICATE, (uint32_t)size);
	store_u32(f->bytes + BUILT_DIRECTORIES + 8 * DIRECTORY_CERTIFICATE + 4, 16);
	f->size = size + 16;
	entry = f->bytes + full_offset(f->bytes, f->debug);
	for (int i = 0; i < 2; i++, entry += 28)
		store_u32(entry + 24,
			  full_offset(f->bytes, rva_of(load_u32(entry + 20))));
	free(bytes);
}

/* Of .s0 all is in the file and of .s1 most is zero memory. */
static inline void full_more_sections(struct full_image *f, struct image_builder *b)
{
	for (uint32_t i = 0; i < f->variant.more_sections; i++) {
		const char name[] = {'.', 's', (char)('0' + i), 0};

		image_builder_section(b, name, BUILT_DATA);
		image_builder_fill(b, (uint8_t)i, 16 + i);
		if (i == 1)
			image_builder_virtual_size(b, 0x2345);
	}
}

static inline void full_image_make_as(struct full_image *f,
				      const struct full_variant *variant)
{
	struct image_builder b;

	memset(f, 0, sizeof(*f));
	f->variant = *variant;
	image_builder_init(&b);
	if (variant->section_alignment)
		b.section_alignment = variant->section_alignment;
	if (variant->file_alignment)
		b.file_alignment = variant->file_alignment;
	if (variant->header_rows)
		b.header_rows = variant->header_rows;
	if (variant->data_first) {
		image_builder_section(&b, ".first", BUILT_CONST);
		image_builder_fill(&b, 0x11, 100);
	}
	full_text(f, &b);
	image_builder_section(&b, ".rdata", BUILT_CONST);
	f->table = image_builder_here(&b);
	for (unsigned i = 0; i < 4; i++) /* cases 2 and 3 are one */
		image_builder_u32(&b,
				  f->switches.v + (i < 3 ? 23 + 6 * i : 35) - f->table.v);
	f->plain =
		(image_builder_align(&b, 8), image_builder_put(&b, "some plain data.", 16));
	f->pointer = (image_builder_align(&b, 8), full_va(f, &b, f->tail));
	full_imports(f, &b);
	full_exports(f, &b);
	full_load_config(f, &b);
	full_tls(f, &b);
	full_debug(f, &b);
	full_unwind(f, &b);
	full_more_sections(f, &b);
	full_relocs(f, &b);
	full_symbols(f, &b);
	full_link(f, &b);
	b.entry = f->entry;
	full_finish(f, &b);
	image_builder_release(&b);
}

static inline void full_image_make(struct full_image *f)
{
	const struct full_variant plain = {0};

	full_image_make_as(f, &plain);
}

static inline void full_image_release(struct full_image *f)
{
	free(f->bytes);
	f->bytes = NULL;
}

#endif
