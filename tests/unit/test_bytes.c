#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

static void reads_little_endian(void **state)
{
	static const uint8_t data[] = {0x01, 0x02, 0x03, 0xf0, 0xf1, 0xf2, 0xf3, 0x10,
				       0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0xf7};
	struct reader r = reader_of(data, sizeof(data));

	(void)state;
	assert_int_equal(read_u8(&r), 0x01);
	assert_int_equal(read_u16(&r), 0x0302);
	assert_int_equal(read_u32(&r), 0xf3f2f1f0u);
	assert_int_equal(reader_left(&r), 8);
	assert_true(read_u64(&r) == 0xf716151413121110ull);
	assert_int_equal(reader_left(&r), 0);
	assert_false(r.failed);
}

/* One byte too few: that read and all after it give 0, though bytes are left. */
static void a_failure_is_sticky(void **state)
{
	static const uint8_t data[] = {0xff, 0xff, 0xff};
	struct reader r = reader_of(data, sizeof(data));

	(void)state;
	assert_int_equal(read_u32(&r), 0);
	assert_true(r.failed);
	assert_int_equal(reader_left(&r), 0);
	assert_int_equal(read_u8(&r), 0);
	assert_int_equal(read_u16(&r), 0);
	assert_true(read_u64(&r) == 0);
	assert_true(read_uleb128(&r) == 0);
	assert_true(read_sleb128(&r) == 0);
	assert_null(read_bytes(&r, 0));
}

static void each_width_fails_at_the_end(void **state)
{
	static const uint8_t data[8] = {1, 1, 1, 1, 1, 1, 1, 1};
	struct reader r;

	(void)state;
	r = reader_of(data, 0);
	assert_int_equal(read_u8(&r), 0);
	assert_true(r.failed);
	r = reader_of(data, 1);
	assert_int_equal(read_u16(&r), 0);
	assert_true(r.failed);
	r = reader_of(data, 7);
	assert_true(read_u64(&r) == 0);
	assert_true(r.failed);
	r = reader_of(data, 8);
	read_skip(&r, 8);
	assert_false(r.failed);
	read_skip(&r, 1);
	assert_true(r.failed);
	r = reader_of(data, 8);
	read_skip(&r, 4);
	assert_null(read_bytes(&r, SIZE_MAX));
	assert_true(r.failed);
}

static void read_bytes_points_into_the_buffer(void **state)
{
	static const uint8_t data[4] = {1, 2, 3, 4};
	struct reader r = reader_of(data, sizeof(data));

	(void)state;
	read_skip(&r, 1);
	assert_ptr_equal(read_bytes(&r, 2), data + 1);
	assert_int_equal(reader_left(&r), 1);
}

static void stores_write_what_loads_read(void **state)
{
	static const uint8_t expected[15] = {0xaa, 0x34, 0x12, 0x78, 0x56, 0x34, 0x92, 0xef,
					     0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0xf1};
	uint8_t bytes[15] = {0xaa};

	(void)state;
	store_u16(bytes + 1, 0x1234);
	store_u32(bytes + 3, 0x92345678u);
	store_u64(bytes + 7, 0xf123456789abcdefull);
	assert_memory_equal(bytes, expected, sizeof(bytes));
	assert_int_equal(load_u16(bytes + 1), 0x1234);
	assert_int_equal(load_u32(bytes + 3), 0x92345678u);
	assert_true(load_u64(bytes + 7) == 0xf123456789abcdefull);
}

