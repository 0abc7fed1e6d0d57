/* Words that may be addresses, in images without base relocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "built_graph.h"
#include "random_relink.h"

enum { DISCARDABLE = 0x02000000, LOW_BASE = 0x400000, FUNCTIONS = 6, SEEDS = 16 };

/* An image of functions of three bytes with rows, followed by a section of data. */
struct fixed {
	struct built_graph t;
	struct rva f[FUNCTIONS];
};

static void begin(struct fixed *x, uint64_t base)
{
	built_graph_init(&x->t);
	x->t.b.image_base = base;
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		x->f[i] = CODE(&x->t, "\x31\xc0\xc3");
		built_graph_row(&x->t, x->f[i], 3);
	}
}

static void data(struct fixed *x)
{
	image_builder_section(&x->t.b, ".data", BUILT_DATA);
}

/* Discovers, and holds the functions named by letters in `pinned` for pinned so. */
static void expect(struct fixed *x, const char *pinned)
{
	built_graph_discover(&x->t);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		uint32_t pins = strchr(pinned, 'a' + (int)i) ? PIN(ABSOLUTE_ADDRESS) : 0;

		if (PINS(&x->t, x->f[i]) != pins)
			fail_msg("function %c: pins 0x%x", 'a' + i, PINS(&x->t, x->f[i]));
	}
	built_graph_release(&x->t);
}

static void test_words_in_data(void **unused)
{
	struct fixed x;

	(void)unused;
	begin(&x, BUILT_IMAGE_BASE);
	data(&x);
	image_builder_va(&x.t.b, x.f[0]);
	image_builder_va(&x.t.b, rva_add(x.f[1], 2)); /* an instruction in it */
	image_builder_put(&x.t.b, "\x07", 1);
	image_builder_va(&x.t.b, x.f[2]);                                 /* unaligned */
	image_builder_u32(&x.t.b, (uint32_t)BUILT_IMAGE_BASE + x.f[3].v); /* half of one */
	image_builder_u32(&x.t.b, 0);
	expect(&x, "abc");
}

/* Base relocations say that the words are none. */
static void test_with_relocations(void **unused)
{
	struct fixed x;

	(void)unused;
	begin(&x, BUILT_IMAGE_BASE);
	data(&x);
	built_graph_pointer(&x.t, x.f[1]);
	image_builder_va(&x.t.b, x.f[0]);
	expect(&x, "");
}

static void test_short_words(void **unused)
{
	struct fixed x;

	(void)unused;
	begin(&x, LOW_BASE);
	data(&x);
	image_builder_put(&x.t.b, "\x07", 1);
	image_builder_u32(&x.t.b, LOW_BASE + x.f[0].v);
	image_builder_u32(&x.t.b, 7);
	image_builder_u32(&x.t.b, LOW_BASE + x.f[2].v);
	expect(&x, "ac");
}

/* Addresses of the upper 2 GiB, in words of 4 bytes whose sign is extended. */
static void test_words_with_a_sign(void **unused)
{
	const uint64_t base = 0xffffffff80000000;
	struct fixed x;

	(void)unused;
	begin(&x, base);
	data(&x);
	image_builder_u32(&x.t.b, (uint32_t)base + x.f[4].v);
	image_builder_u32(&x.t.b, 7);
	expect(&x, "e");
}

static void test_dwarf(void **unused)
{
	struct fixed x;

	(void)unused;
	begin(&x, BUILT_IMAGE_BASE);
	image_builder_section(&x.t.b, ".debug_x", BUILT_CONST | DISCARDABLE);
	image_builder_va(&x.t.b, x.f[0]);
	image_builder_section(&x.t.b, ".debug_y", BUILT_CONST);
	image_builder_va(&x.t.b, x.f[1]);
	expect(&x, "b");
}

/* Wherever an instruction may have a field of 32 bits, or one of 64. */
static void test_operands(void **unused)
{
	static const struct {
		const char *code;
		uint8_t size, field;
		bool wide;
	} cases[] = {
		{"\xbf\0\0\0\0", 5, 1, false},                 /* mov edi, f */
		{"\x48\x81\xf8\0\0\0\0", 7, 3, false},         /* cmp rax, f */
		{"\x8b\x04\x85\0\0\0\0", 7, 3, false},         /* mov eax, [rax*4 + f] */
		{"\x80\x3c\x25\0\0\0\0\x05", 8, 3, false},     /* cmp byte [f], 5 */
		{"\x66\xc7\x80\0\0\0\0\x05\x06", 9, 3, false}, /* mov word [rax+f], 605h */
		{"\xc7\x80\0\0\0\0\x05\x06\x07\x08", 10, 2, false}, /* mov dword */
		{"\x48\xb8\0\0\0\0\0\0\0\0", 10, 2, true},          /* mov rax, f */
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixed x;
		struct rva user;

		begin(&x, LOW_BASE);
		user = image_builder_put(&x.t.b, cases[i].code, cases[i].size);
		image_builder_put(&x.t.b, "\xc3", 1);
		built_graph_row(&x.t, user, cases[i].size + 1u);
		store_u32(image_builder_at(&x.t.b, rva_add(user, cases[i].field)),
			  LOW_BASE + x.f[3].v);
		if (cases[i].wide) /* nothing but a word of 8 bytes */
			store_u32(image_builder_at(&x.t.b, rva_add(user, 6)), 0);
		expect(&x, "d");
	}
}

