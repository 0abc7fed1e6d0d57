#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../reorder/chosen_order.h"
#include "base/file.h"
#include "made_graph.h"
#include "trace/db.h"

enum { BLOCKS = 6, STRIDE = 64, SIZE = 32 };

/* Six functions at 0x1000, 0x1040, ..., and a database beside. */
struct stage {
	struct made_graph made;
	struct sha256 hash;
	char path[64];
	struct db *db;
	int64_t image;
	int64_t clock; /* each run starts a second after the one before */
};

static void open_stage(struct stage *s)
{
	struct db_image image = {.name = "made.dll", .size = 1};
	struct db_function function = {.rva = {0x1000}, .size = SIZE, .probe = -1};

	memset(s, 0, sizeof(*s));
	made_graph_init(&s->made);
	made_graph_section(&s->made, 0x1000, BLOCKS * STRIDE);
	for (uint32_t i = 0; i < BLOCKS; i++)
		made_graph_block(&s->made, 0x1000 + STRIDE * i, SIZE, false, NULL);
	s->hash = sha256_of("made", 4);
	image.hash = s->hash;
	strcpy(s->path, "/tmp/appulse-order-XXXXXX");
	close(mkstemp(s->path));
	assert_int_equal(db_open(s->path, DB_CREATE, &s->db, NULL), STATUS_OK);
	assert_int_equal(db_put_image(s->db, &image, &function, 1, &s->image, NULL),
			 STATUS_OK);
}

static void close_stage(struct stage *s)
{
	db_close(s->db);
	unlink(s->path);
	made_graph_release(&s->made);
}

/* A run that touches functions by number; 9 is a place where none begins. */
static void add_run(struct stage *s, enum db_run_kind kind, const char *scenario,
		    double weight, const char *touches)
{
	struct db_run run = {.kind = kind, .scenario = scenario, .weight = weight,
			     .started_ns = ++s->clock * 1000000000};
	struct db_process process = {.pid = (uint32_t)s->clock, .started_ns = run.started_ns};
	struct db_touch rows[BLOCKS + 1] = {0};
	struct db_trace trace = {.image = s->image, .touches = rows};
	enum db_trace_fate fate;

	for (; touches[trace.count]; trace.count++)
		rows[trace.count] = (struct db_touch){
			.seq = trace.count + 1, .thread = 1, .time_ns = trace.count,
			.rva = {0x1000 + STRIDE * (uint32_t)(touches[trace.count] - '0')}};
	assert_int_equal(db_begin_run(s->db, &run, &process.run, NULL), STATUS_OK);
	assert_int_equal(db_put_process(s->db, &process, &trace.process, NULL), STATUS_OK);
	assert_int_equal(db_put_trace(s->db, &trace, &fate, NULL), STATUS_OK);
}

static enum status choose(struct stage *s, const struct order_request *request,
			  struct order *order, struct order_summary *summary)
{
	const struct analysis analysis = {
		.graph = s->made.graph, .hash = s->hash, .image.path = "folder/other.dll"};

	memset(order, 0, sizeof(*order));
	return chosen_order_make(&analysis, request, order, summary, NULL);
}

/* The order's blocks as digits. */
static void assert_order(struct stage *s, const struct order_request *request,
			 const char *expected, struct order_summary *summary)
{
	struct order order;
	char text[BLOCKS + 1] = "";

	assert_int_equal(choose(s, request, &order, summary), STATUS_OK);
	assert_true(order.blocks.len <= BLOCKS);
	for (uint32_t i = 0; i < order.blocks.len; i++)
		text[i] = (char)('0' + order.blocks.data[i]);
	assert_string_equal(text, expected);
	order_release(&order);
}

static void one_run_is_its_order(void **state)
{
	struct order_request request = {.name = ORDER_FIRST_TOUCH};
	struct order_summary summary;
	struct stage s;

	(void)state;
	open_stage(&s);
	request.runs.database = s.path;
	add_run(&s, DB_RUN_TRACE, "start", 1, "4129");
	assert_order(&s, &request, "412", &summary);
	assert_int_equal(summary.runs, 1);
	assert_int_equal(summary.touched, 3);
	assert_int_equal(summary.touched_bytes, 3 * SIZE);
	close_stage(&s);
}

