/* What exception data leads to, and which handlers are understood. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "built_graph.h"

/* Two functions with a handler each. */
struct handled {
	struct built_graph t;
	struct rva f, pad, g, handler;
	struct rva handler_field; /* of f's unwind information */
};

/* Begins the image; f is `call [handler]... ret` with code at `pad` that nothing but
 * exception data leads to. */
static void begin(struct handled *h)
{
	built_graph_init(&h->t);
	h->f = CODE(&h->t, "\xe8\0\0\0\0\xc3"       /* call g; ret */
			   "\x31\xc0\x31\xdb\xc3"); /* pad */
	h->pad = rva_add(h->f, 6);
	h->g = CODE(&h->t, "\x31\xc0\xc3");
	h->handler = CODE(&h->t, "\x31\xc0\xc3");
	built_graph_point(&h->t, rva_add(h->f, 1), h->g);
	built_graph_row(&h->t, h->f, 11);
	built_graph_row(&h->t, h->g, 3);
	built_graph_row(&h->t, h->handler, 3);
	built_graph_export(&h->t, h->f);
	image_builder_section(&h->t.b, ".xdata1", BUILT_CONST);
	h->t.rows[0].unwind = image_builder_u32(&h->t.b, 1 | UNWIND_EHANDLER << 3);
	h->handler_field = image_builder_u32(&h->t.b, h->handler.v);
}

/* Begins g's, which has the same handler. */
static void second(struct handled *h)
{
	image_builder_align(&h->t.b, 4);
	h->t.rows[1].unwind = image_builder_u32(&h->t.b, 1 | UNWIND_EHANDLER << 3);
	image_builder_u32(&h->t.b, h->handler.v);
}

static struct rva put_scope(struct handled *h, struct rva from, struct rva to,
			    uint32_t handler, uint32_t target)
{
	struct rva table = image_builder_u32(&h->t.b, 1);

	image_builder_u32(&h->t.b, from.v);
	image_builder_u32(&h->t.b, to.v);
	image_builder_u32(&h->t.b, handler);
	image_builder_u32(&h->t.b, target);
	return table;
}

static void test_scope_table(void **unused)
{
	struct handled h;
	struct rva table;

	(void)unused;
	begin(&h);
	table = put_scope(&h, h.f, rva_add(h.f, 5), 1, h.pad.v);
	built_graph_discover(&h.t);
	assert_int_equal(PINS(&h.t, h.f), 0);
	assert_int_equal(LEADS(&h.t, h.handler_field), h.handler.v);
	assert_true(built_graph_ref(&h.t, h.handler_field)->enters);
	assert_int_equal(LEADS(&h.t, rva_add(table, 4)), h.f.v);
	assert_int_equal(LEADS(&h.t, rva_add(table, 8)), h.f.v + 5);
	assert_int_equal(built_graph_ref(&h.t, rva_add(table, 8))->kind, REF_RVA_END);
	assert_null(built_graph_ref(&h.t, rva_add(table, 12))); /* EXECUTE_HANDLER */
	assert_int_equal(LEADS(&h.t, rva_add(table, 16)), h.pad.v);
	built_graph_release(&h.t);
}

static void test_scope_table_with_a_filter(void **unused)
{
	struct handled h;
	struct rva table;

	(void)unused;
	begin(&h);
	table = put_scope(&h, h.f, rva_add(h.f, 5), h.g.v, 0);
	built_graph_discover(&h.t);
	assert_int_equal(PINS(&h.t, h.f), 0);
	assert_int_equal(LEADS(&h.t, rva_add(table, 12)), h.g.v);
	assert_true(built_graph_ref(&h.t, rva_add(table, 12))->enters);
	assert_null(built_graph_ref(&h.t, rva_add(table, 16)));
	built_graph_release(&h.t);
}

/* clang writes an empty table for a __try that cannot fail; what is empty for every user
 * might be anything. */
static void test_empty_scope_tables(void **unused)
{
	for (unsigned others = 0; others < 2; others++) {
		struct handled h;
		struct rva table = {0};

		begin(&h);
		if (others)
			table = put_scope(&h, h.f, rva_add(h.f, 5), 1, h.pad.v);
		else
			image_builder_u32(&h.t.b, 0);
		second(&h);
		image_builder_u32(&h.t.b, 0);
		built_graph_discover(&h.t);
		assert_int_equal(h.t.graph.handlers.len, 2);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(h.t.graph.handlers.data[i].form == HANDLER_SCOPES,
					 others);
		if (others) {
			assert_int_equal(LEADS(&h.t, rva_add(table, 4)), h.f.v);
			assert_int_equal(PINS(&h.t, h.f) | PINS(&h.t, h.g), 0);
		}
		built_graph_release(&h.t);
	}
	(void)unused;
}

/* One user whose data is no scope table: then the handler is something else, and the
 * other's data only looks like one. */
static void test_all_users_decide(void **unused)
{
	struct handled h;
	struct rva table;

	(void)unused;
	begin(&h);
	table = put_scope(&h, h.f, rva_add(h.f, 5), 1, h.pad.v);
	second(&h);
	image_builder_u32(&h.t.b, 0x12345678);
	built_graph_discover(&h.t);
	assert_true(PINS(&h.t, h.f) & PIN(UNKNOWN_HANDLER));
	assert_true(PINS(&h.t, h.g) & PIN(UNKNOWN_HANDLER));
	assert_int_equal(PINS(&h.t, h.handler), 0);
	assert_null(built_graph_ref(&h.t, rva_add(table, 4)));
	built_graph_release(&h.t);
}