/* An instruction whose opcode and operand look like an address. */
static void test_chance_in_code(void **unused)
{
	struct fixed x;
	struct rva user, named;

	(void)unused;
	begin(&x, LOW_BASE);
	user = CODE(&x.t, "\x31\xc0\x0f\x1f\x40\x00\xc3"); /* nop [rax]: 401f0fh */
	built_graph_row(&x.t, user, 7);
	assert_int_equal(x.f[0].v, 0x1000);
	while (image_builder_here(&x.t.b).v < 0x1f0f)
		image_builder_put(&x.t.b, "\xcc", 1);
	named = image_builder_put(&x.t.b, "\x31\xc0\xc3", 3);
	built_graph_row(&x.t, named, 3);
	built_graph_discover(&x.t);
	assert_int_equal(PINS(&x.t, named), 0);
	built_graph_release(&x.t);
}

/* Bytes that are not understood may hold a word anywhere. */
static void test_unknown_bytes(void **unused)
{
	struct fixed x;
	struct rva user;

	(void)unused;
	begin(&x, LOW_BASE);
	user = image_builder_put(&x.t.b, "\x31\xc0\xc3\x06", 4); /* 06 is no instruction */
	image_builder_u32(&x.t.b, LOW_BASE + x.f[5].v);
	image_builder_put(&x.t.b, "\x06", 1);
	built_graph_row(&x.t, user, 9);
	expect(&x, "f");
}

/* Code that only such a word leads to. */
static void test_word_leads_to_code(void **unused)
{
	struct fixed x;
	struct rva leaf;

	(void)unused;
	begin(&x, BUILT_IMAGE_BASE);
	leaf = CODE(&x.t, "\x31\xc0\x31\xc9\xc3");
	data(&x);
	image_builder_align(&x.t.b, 8);
	image_builder_va(&x.t.b, leaf);
	built_graph_discover(&x.t);
	assert_int_equal(built_graph_function(&x.t, leaf)->kind, FUNCTION_LEAF);
	assert_int_equal(PINS(&x.t, leaf), PIN(ABSOLUTE_ADDRESS));
	built_graph_release(&x.t);
}

/* What the verifier says of a random relink of an image some of whose pins were taken
 * away, so that what a word names may move. */
static enum status verify_without_pins(struct fixed *x, uint64_t seed, bool *ret_moved)
{
	struct verify_report report;
	struct relinked relinked;
	struct diag diag;
	enum status status;

	built_graph_discover(&x->t);
	for (uint32_t i = 0; i < x->t.graph.functions.len; i++)
		x->t.graph.functions.data[i].pins = 0;
	for (uint32_t i = 0; i < x->t.graph.blocks.len; i++)
		x->t.graph.blocks.data[i].pins = 0;
	random_relink(&x->t.graph, seed, PLACEMENT_EXCHANGE, 0, &relinked);
	*ret_moved = false;
	for (uint32_t i = 0; i < relinked.moves.len; i++)
		*ret_moved = *ret_moved || relinked.moves.data[i].from.v == x->f[0].v;
	status = random_relink_verify(&x->t.graph, &relinked, &report, &diag);
	relinked_release(&relinked);
	built_graph_release(&x->t);
	return status;
}

static void put_nothing(struct fixed *x)
{
	image_builder_va(&x->t.b, rva_of(0x100000));
}

static void put_wide(struct fixed *x)
{
	image_builder_put(&x->t.b, "\x07", 1);
	image_builder_va(&x->t.b, x->f[0]);
}

static void put_short(struct fixed *x)
{
	image_builder_put(&x->t.b, "\x07\x07\x07", 3);
	image_builder_u32(&x->t.b, LOW_BASE + x->f[0].v);
	image_builder_u32(&x->t.b, 7);
}

static void test_the_verifier_sees_them(void **unused)
{
	static const struct {
		uint64_t base;
		void (*put)(struct fixed *);
		bool fails;
	} cases[] = {
		{BUILT_IMAGE_BASE, put_nothing, false},
		{LOW_BASE, put_nothing, false},
		{BUILT_IMAGE_BASE, put_wide, true},
		{LOW_BASE, put_wide, true},
		{LOW_BASE, put_short, true},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned moves = 0;

		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct fixed x;
			enum status status;
			bool moved;

			begin(&x, cases[i].base);
			data(&x);
			cases[i].put(&x);
			status = verify_without_pins(&x, seed, &moved);
			moves += moved;
			if (status != (moved && cases[i].fails ? STATUS_VERIFY : STATUS_OK))
				fail_msg("case %zu, seed %u: %d", i, (unsigned)seed,
					 (int)status);
		}
		assert_true(moves > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_in_data),
		cmocka_unit_test(test_with_relocations),
		cmocka_unit_test(test_short_words),
		cmocka_unit_test(test_words_with_a_sign),
		cmocka_unit_test(test_dwarf),
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_chance_in_code),
		cmocka_unit_test(test_unknown_bytes),
		cmocka_unit_test(test_word_leads_to_code),
		cmocka_unit_test(test_the_verifier_sees_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
