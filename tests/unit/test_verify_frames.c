/* The verifier over C++ exception data: it accepts what the writer makes, and finds each
 * fault that is planted, and each field that discovery would miss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frame_image.h"
#include "random_relink.h"

enum { SEEDS = 8 };

/* The original, and one relink of it. */
struct trial {
	struct frame_image i;
	struct relinked relinked;
};

static void relink(struct trial *t, uint64_t seed, enum placement placement)
{
	random_relink(&t->i.t.graph, seed, placement, 0, &t->relinked);
}

static void open_trial(struct trial *t)
{
	memset(&t->relinked, 0, sizeof(t->relinked));
	frame_image_make(&t->i);
	built_graph_discover(&t->i.t);
}

static void close_trial(struct trial *t)
{
	relinked_release(&t->relinked);
	built_graph_release(&t->i.t);
}

static enum status verify(struct trial *t, struct diag *diag)
{
	struct verify_report report = {0};

	return random_relink_verify(&t->i.t.graph, &t->relinked, &report, diag);
}

static struct rva moved(const struct trial *t, struct rva rva)
{
	for (uint32_t i = 0; i < t->relinked.moves.len; i++) {
		const struct move *move = &t->relinked.moves.data[i];

		if (rva_in(rva, move->from, move->size))
			return rva_add(move->to, rva.v - move->from.v);
	}
	return rva;
}

/* The output's byte at `rva`, which is in data. */
static uint8_t *at(struct trial *t, struct rva rva)
{
	const uint8_t *byte = image_bytes(&t->i.t.built.image, rva, 1);

	/* Sections have kept their places in the file, unless the headers have grown. */
	return t->relinked.bytes + (byte - t->i.t.built.image.bytes);
}

static void test_accepts_relinks(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3 * SEEDS; seed++) {
		struct trial t;
		char text[2048];
		struct diag diag;

		open_trial(&t);
		relink(&t, seed, seed % 2 ? PLACEMENT_EXCHANGE : PLACEMENT_APPEND);
		assert_true(t.relinked.moves.len > 0);
		if (verify(&t, &diag) != STATUS_OK) {
			diag_format(&diag, text, sizeof(text));
			fail_msg("seed %u: %s", (unsigned)seed, text);
		}
		close_trial(&t);
	}
}

/* The map of the output, whatever the order of the blocks, says what it said. */
static void test_state_map_is_sorted(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct trial t;
		uint8_t *rows;

		open_trial(&t);
		relink(&t, seed, PLACEMENT_EXCHANGE);
		rows = at(&t, t.i.states3);
		for (int k = 1; k < 4; k++)
			assert_true(load_u32(rows + 8 * k) > load_u32(rows + 8 * k - 8));
		for (int k = 0; k < 4; k++) {
			uint32_t ip = load_u32(rows + 8 * k),
				 row = load_u32(rows + 8 * k + 4);
			uint32_t f = moved(&t, t.i.f).v;

			if (ip == f || ip == f + 15)
				assert_int_equal(row, UINT32_MAX);
			else if (ip == f + 9)
				assert_int_equal(row, 0);
			else
				assert_int_equal(ip, moved(&t, t.i.catch3).v);
		}
		close_trial(&t);
	}
}

/* A row that stands behind its unit says nothing, wherever the unit goes. */
static void test_stray_rows(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3 * SEEDS; seed++) {
		struct trial t = {0};
		char text[2048];
		struct diag diag;

		frame_image_make(&t.i);
		frame_image_set(&t.i, rva_add(t.i.states3, 16), t.i.f.v + 24);
		built_graph_discover(&t.i.t);
		relink(&t, seed, PLACEMENT_EXCHANGE);
		if (verify(&t, &diag) != STATUS_OK) {
			diag_format(&diag, text, sizeof(text));
			fail_msg("seed %u: %s", (unsigned)seed, text);
		}
		close_trial(&t);
	}
}

static void rows_exchanged(struct trial *t)
{
	uint8_t *rows = at(t, t->i.states3), copy[8];

	memcpy(copy, rows, 8);
	memcpy(rows, rows + 8, 8);
	memcpy(rows + 8, copy, 8);
}

static void row_off(struct trial *t)
{
	rows_exchanged(t);
	rows_exchanged(t);
	*at(t, rva_add(t->i.states3, 16)) += 1;
}

