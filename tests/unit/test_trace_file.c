#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "trace/trace_file.h"
#include "trace/trace_format.h"

enum { PROBES = 5, FREQUENCY = 10000000 };

static const char executable[] = "C:\\caf\xc3\xa9\\app.exe";

/* A trace file in memory of exactly its size, so that reads past it are seen. */
struct made {
	uint8_t *bytes;
	size_t size;
	struct trace_header *header;
	struct trace_record *records;
};

/* A trace of three touches, stored in another order than their numbers'. */
static struct made make(void)
{
	uint32_t path_size = (uint32_t)strlen(executable);
	uint32_t header_size = trace_header_size(path_size);
	struct made m = {.size = trace_file_size(header_size, PROBES)};

	m.bytes = calloc(1, m.size);
	assert_non_null(m.bytes);
	m.header = (void *)m.bytes;
	m.records = (void *)(m.bytes + header_size);
	*m.header = (struct trace_header){
		.magic = TRACE_MAGIC,
		.version = TRACE_VERSION,
		.header_size = header_size,
		.record_size = 24,
		.capacity = PROBES,
		.next = 3,
		.process = 36,
		.parent = 8,
		.path_size = path_size,
		.process_start = 134405421431205150,
		.opened = 134405421431568376,
		.opened_ticks = 5000,
		.frequency = FREQUENCY,
		.image_name = "a.dll",
	};
	for (uint8_t i = 0; i < TRACE_HASH_BYTES; i++)
		m.header->image_hash[i] = (uint8_t)(0xa0 + i);
	memcpy(m.header + 1, executable, path_size);
	m.records[0] = (struct trace_record){0x3000, 40, 7, 5700};
	m.records[1] = (struct trace_record){0x1000, 44, 5, 5500};
	m.records[2] = (struct trace_record){0xfffffff0, 40, 6, 5600};
	memset(m.records + PROBES, 1, 3);
	return m;
}

static enum status parse(const struct made *m, struct trace_file *ret_trace)
{
	return trace_file_parse(m->bytes, m->size, ret_trace, NULL);
}

static void everything_is_read(void **state)
{
	struct made m = make();
	struct trace_file t;

	(void)state;
	assert_int_equal(parse(&m, &t), STATUS_OK);
	assert_false(t.empty);
	assert_string_equal(t.image_name, "a.dll");
	assert_string_equal(t.executable, executable);
	for (int i = 0; i < SHA256_BYTES; i++)
		assert_int_equal(t.image_hash.bytes[i], 0xa0 + i);
	assert_int_equal(t.process, 36);
	assert_int_equal(t.parent, 8);
	assert_true(t.process_start == 134405421431205150);
	assert_true(t.opened == 134405421431568376);
	assert_int_equal(t.probes, PROBES);
	assert_int_equal(t.incomplete, 0);
	assert_int_equal(t.touch_count, 3);
	assert_int_equal(t.touches[0].rva.v, 0x1000);
	assert_int_equal(t.touches[0].thread, 44);
	assert_int_equal(t.touches[0].seq, 5);
	assert_int_equal(t.touches[0].ticks, 5500);
	assert_int_equal(t.touches[1].rva.v, 0xfffffff0);
	assert_int_equal(t.touches[2].rva.v, 0x3000);
	trace_file_release(&t);
	assert_null(t.touches);
	free(m.bytes);
}

static void ticks_become_nanoseconds(void **state)
{
	struct trace_file t = {.opened_ticks = 1000, .frequency = FREQUENCY};

	(void)state;
	assert_int_equal(trace_file_nanoseconds(&t, 1000), 0);
	assert_int_equal(trace_file_nanoseconds(&t, 1003), 300);
	assert_int_equal(trace_file_nanoseconds(&t, 990), -1000);
	t.frequency = 3000000000;
	assert_int_equal(trace_file_nanoseconds(&t, 1000 + 30ull * 3000000000),
			 30000000000);
	t.frequency = 1;
	assert_true(trace_file_nanoseconds(&t, UINT64_MAX) == INT64_MAX);
	t.opened_ticks = UINT64_MAX;
	assert_true(trace_file_nanoseconds(&t, 0) == INT64_MIN);
}

