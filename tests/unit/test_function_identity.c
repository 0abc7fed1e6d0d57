/* What of a function stays the same in another build, and what does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "built_graph.h"
#include "graph/function_identity.h"

/* What the builds below differ in. */
struct variant {
	bool shifted;       /* everything stands elsewhere */
	const char *text;   /* that f refers to */
	uint32_t constant;  /* that f reads */
	uint8_t immediate;  /* in f */
	bool calls_twice;
	bool reads_pointer; /* to the text, in place of the constant */
	const char *name;   /* of the callee; NULL: none */
};

static const struct variant plain = {.text = "hello world", .constant = 42, .immediate = 7};

struct identified {
	uint64_t content; /* of f */
	uint32_t callees;
	bool callee_is_g;
};

/* f reads a text's address and a constant, writes a variable, and calls g. */
static struct identified identify(const struct variant *v)
{
	struct built_graph t;
	struct function_identities identities;
	struct identified found;
	struct rva f, g, text, constant, variable;
	uint32_t at;

	built_graph_init(&t);
	if (v->shifted) {
		struct rva pad = CODE(&t, "\x31\xc0\x31\xc0\x31\xc0\x31\xc0\x31\xc0\x31\xc0"
					  "\x31\xc0\x31\xc0\x31\xc0\xc3");

		built_graph_row(&t, pad, 19);
		built_graph_export(&t, pad);
	}
	f = CODE(&t, "\x48\x8d\x0d\0\0\0\0" /* lea rcx, [text] */
		     "\x8b\x15\0\0\0\0"     /* mov edx, [constant] */
		     "\x89\x15\0\0\0\0"     /* mov [variable], edx */
		     "\xe8\0\0\0\0"         /* call g */
		     "\xe8\0\0\0\0"         /* call g, or the code behind */
		     "\xb0\0\xc3");         /* mov al, immediate */
	g = CODE(&t, "\x31\xc0\xc3");
	image_builder_at(&t.b, rva_add(f, 30))[0] = v->immediate;
	built_graph_row(&t, f, 32);
	built_graph_row(&t, g, 3);
	built_graph_export(&t, f);
	built_graph_point(&t, rva_add(f, 20), g);
	built_graph_point(&t, rva_add(f, 25), v->calls_twice ? g : f);
	image_builder_section(&t.b, ".rdata", BUILT_CONST);
	if (v->shifted)
		image_builder_put(&t.b, "other data before", 18);
	text = image_builder_put(&t.b, v->text, strlen(v->text) + 1);
	while (image_builder_here(&t.b).v % 4)
		image_builder_put(&t.b, "", 1);
	constant = v->reads_pointer ? built_graph_pointer(&t, text)
				    : image_builder_u32(&t.b, v->constant);
	image_builder_section(&t.b, ".data", BUILT_DATA);
	variable = image_builder_u32(&t.b, v->shifted);
	built_graph_point(&t, rva_add(f, 3), text);
	built_graph_point(&t, rva_add(f, 9), constant);
	built_graph_point(&t, rva_add(f, 15), variable);
	built_graph_discover(&t);
	t.graph.functions.data[graph_function_at(&t.graph, g)].name = v->name;
	assert_int_equal(function_identities_make(&t.graph, &identities, NULL), STATUS_OK);
	at = function_identity_at(&identities, f);
	assert_int_not_equal(at, NO_FUNCTION);
	found = (struct identified){
		.content = identities.list[at].content,
		.callees = identities.list[at].callee_count,
		.callee_is_g = identities.callees[identities.list[at].first_callee].v == g.v};
	function_identities_release(&identities);
	built_graph_release(&t);
	return found;
}

static void addresses_do_not_matter(void **state)
{
	struct variant shifted = plain;
	struct identified a = identify(&plain), b;

	(void)state;
	shifted.shifted = true;
	b = identify(&shifted);
	assert_int_equal(a.content, b.content);
	assert_int_equal(a.callees, 1);
	assert_true(a.callee_is_g && b.callee_is_g);
}

static void what_is_meant_does(void **state)
{
	const uint64_t content = identify(&plain).content;
	struct variant v = plain;

	(void)state;
	v.text = "hello there";
	assert_int_not_equal(identify(&v).content, content);
	v = plain;
	v.constant = 43;
	assert_int_not_equal(identify(&v).content, content);
	v = plain;
	v.immediate = 8;
	assert_int_not_equal(identify(&v).content, content);
	v = plain;
	v.calls_twice = true;
	assert_int_not_equal(identify(&v).content, content);
	v = plain;
	v.name = "g";
	assert_int_not_equal(identify(&v).content, content);
}

/* Bytes that are no text are data like any other: what they hold may be addresses. */
static void data_is_not_read_as_text(void **state)
{
	struct variant v = plain, w = plain;

	(void)state;
	v.text = "\x01\x02\x03\x04";
	w.text = "\x05\x06\x07\x08";
	assert_int_equal(identify(&v).content, identify(&w).content);
}

/* A pointer to data is another in each build too. */
static void pointers_to_data_are_addresses(void **state)
{
	struct variant v = plain, w;

	(void)state;
	v.reads_pointer = true;
	w = v;
	w.shifted = true;
	assert_int_equal(identify(&v).content, identify(&w).content);
}

/* As often as it is referred to. */
static void callees_repeat(void **state)
{
	struct variant v = plain;

	(void)state;
	v.calls_twice = true;
	assert_int_equal(identify(&v).callees, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_do_not_matter),
		cmocka_unit_test(what_is_meant_does),
		cmocka_unit_test(data_is_not_read_as_text),
		cmocka_unit_test(pointers_to_data_are_addresses),
		cmocka_unit_test(callees_repeat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