/* What a debugger saw is there to check traces, and is no profile. */
static void only_traces_count(void **state)
{
	struct order_request request = {.name = ORDER_FIRST_TOUCH};
	struct order_summary summary;
	struct order order;
	struct stage s;

	(void)state;
	open_stage(&s);
	request.runs.database = s.path;
	assert_int_equal(choose(&s, &request, &order, &summary), STATUS_NOT_FOUND);
	add_run(&s, DB_RUN_BREAKPOINTS, "start", 5, "501");
	assert_int_equal(choose(&s, &request, &order, &summary), STATUS_NOT_FOUND);
	add_run(&s, DB_RUN_TRACE, "start", 1, "23");
	assert_order(&s, &request, "23", &summary);
	assert_int_equal(summary.runs, 1);
	close_stage(&s);
}

/* Three runs of one scenario are worth what one is: 2 outweighs 1, not 3 * 1. */
static void runs_of_a_scenario_share_its_weight(void **state)
{
	struct order_request request = {.name = ORDER_FIRST_TOUCH};
	struct order_summary summary;
	struct stage s;

	(void)state;
	open_stage(&s);
	request.runs.database = s.path;
	for (unsigned i = 0; i < 3; i++)
		add_run(&s, DB_RUN_TRACE, "often", 1, "10");
	add_run(&s, DB_RUN_TRACE, "heavy", 2, "53");
	assert_order(&s, &request, "5310", &summary);
	assert_int_equal(summary.runs, 4);
	assert_int_equal(summary.touched, 4);
	/* Until its weight is above the other's. */
	add_run(&s, DB_RUN_TRACE, "often", 13, "10");
	assert_order(&s, &request, "1053", &summary);
	close_stage(&s);
}

static void what_each_order_needs(void **state)
{
	struct order_request request = {.name = ORDER_FIRST_TOUCH};
	struct order_summary summary;
	struct order order;
	char list[128];
	struct stage s;

	(void)state;
	open_stage(&s);
	assert_int_equal(choose(&s, &request, &order, &summary), STATUS_USAGE);
	request.runs.database = "/nowhere/t.db";
	assert_int_equal(choose(&s, &request, &order, &summary), STATUS_NOT_FOUND);
	request = (struct order_request){.name = ORDER_FILE};
	assert_int_equal(choose(&s, &request, &order, &summary), STATUS_USAGE);
	request.file = "/nowhere/order";
	assert_int_equal(choose(&s, &request, &order, &summary), STATUS_IO);
	snprintf(list, sizeof(list), "%s.order", s.path);
	request.file = list;
	assert_int_equal(file_write(list, "0x1080\n0x1000\n", 14, true, NULL), STATUS_OK);
	assert_order(&s, &request, "20", &summary);
	assert_int_equal(file_write(list, "", 0, true, NULL), STATUS_OK);
	assert_order(&s, &request, "", &summary);
	assert_int_equal(file_write(list, "nobody\n", 7, true, NULL), STATUS_OK);
	assert_int_equal(choose(&s, &request, &order, &summary), STATUS_BAD_ORDER);
	unlink(list);
	request = (struct order_request){.name = ORDER_ORIGINAL};
	assert_order(&s, &request, "", &summary);
	assert_int_equal(summary.runs, 0);
	request = (struct order_request){.name = ORDER_RANDOM, .seed = 3};
	assert_int_equal(choose(&s, &request, &order, &summary), STATUS_OK);
	assert_int_equal(order.blocks.len, BLOCKS);
	order_release(&order);
	close_stage(&s);
}

static void names_stand_in_the_enums_sequence(void **state)
{
	(void)state;
	assert_string_equal(order_names[ORDER_FIRST_TOUCH], "first-touch");
	assert_string_equal(order_names[ORDER_ORIGINAL], "original");
	assert_string_equal(order_names[ORDER_RANDOM], "random");
	assert_string_equal(order_names[ORDER_FILE], "file");
	assert_null(order_names[ORDER_COUNT]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_run_is_its_order),
		cmocka_unit_test(only_traces_count),
		cmocka_unit_test(runs_of_a_scenario_share_its_weight),
		cmocka_unit_test(what_each_order_needs),
		cmocka_unit_test(names_stand_in_the_enums_sequence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