static void assert_empty(const void *bytes, size_t size)
{
	struct trace_file t;

	assert_int_equal(trace_file_parse(bytes, size, &t, NULL), STATUS_OK);
	assert_true(t.empty);
	assert_int_equal(t.touch_count, 0);
	assert_string_equal(t.image_name, "");
	assert_string_equal(t.executable, "");
	trace_file_release(&t);
}

static void a_header_that_was_not_done_is_an_empty_trace(void **state)
{
	struct made m = make();

	(void)state;
	assert_empty(NULL, 0);
	m.header->magic = 0;
	assert_empty(m.bytes, m.size);
	for (size_t size = 0; size < m.size; size++) {
		uint8_t *part = calloc(1, size ? size : 1);

		assert_empty(part, size);
		free(part);
	}
	free(m.bytes);
}

/* Whatever store is the last, what was complete by then is read. */
static void a_kill_at_any_store_loses_only_what_was_not_stored(void **state)
{
	struct made full = make(), m = make();
	uint32_t done = 0, claimed = 0;
	struct trace_file t;

	(void)state;
	memset(m.bytes, 0, m.size);
	full.header->next = 0;
	for (size_t at = 8; at < full.header->header_size; at += 8) {
		assert_empty(m.bytes, m.size);
		memcpy(m.bytes + at, full.bytes + at, 8);
	}
	assert_empty(m.bytes, m.size);
	m.header->magic = TRACE_MAGIC;
	for (uint32_t i = 0; i < 3; i++) {
		struct trace_record *from = &full.records[i], *to = &m.records[i];

		for (int step = 0; step < 6; step++) {
			switch (step) {
			case 0: ((uint8_t *)(m.records + PROBES))[i] = 1; break;
			case 1: m.header->next = ++claimed; break;
			case 2: to->seq = from->seq; break;
			case 3: to->ticks = from->ticks; break;
			case 4: to->thread = from->thread; break;
			case 5: to->rva = from->rva; done++; break;
			}
			assert_int_equal(parse(&m, &t), STATUS_OK);
			assert_false(t.empty);
			assert_int_equal(t.touch_count, done);
			assert_int_equal(t.incomplete, claimed - done);
			trace_file_release(&t);
		}
	}
	full.header->next = 3;
	assert_memory_equal(m.bytes, full.bytes, m.size);
	free(m.bytes);
	free(full.bytes);
}

static void incomplete_records_are_left_out(void **state)
{
	struct made m = make();
	struct trace_file t;

	(void)state;
	m.header->next = PROBES;
	m.records[1].rva = 0;
	assert_int_equal(parse(&m, &t), STATUS_OK);
	assert_int_equal(t.incomplete, 3);
	assert_int_equal(t.touch_count, 2);
	assert_int_equal(t.touches[0].rva.v, 0xfffffff0);
	trace_file_release(&t);
	free(m.bytes);
}

static void assert_bad(const void *bytes, size_t size)
{
	struct trace_file t, untouched;
	struct diag diag;

	memset(&t, 0x55, sizeof(t));
	memset(&untouched, 0x55, sizeof(untouched));
	diag_init(&diag);
	assert_int_equal(trace_file_parse(bytes, size, &t, &diag), STATUS_BAD_TRACE);
	assert_int_equal(diag.status, STATUS_BAD_TRACE);
	assert_true(diag.message[0] != '\0');
	assert_memory_equal(&t, &untouched, sizeof(t));
}