static void row_state(struct trial *t)
{
	uint8_t *state = at(t, rva_add(t->i.states3, 12));

	store_u32(state, load_u32(state) == 1 ? 0 : 1);
}

static void row_repeated(struct trial *t)
{
	memcpy(at(t, rva_add(t->i.states3, 8)), at(t, t->i.states3), 8);
}

static void stale(struct trial *t, struct rva site, struct rva target)
{
	store_u32(at(t, site), moved(t, target).v + 0x10);
}

static void action3_stale(struct trial *t)
{
	stale(t, rva_add(t->i.unwinds3, 4), t->i.cleanup);
}

static void catch3_stale(struct trial *t)
{
	stale(t, rva_add(t->i.catches3, 12), t->i.catch3);
}

static void next3_changed(struct trial *t)
{
	store_u32(at(t, rva_add(t->i.unwinds3, 8)), 0);
}

static void try3_changed(struct trial *t)
{
	store_u32(at(t, rva_add(t->i.tries3, 4)), 1);
}

static void adjectives3_changed(struct trial *t)
{
	*at(t, t->i.catches3) ^= 8;
}

static void frame3_changed(struct trial *t)
{
	*at(t, rva_add(t->i.catches3, 16)) ^= 8;
}

static void count3_changed(struct trial *t)
{
	*at(t, rva_add(t->i.info3, 20)) -= 1;
}

static void magic3_changed(struct trial *t)
{
	*at(t, t->i.info3) -= 1;
}

static void info3_changed(struct trial *t)
{
	*at(t, t->i.data3) += 4;
}

static void action4_stale(struct trial *t)
{
	stale(t, rva_add(t->i.unwinds4, 2), t->i.cleanup);
}

static void catch4_stale(struct trial *t)
{
	stale(t, rva_add(t->i.catches4, 3), t->i.catch4);
}

static void continuation4_stale(struct trial *t)
{
	stale(t, t->i.continuation4, t->i.resume4b);
}

static void continuation4_changed(struct trial *t)
{
	*at(t, rva_add(t->i.catches4, 7)) += 4;
}

static void state4_changed(struct trial *t)
{
	*at(t, rva_add(t->i.states4, 2)) ^= 2;
}

static void offset4_changed(struct trial *t)
{
	*at(t, rva_add(t->i.states4, 1)) += 2;
}

static void next4_changed(struct trial *t)
{
	*at(t, rva_add(t->i.unwinds4, 6)) = 0x28;
}

static void try4_changed(struct trial *t)
{
	*at(t, rva_add(t->i.tries4, 2)) = 2;
}

static void header4_changed(struct trial *t)
{
	*at(t, t->i.info4) &= 0xdf;
}

static void segment_stale(struct trial *t)
{
	stale(t, rva_add(t->i.segments, 1), t->i.first);
}

static void segments_exchanged(struct trial *t)
{
	uint8_t *a = at(t, rva_add(t->i.segments, 1)), copy[4];

	memcpy(copy, a, 4);
	memcpy(a, a + 8, 4);
	memcpy(a + 8, copy, 4);
}

static void label_stale(struct trial *t)
{
	stale(t, t->i.labels, rva_add(t->i.labelled, 4));
}

static void number_changed(struct trial *t)
{
	*at(t, rva_add(t->i.labels, 8)) += 8;
}

static void cookie_changed(struct trial *t)
{
	*at(t, t->i.cookie) -= 8;
}

struct fault {
	const char *name;
	void (*plant)(struct trial *);
	const char *message; /* part of what the verifier says */
};

static const struct fault faults[] = {
	{"a state map, unsorted", rows_exchanged, "out of order"},
	{"a row of a state map, off by one", row_off, "the state of an instruction"},
	{"the state in a row", row_state, "the state of an instruction"},
	{"a row twice", row_repeated, "out of order"},
	{"an action", action3_stale, "target of a reference"},
	{"a funclet", catch3_stale, "target of a reference"},
	{"the next state", next3_changed, "next state of an unwind map"},
	{"a try block", try3_changed, "try block has changed"},
	{"the adjectives of a catch", adjectives3_changed, "adjectives of a catch"},
	{"the frame of a catch", frame3_changed, "a byte that nothing explains"},
	{"the rows of a state map", count3_changed, ""},
	{"a magic number", magic3_changed, ""},
	{"the RVA of a FuncInfo", info3_changed, ""},
	{"an action, compressed", action4_stale, "target of a reference"},
	{"a funclet, compressed", catch4_stale, "target of a reference"},
	{"a continuation", continuation4_stale, "target of a reference"},
	{"a relative continuation", continuation4_changed, ""},
	{"a state, compressed", state4_changed, "state of an instruction"},
	{"where a state begins", offset4_changed, "state of an instruction"},
	{"the next state, compressed", next4_changed, ""},
	{"a try block, compressed", try4_changed, ""},
	{"a FuncInfo4's header", header4_changed, "FuncInfo has changed"},
	{"a segment", segment_stale, "target of a reference"},
	{"two segments", segments_exchanged, "target of a reference"},
	{"a label for a handler", label_stale, "target of a reference"},
	{"a number for a handler", number_changed, "a byte that nothing explains"},
	{"the place of a cookie", cookie_changed, "a byte that nothing explains"},
};