/* Scopes of another function; no compiler writes those, nor an empty table. */
static void test_odd_scope_tables(void **unused)
{
	struct handled h;

	(void)unused;
	begin(&h);
	put_scope(&h, h.g, rva_add(h.g, 3), 1, h.pad.v);
	built_graph_discover(&h.t);
	assert_true(PINS(&h.t, h.f) & PIN(UNKNOWN_HANDLER));
	built_graph_release(&h.t);
	begin(&h);
	image_builder_u32(&h.t.b, 0);
	image_builder_u32(&h.t.b, h.g.v + 2); /* what may stand behind */
	built_graph_discover(&h.t);
	assert_true(PINS(&h.t, h.f) & PIN(UNKNOWN_HANDLER));
	built_graph_release(&h.t);
}

/* Omitted encodings, uleb128 call sites: one with a landing pad `pad` bytes into f. */
static void put_lsda(struct handled *h, uint8_t pad)
{
	const uint8_t bytes[] = {0xff, 0xff, 0x01, 4, 0, 5, pad, 0};

	image_builder_put(&h->t.b, bytes, sizeof(bytes));
}

static void test_lsda(void **unused)
{
	struct handled h;

	(void)unused;
	begin(&h);
	put_lsda(&h, 6);
	built_graph_discover(&h.t);
	assert_int_equal(PINS(&h.t, h.f), 0);
	assert_int_equal(graph_code_state(&h.t.graph, h.pad) & CODE_STATE, CODE_START);
	assert_true(graph_code_state(&h.t.graph, h.pad) & CODE_ENTERED);
	built_graph_release(&h.t);
}

static void test_lsda_with_a_pad_outside(void **unused)
{
	struct handled h;

	(void)unused;
	begin(&h);
	put_lsda(&h, 16); /* g */
	built_graph_discover(&h.t);
	assert_true(PINS(&h.t, h.f) & PIN(UNKNOWN_HANDLER));
	assert_int_equal(PINS(&h.t, h.g), 0);
	built_graph_release(&h.t);
}

/* Landing pads that count from somewhere else than the function. */
static void test_lsda_with_a_start(void **unused)
{
	struct handled h;
	uint8_t bytes[] = {0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0x01, 4, 0, 5, 6, 0};

	(void)unused;
	begin(&h);
	store_u64(bytes + 1, BUILT_IMAGE_BASE + h.g.v);
	image_builder_put(&h.t.b, bytes, sizeof(bytes));
	built_graph_discover(&h.t);
	assert_true(PINS(&h.t, h.f) & PIN(UNKNOWN_HANDLER));
	built_graph_release(&h.t);
}

static void test_handler_outside_the_code(void **unused)
{
	struct handled h;

	(void)unused;
	begin(&h);
	store_u32(image_builder_at(&h.t.b, h.handler_field), 0x10);
	image_builder_u32(&h.t.b, 0);
	assert_int_equal(built_graph_try(&h.t), STATUS_MALFORMED);
	built_graph_release(&h.t);
}

/* Observed: OpenSSL 3.0's rsaz-2k-avx512 in node.exe 18. */
static void test_handler_in_data(void **unused)
{
	struct handled h;
	struct rva data;

	(void)unused;
	begin(&h);
	data = put_scope(&h, h.f, rva_add(h.f, 5), 1, h.pad.v);
	store_u32(image_builder_at(&h.t.b, h.handler_field), data.v);
	built_graph_discover(&h.t);
	assert_true(PINS(&h.t, h.f) & PIN(UNKNOWN_HANDLER));
	assert_int_equal(PINS(&h.t, h.g), 0);
	assert_null(built_graph_ref(&h.t, h.handler_field));
	built_graph_release(&h.t);
}

/* What an unknown unwind code says may not hold elsewhere; epilogs of version 2 do. */
static void test_unwind_codes(void **unused)
{
	struct built_graph t;
	struct rva f, g;

	(void)unused;
	built_graph_init(&t);
	f = CODE(&t, "\x31\xc0\xc3");
	g = CODE(&t, "\x31\xdb\xc3");
	built_graph_row(&t, f, 3);
	built_graph_row(&t, g, 3);
	built_graph_export(&t, f);
	built_graph_export(&t, g);
	image_builder_section(&t.b, ".xdata1", BUILT_CONST);
	t.rows[0].unwind = image_builder_put(&t.b, "\x01\x00\x01\x00\x00\x0b\0\0", 8);
	t.rows[1].unwind = image_builder_put(&t.b, "\x02\x00\x02\x00\x01\x16\x00\x06", 8);
	built_graph_discover(&t);
	assert_true(PINS(&t, f) & PIN(UNKNOWN_HANDLER));
	assert_int_equal(PINS(&t, g), 0);
	built_graph_release(&t);
}

static void test_row_outside_the_code(void **unused)
{
	struct built_graph t;
	struct rva data;

	(void)unused;
	built_graph_init(&t);
	CODE(&t, "\xc3");
	data = image_builder_section(&t.b, ".rdata", BUILT_CONST);
	image_builder_u64(&t.b, 0xc3);
	built_graph_row(&t, data, 1);
	assert_int_equal(built_graph_try(&t), STATUS_MALFORMED);
	built_graph_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scope_table),
		cmocka_unit_test(test_scope_table_with_a_filter),
		cmocka_unit_test(test_empty_scope_tables),
		cmocka_unit_test(test_all_users_decide),
		cmocka_unit_test(test_odd_scope_tables),
		cmocka_unit_test(test_lsda),
		cmocka_unit_test(test_lsda_with_a_pad_outside),
		cmocka_unit_test(test_lsda_with_a_start),
		cmocka_unit_test(test_handler_outside_the_code),
		cmocka_unit_test(test_handler_in_data),
		cmocka_unit_test(test_unwind_codes),
		cmocka_unit_test(test_row_outside_the_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