static void a_cut_file_is_refused(void **state)
{
	struct made m = make();

	(void)state;
	for (size_t size = 1; size < m.size; size++) {
		uint8_t *part = malloc(size);

		memcpy(part, m.bytes, size);
		assert_bad(part, size);
		free(part);
	}
	m.bytes = realloc(m.bytes, m.size + 1);
	m.bytes[m.size] = 0;
	assert_bad(m.bytes, m.size + 1);
	free(m.bytes);
}

/* Each changes one thing that the agent never does. */
static void bad_magic(struct made *m) { m->header->magic++; }
static void bad_version(struct made *m) { m->header->version = 2; }
static void bad_record_size(struct made *m) { m->header->record_size = 32; }
static void bad_header_size(struct made *m) { m->header->header_size += 64; }
static void small_header_size(struct made *m) { m->header->header_size = 0; }
static void bad_path_size(struct made *m) { m->header->path_size = UINT32_MAX; }
static void long_path(struct made *m) { m->header->path_size = TRACE_MAX_PATH_BYTES + 1; }
static void no_probes(struct made *m) { m->header->capacity = 0; }
static void more_probes(struct made *m) { m->header->capacity++; }
static void too_many_probes(struct made *m) { m->header->capacity = UINT32_MAX; }
static void too_many_touches(struct made *m) { m->header->next = PROBES + 1; }
static void no_frequency(struct made *m) { m->header->frequency = 0; }
static void no_name(struct made *m) { m->header->image_name[0] = '\0'; }
static void endless_name(struct made *m) { memset(m->header->image_name, 'a', 64); }
static void bad_name(struct made *m) { m->header->image_name[1] = '\n'; }
static void zero_in_path(struct made *m) { memset(m->header + 1, 0, 1); }
static void same_function(struct made *m) { m->records[2].rva = 0x3000; }
static void same_number(struct made *m) { m->records[2].seq = 7; }
static void number_zero(struct made *m) { m->records[2].seq = 0; }

static void what_the_agent_never_writes_is_refused(void **state)
{
	static void (*const changes[])(struct made *) = {
		bad_magic, bad_version, bad_record_size, bad_header_size, small_header_size,
		bad_path_size, long_path, no_probes, more_probes, too_many_probes,
		too_many_touches, no_frequency, no_name, endless_name, bad_name,
		zero_in_path, same_function, same_number, number_zero,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct made m = make();

		changes[i](&m);
		assert_bad(m.bytes, m.size);
		free(m.bytes);
	}
}

/* Gives the file the header and the size that goes with its capacity. */
static void put_header(int fd, const struct trace_header *header)
{
	off_t size = (off_t)trace_file_size(header->header_size, header->capacity);

	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(pwrite(fd, header, sizeof(*header), 0), sizeof(*header));
}

static void capacities_are_bounded(void **state)
{
	/* Mapped without memory behind: only the header's page is written. */
	uint32_t header_size = trace_header_size(0);
	struct trace_header header = {
		.magic = TRACE_MAGIC, .version = TRACE_VERSION, .header_size = header_size,
		.record_size = 24, .capacity = TRACE_MAX_PROBES, .frequency = 1,
		.image_name = "a",
	};
	char path[] = "/tmp/appulse-trace-XXXXXX";
	int fd = mkstemp(path);
	struct trace_file t;

	(void)state;
	assert_true(fd >= 0);
	put_header(fd, &header);
	assert_int_equal(trace_file_read(path, &t, NULL), STATUS_OK);
	assert_int_equal(t.probes, TRACE_MAX_PROBES);
	trace_file_release(&t);
	header.capacity++;
	put_header(fd, &header);
	assert_int_equal(trace_file_read(path, &t, NULL), STATUS_BAD_TRACE);
	close(fd);
	unlink(path);
}

/* `name` stands at the field's end too, where a cut sequence meets the NUL. */
static enum status status_of_name(const char *name)
{
	struct made m = make();
	struct trace_file t = {0};
	enum status status;