/* The examples of DWARF 5, tables 7.7 and 7.8 (section 7.6). */
static void leb128_examples_of_the_standard(void **state)
{
	static const struct {
		int64_t value;
		uint8_t bytes[2];
		uint8_t size;
	} is_signed[] = {{2, {0x02}, 1},	 {-2, {0x7e}, 1},
			 {127, {0xff, 0x00}, 2}, {-127, {0x81, 0x7f}, 2},
			 {128, {0x80, 0x01}, 2}, {-128, {0x80, 0x7f}, 2},
			 {129, {0x81, 0x01}, 2}, {-129, {0xff, 0x7e}, 2}},
	  is_unsigned[] = {{2, {0x02}, 1},
			   {127, {0x7f}, 1},
			   {128, {0x80, 0x01}, 2},
			   {129, {0x81, 0x01}, 2},
			   {12857, {0xb9, 0x64}, 2}};

	(void)state;
	for (size_t i = 0; i < sizeof(is_signed) / sizeof(is_signed[0]); i++) {
		struct reader r = reader_of(is_signed[i].bytes, is_signed[i].size);

		assert_true(read_sleb128(&r) == is_signed[i].value);
		assert_int_equal(reader_left(&r), 0);
		assert_false(r.failed);
	}
	for (size_t i = 0; i < sizeof(is_unsigned) / sizeof(is_unsigned[0]); i++) {
		struct reader r = reader_of(is_unsigned[i].bytes, is_unsigned[i].size);

		assert_true(read_uleb128(&r) == (uint64_t)is_unsigned[i].value);
		assert_int_equal(reader_left(&r), 0);
		assert_false(r.failed);
	}
}

/* The encoders that DWARF 5 gives in appendix C, as plain as there. */
static size_t encode_unsigned(uint64_t value, uint8_t *to)
{
	size_t n = 0;

	do {
		to[n] = value & 0x7f;
		value >>= 7;
		if (value)
			to[n] |= 0x80;
		n++;
	} while (value);
	return n;
}

static size_t encode_signed(int64_t value, uint8_t *to)
{
	size_t n = 0;

	for (;;) {
		uint8_t byte = value & 0x7f;

		value >>= 7; /* arithmetic in GCC and clang */
		if ((value == 0 && !(byte & 0x40)) || (value == -1 && (byte & 0x40))) {
			to[n++] = byte;
			return n;
		}
		to[n++] = byte | 0x80;
	}
}

static void leb128_reads_what_a_naive_encoder_writes(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 64; bit++) {
		for (int64_t near = -2; near <= 2; near++) {
			uint64_t value = ((uint64_t)1 << bit) + (uint64_t)near;
			uint8_t bytes[12];
			struct reader r = reader_of(bytes, encode_unsigned(value, bytes));

			assert_true(read_uleb128(&r) == value);
			assert_int_equal(reader_left(&r), 0);
			assert_false(r.failed);
			r = reader_of(bytes, encode_signed((int64_t)value, bytes));
			assert_true(read_sleb128(&r) == (int64_t)value);
			assert_int_equal(reader_left(&r), 0);
			assert_false(r.failed);
		}
	}
}

static void leb128_refuses_more_than_64_bits_and_cut_ends(void **state)
{
	static const uint8_t cut[] = {0x80, 0x80};
	static const uint8_t too_big[] = {0x80, 0x80, 0x80, 0x80, 0x80,
					  0x80, 0x80, 0x80, 0x80, 0x02};
	static const uint8_t endless[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
					  0x80, 0x80, 0x80, 0x80, 0x00};
	static const uint8_t padded[] = {0x85, 0x80, 0x80, 0x80, 0x80,
					 0x80, 0x80, 0x80, 0x80, 0x00};
	const struct reader bad[] = {reader_of(cut, sizeof(cut)),
				     reader_of(too_big, sizeof(too_big)),
				     reader_of(endless, sizeof(endless))};
	struct reader r;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		r = bad[i];
		assert_true(read_uleb128(&r) == 0);
		assert_true(r.failed);
		r = bad[i];
		assert_true(read_sleb128(&r) == 0);
		assert_true(r.failed);
	}
	r = reader_of(padded, sizeof(padded));
	assert_true(read_uleb128(&r) == 5);
	assert_false(r.failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_little_endian),
		cmocka_unit_test(a_failure_is_sticky),
		cmocka_unit_test(each_width_fails_at_the_end),
		cmocka_unit_test(read_bytes_points_into_the_buffer),
		cmocka_unit_test(stores_write_what_loads_read),
		cmocka_unit_test(leb128_examples_of_the_standard),
		cmocka_unit_test(leb128_reads_what_a_naive_encoder_writes),
		cmocka_unit_test(leb128_refuses_more_than_64_bits_and_cut_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
