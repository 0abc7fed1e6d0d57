#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../profile/fault_events.h"

enum { PAGE = 4096, APP = 7 };

/* Events that come in the order in which they are written here. */
struct history {
	struct fault_event_list events;
	struct file_faults found;
};

static void add(struct history *h, struct fault_event event)
{
	event.order = h->events.len;
	if (event.time_ns == 0)
		event.time_ns = 10 * (int64_t)(h->events.len + 1);
	assert_true(vec_push(&h->events, event));
}

static void map(struct history *h, uint32_t pid, uint64_t page, uint64_t pages,
		uint64_t file_page, uint32_t file)
{
	add(h, (struct fault_event){.type = FAULT_EVENT_MAP, .pid = pid, .file = file,
				    .address = page * PAGE, .size = pages * PAGE,
				    .offset = file_page * PAGE});
}

static void touch(struct history *h, uint32_t pid, uint64_t address)
{
	add(h, (struct fault_event){.type = FAULT_EVENT_HARD, .pid = pid, .thread = pid,
				    .address = address, .code = address});
}

static void resolve(struct history *h)
{
	assert_int_equal(fault_events_resolve(&h->events, &h->found, NULL), STATUS_OK);
}

static void finish(struct history *h)
{
	vec_release(&h->events);
	file_faults_release(&h->found);
}

/* The faults must be on these pages of the file. */
static void check_pages(const struct history *h, const uint64_t *pages, uint32_t count)
{
	assert_int_equal(h->found.faults.len, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(h->found.faults.data[i].page, pages[i] * PAGE);
}

#define CHECK_PAGES(h_, ...)                               \
	check_pages((h_), (const uint64_t[]){__VA_ARGS__}, \
		    sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void a_fault_is_a_page_of_the_file(void **state)
{
	struct history h = {0};

	(void)state;
	map(&h, 1, 100, 10, 3, APP);
	touch(&h, 1, 100 * PAGE);
	touch(&h, 1, 109 * PAGE + 4095);
	touch(&h, 1, 110 * PAGE); /* behind it */
	touch(&h, 1, 100 * PAGE - 1);
	touch(&h, 2, 100 * PAGE); /* another process */
	resolve(&h);
	CHECK_PAGES(&h, 3, 12);
	assert_int_equal(h.found.faults.data[0].file, APP);
	assert_int_equal(h.found.users.len, 1);
	assert_int_equal(h.found.users.data[0].mappings, 1);
	finish(&h);
}

static void the_clock_orders_what_processors_tell(void **state)
{
	struct history h = {0};

	(void)state;
	add(&h, (struct fault_event){.type = FAULT_EVENT_HARD, .pid = 1, .time_ns = 300,
				     .address = 101 * PAGE});
	add(&h, (struct fault_event){.type = FAULT_EVENT_HARD, .pid = 1, .time_ns = 200,
				     .address = 102 * PAGE});
	add(&h, (struct fault_event){.type = FAULT_EVENT_MAP, .pid = 1, .time_ns = 100,
				     .file = APP, .address = 100 * PAGE, .size = 9 * PAGE});
	resolve(&h);
	CHECK_PAGES(&h, 2, 1);
	finish(&h);
}

static void what_is_mapped_over_a_file_cuts_it(void **state)
{
	struct history h = {0};

	(void)state;
	map(&h, 1, 100, 10, 0, APP);
	map(&h, 1, 103, 2, 0, FAULT_NO_FILE);
	for (uint64_t page = 100; page < 110; page++)
		touch(&h, 1, page * PAGE);
	map(&h, 1, 90, 30, 0, FAULT_NO_FILE);
	touch(&h, 1, 100 * PAGE);
	map(&h, 1, 95, 10, 5, APP); /* loaded again, elsewhere */
	touch(&h, 1, 95 * PAGE);
	resolve(&h);
	CHECK_PAGES(&h, 0, 1, 2, 5, 6, 7, 8, 9, 5);
	assert_int_equal(h.found.users.data[0].mappings, 2);
	finish(&h);
}

static void a_fork_takes_mappings_along_and_an_exec_drops_them(void **state)
{
	struct history h = {0};

	(void)state;
	map(&h, 1, 100, 10, 0, APP);
	add(&h, (struct fault_event){.type = FAULT_EVENT_FORK, .pid = 2, .parent = 1});
	add(&h, (struct fault_event){.type = FAULT_EVENT_FORK, .pid = 1, .parent = 1});
	touch(&h, 2, 104 * PAGE);
	add(&h, (struct fault_event){.type = FAULT_EVENT_EXEC, .pid = 2});
	touch(&h, 2, 105 * PAGE);
	touch(&h, 1, 106 * PAGE);
	resolve(&h);
	CHECK_PAGES(&h, 4, 6);
	assert_int_equal(h.found.users.len, 1);
	finish(&h);
}

static void fetches_are_told_from_reads(void **state)
{
	static const struct {
		uint64_t address, code;
		bool fetch;
	} cases[] = {
		{100 * PAGE + 8, 100 * PAGE + 8, true},
		{101 * PAGE, 101 * PAGE - 15, true},  /* runs over into the page */
		{101 * PAGE, 101 * PAGE - 16, false}, /* too far for one instruction */
		{101 * PAGE + 1, 101 * PAGE - 5, false},
		{101 * PAGE, 101 * PAGE + 5, false},
	};
	struct history h = {0};

	(void)state;
	map(&h, 1, 100, 10, 0, APP);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		add(&h, (struct fault_event){.type = FAULT_EVENT_SOFT, .pid = 1,
					     .address = cases[i].address,
					     .code = cases[i].code});
	resolve(&h);
	assert_int_equal(h.found.faults.len, sizeof(cases) / sizeof(*cases));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(h.found.faults.data[i].execute, cases[i].fetch);
		assert_false(h.found.faults.data[i].hard);
	}
	finish(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fault_is_a_page_of_the_file),
		cmocka_unit_test(the_clock_orders_what_processors_tell),
		cmocka_unit_test(what_is_mapped_over_a_file_cuts_it),
		cmocka_unit_test(a_fork_takes_mappings_along_and_an_exec_drops_them),
		cmocka_unit_test(fetches_are_told_from_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