static void plant(const struct fault *fault, uint64_t seed)
{
	char text[2048];
	struct diag diag;
	struct trial t;
	enum status status;

	open_trial(&t);
	relink(&t, seed, PLACEMENT_EXCHANGE);
	fault->plant(&t);
	fix_checksum(t.relinked.bytes, t.relinked.size);
	status = verify(&t, &diag);
	diag_format(&diag, text, sizeof(text));
	if (status != STATUS_VERIFY || !strstr(diag.message, fault->message))
		fail_msg("%s, seed %u: %s: %s", fault->name, (unsigned)seed,
			 status_name(status), text);
	close_trial(&t);
}

static void test_finds_planted_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++)
			plant(&faults[i], seed);
}

static struct rva action3(const struct frame_image *i)
{
	return rva_add(i->unwinds3, 4);
}

static struct rva catch3(const struct frame_image *i)
{
	return rva_add(i->catches3, 12);
}

static struct rva row3(const struct frame_image *i)
{
	return rva_add(i->states3, 8);
}

static struct rva action4(const struct frame_image *i)
{
	return rva_add(i->unwinds4, 2);
}

static struct rva catch4(const struct frame_image *i)
{
	return rva_add(i->catches4, 3);
}

static struct rva continuation4(const struct frame_image *i)
{
	return i->continuation4;
}

static struct rva label(const struct frame_image *i)
{
	return i->labels;
}

static struct rva segment4(const struct frame_image *i)
{
	return rva_add(i->segments, 9);
}

/* Fields that discovery has missed, so that nobody mends them. */
static const struct missed {
	struct rva (*site)(const struct frame_image *);
	const char *message;
} missed[] = {
	{action3, "action of an unwind map"}, {catch3, "funclet of a catch"},
	{row3, "state of an instruction"},    {action4, "action of an unwind map"},
	{catch4, "funclet of a catch"},       {continuation4, "where a catch goes on"},
	{label, "label for a handler"},       {segment4, "begin of a separated segment"},
};

/* False when nothing has moved that the field names. */
static bool try_missed(const struct missed *field, uint64_t seed)
{
	struct trial t;
	struct diag diag;
	struct rva site, target;
	uint32_t index;
	bool has_moved;

	open_trial(&t);
	site = field->site(&t.i);
	index = graph_ref_from(&t.i.t.graph, site);
	assert_int_equal(t.i.t.graph.refs.data[index].site.v, site.v);
	target = t.i.t.graph.refs.data[index].target;
	memmove(&t.i.t.graph.refs.data[index], &t.i.t.graph.refs.data[index + 1],
		(t.i.t.graph.refs.len - index - 1) * sizeof(*t.i.t.graph.refs.data));
	t.i.t.graph.refs.len--;
	relink(&t, seed, PLACEMENT_EXCHANGE);
	has_moved = moved(&t, target).v != target.v;
	if (has_moved) {
		assert_int_equal(verify(&t, &diag), STATUS_VERIFY);
		if (!strstr(diag.message, field->message))
			fail_msg("%s: %s", field->message, diag.message);
	}
	close_trial(&t);
	return has_moved;
}

static void test_finds_what_discovery_misses(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(missed) / sizeof(missed[0]); i++) {
		int tried = 0;

		for (uint64_t seed = 1; seed <= 4 * SEEDS; seed++)
			tried += try_missed(&missed[i], seed);
		assert_true(tried > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepts_relinks),
		cmocka_unit_test(test_state_map_is_sorted),
		cmocka_unit_test(test_stray_rows),
		cmocka_unit_test(test_finds_planted_faults),
		cmocka_unit_test(test_finds_what_discovery_misses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