	memset(m.header->image_name, 0, sizeof(m.header->image_name));
	strcpy(m.header->image_name, name);
	status = parse(&m, &t);
	if (status == STATUS_OK)
		assert_string_equal(t.image_name, name);
	trace_file_release(&t);
	free(m.bytes);
	return status;
}

static void names_are_plain_utf8(void **state)
{
	static const char *const good[] = {
		" ", "~", "\xc2\xa0", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
		"\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
		("a\xe2\x82\xac" "b"),
	};
	static const char *const bad[] = {
		"\x01", "\x1f", "\x7f", "\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2\x80",
		"\xc2\x9f", "\xc2", "\xc2\xc0", "\xe0\x9f\xbf", "\xe1\x80", "\xe1\x80\x7f",
		"\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf1\x80\x80", "\xf1\x80\x80\xc0",
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xe2\x82",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(status_of_name(good[i]), STATUS_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(status_of_name(bad[i]), STATUS_BAD_TRACE);
}

/* What holds for any file: it is refused, or the answer is as the header says. */
static void assert_sane(const struct made *m)
{
	struct trace_file t = {0};
	enum status status = parse(m, &t);

	if (status != STATUS_OK) {
		assert_int_equal(status, STATUS_BAD_TRACE);
		return;
	}
	assert_true(t.touch_count <= PROBES && t.incomplete <= PROBES - t.touch_count);
	for (uint32_t i = 0; i < t.touch_count; i++) {
		assert_int_not_equal(t.touches[i].rva.v, 0);
		assert_true(t.touches[i].seq > (i ? t.touches[i - 1].seq : 0));
		for (uint32_t j = 0; j < i; j++)
			assert_int_not_equal(t.touches[i].rva.v, t.touches[j].rva.v);
	}
	assert_non_null(t.image_name);
	assert_true(strlen(t.image_name) < TRACE_NAME_BYTES);
	trace_file_release(&t);
}

static void any_flipped_bit_is_survived(void **state)
{
	struct made m = make();

	(void)state;
	for (size_t bit = 0; bit < m.size * 8; bit++) {
		m.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_sane(&m);
		m.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	free(m.bytes);
}

static void many_flipped_bits_are_survived(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct made m = make();

		for (int flips = round % 8; flips >= 0; flips--) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			m.bytes[(random >> 33) % m.size] ^= (uint8_t)(1 << (random >> 61));
		}
		assert_sane(&m);
		free(m.bytes);
	}
}

static void failures_name_the_file(void **state)
{
	struct trace_file t;
	struct diag diag;
	char path[] = "/tmp/appulse-trace-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	diag_init(&diag);
	assert_int_equal(trace_file_read(path, &t, &diag), STATUS_OK);
	assert_true(t.empty);
	trace_file_release(&t);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	assert_int_equal(trace_file_read(path, &t, &diag), STATUS_BAD_TRACE);
	assert_string_equal(diag.file, path);
	unlink(path);
	diag_init(&diag);
	assert_int_equal(trace_file_read(path, &t, &diag), STATUS_IO);
	assert_string_equal(diag.file, path);
	assert_int_equal(trace_file_read("/tmp", &t, NULL), STATUS_IO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_read),
		cmocka_unit_test(ticks_become_nanoseconds),
		cmocka_unit_test(a_header_that_was_not_done_is_an_empty_trace),
		cmocka_unit_test(a_kill_at_any_store_loses_only_what_was_not_stored),
		cmocka_unit_test(incomplete_records_are_left_out),
		cmocka_unit_test(a_cut_file_is_refused),
		cmocka_unit_test(what_the_agent_never_writes_is_refused),
		cmocka_unit_test(capacities_are_bounded),
		cmocka_unit_test(names_are_plain_utf8),
		cmocka_unit_test(any_flipped_bit_is_survived),
		cmocka_unit_test(many_flipped_bits_are_survived),
		cmocka_unit_test(failures_name_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
