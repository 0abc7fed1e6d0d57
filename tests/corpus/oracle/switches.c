/* Jump tables of many forms: dense and with holes, of all widths, with and without a
 * default, nested, in loops, several over one value, in leaves and behind calls. */
#include <stdint.h>

extern int other(int), another(int), third(int, int);
volatile int sink, source;

__attribute__((noinline)) int other(int x) { return sink += x; }
__attribute__((noinline)) int another(int x) { return sink ^= x; }
__attribute__((noinline)) int third(int x, int y) { return sink -= x * y; }

#define EXPORT __declspec(dllexport)

EXPORT int dense(int x)
{
	switch (x) {
	case 0: return other(1);
	case 1: return another(2);
	case 2: return other(3) + 1;
	case 3: return third(x, 4);
	case 4: return another(5) * 3;
	case 5: return third(6, x) + 9;
	}
	return -1;
}

EXPORT int biased(int x)
{
	switch (x) {
	case 1000: return other(1);
	case 1001: return another(2);
	case 1002: return other(3) + 1;
	case 1004: return third(x, 4);
	case 1006: return another(5) * 3;
	case 1009: return third(6, x) + 9;
	}
	return -1;
}

EXPORT int negative(int x)
{
	switch (x) {
	case -7: return other(1);
	case -6: return another(2);
	case -5: return other(3) + 1;
	case -4: return third(x, 4);
	case -3: return another(5) * 3;
	case -1: return third(6, x) + 9;
	case 2: return third(16, x) + 9;
	}
	return -1;
}

EXPORT int leaf(int x, int y)
{
	int n = 0;

	while (y-- > 0)
		switch (x + y) {
		case 0: n += 3; break;
		case 1: n ^= y; break;
		case 2: n *= 5; break;
		case 3: n -= x; break;
		case 4: n |= 9; x = n; break;
		case 5: n = y * n; break;
		default: return n;
		}
	return n + 1;
}

/* No default: the table's length stands nowhere. */
EXPORT int unbounded(unsigned x)
{
	switch (x) {
	case 0: return other(1);
	case 1: return another(2);
	case 2: return other(3) + 1;
	case 3: return third(x, 4);
	case 4: return another(5) * 3;
	case 5: return third(6, x) + 9;
	default: __builtin_unreachable();
	}
}

EXPORT int unbounded_twice(unsigned x, unsigned y)
{
	int n = 0;

	switch (x) {
	case 0: n = other(1); break;
	case 1: n = another(2); break;
	case 2: n = other(3) + 1; break;
	case 3: n = third(x, 4); break;
	case 4: n = another(5) * 3; break;
	case 5: n = third(6, x) + 9; break;
	default: __builtin_unreachable();
	}
	switch (y) {
	case 0: return n + other(11);
	case 1: return n * another(12);
	case 2: return n - other(13) + 1;
	case 3: return n ^ third(x, 14);
	case 4: return n | another(15) * 3;
	case 5: return n & (third(16, x) + 9);
	default: __builtin_unreachable();
	}
}

enum colour { RED, GREEN, BLUE, CYAN, MAGENTA, YELLOW, BLACK };

/* The last case of one ends in unreachable code. */
EXPORT int of_enum(enum colour c, int n)
{
	switch (c) {
	case RED: return other(n);
	case GREEN: return another(n);
	case BLUE: return third(n, n);
	case CYAN: return other(n) + 1;
	case MAGENTA: return other(n) + 2;
	case YELLOW: return other(n) * 3;
	case BLACK: __builtin_unreachable();
	}
	__builtin_unreachable();
}

EXPORT int of_byte(unsigned char x)
{
	switch (x) {
	case 0: return other(1);
	case 1: return another(2);
	case 2: return other(3) + 1;
	case 3: return third(x, 4);
	case 4: return another(5) * 3;
	case 5: return third(6, x) + 9;
	case 250: return 8;
	}
	return -1;
}

EXPORT int of_masked(int x)
{
	switch (x & 7) {
	case 0: return other(1);
	case 1: return another(2);
	case 2: return other(3) + 1;
	case 3: return third(x, 4);
	case 4: return another(5) * 3;
	case 5: return third(6, x) + 9;
	case 6: return third(7, x) + 9;
	case 7: return third(8, x) * 19;
	}
	return -1;
}

EXPORT int of_short(short x)
{
	switch (x) {
	case -2: return other(1);
	case -1: return another(2);
	case 0: return other(3) + 1;
	case 1: return third(x, 4);
	case 2: return another(5) * 3;
	case 3: return third(6, x) + 9;
	}
	return -1;
}

EXPORT int of_wide(long long x)
{
	switch (x) {
	case 10: return other(1);
	case 11: return another(2);
	case 12: return other(3) + 1;
	case 13: return third(x, 4);
	case 14: return another(5) * 3;
	case 16: return third(6, x) + 9;
	}
	return -1;
}

/* Tests known values before: the compiler may drop or narrow the bound. */
EXPORT int narrowed(unsigned x)
{
	if (x > 3)
		return other(x);
	switch (x) {
	case 0: return other(1);
	case 1: return another(2);
	case 2: return other(3) + 1;
	case 3: return third(x, 4);
	case 4: return another(5) * 3;
	case 5: return third(6, x) + 9;
	case 6: return third(7, x) + 9;
	}
	return -1;
}

static inline void touch(int *p) { *(volatile int *)p = source; }

/* What was known of the value before the call does not hold behind it. */
EXPORT int changed_between(int x)
{
	int value = x;

	if ((unsigned)value < 4) {
		touch(&value);
		other(0);
		switch ((unsigned)value) {
		case 0: return other(1);
		case 1: return another(2);
		case 2: return other(3) + 1;
		case 3: return third(x, 4);
		case 4: return another(5) * 3;
		case 5: return third(6, x) + 9;
		case 6: return third(7, x) + 9;
		case 7: return third(8, x) + 9;
		default: __builtin_unreachable();
		}
	}
	return value;
}

/* An interpreter: the table's base is hoisted out of the loop or spilled. */
EXPORT int interpret(const unsigned char *code, int *stack, int limit)
{
	int a = 0, b = 1, c = 2, d = 3, e = 4, f = 5, g = 6, h = 7, i = 8, j = 9;

	for (;;) {
		switch (*code++) {
		case 0: a += b; break;
		case 1: b ^= c + a; break;
		case 2: c *= d - b; break;
		case 3: d = other(e) + c; break;
		case 4: e = f << (d & 15); break;
		case 5: f = third(g, e); break;
		case 6: g = h - f; break;
		case 7: h = stack[i & 15] + g; break;
		case 8: i = another(j) ^ h; break;
		case 9: j = a + i; break;
		case 10: *stack++ = a; stack[1] = b; break;
		case 11: if (a > limit) code += 3; break;
		case 12: if (b > limit) code -= 2; break;
		case 13:
			switch (*code++) {
			case 0: a = 1; break;
			case 1: b = a; break;
			case 2: c = other(a); break;
			case 3: d = b; break;
			case 4: e = c; break;
			case 5: f = other(d); break;
			case 6: g = e; break;
			}
			break;
		case 14: return a + b + c + d + e + f + g + h + i + j;
		default: sink = a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j; break;
		}
	}
}

EXPORT int interpret_trusting(const unsigned char *code, int *stack)
{
	int a = 0, b = 1, c = 2, d = 3;

	for (;;)
		switch (*code++) {
		case 0: a += b; break;
		case 1: b ^= c + a; break;
		case 2: c *= d - b; break;
		case 3: d = other(a) + c; break;
		case 4: a = d << (b & 15); break;
		case 5: b = third(a, c); break;
		case 6: c = *stack++ - d; break;
		case 7: return a + b + c + d;
		default: __builtin_unreachable();
		}
}

/* Two switches over one value. */
EXPORT int twice(unsigned x)
{
	int n = 0;

	switch (x) {
	case 0: n = other(1); break;
	case 1: n = another(2); break;
	case 2: n = other(3) + 1; break;
	case 3: n = third(x, 4); break;
	case 4: n = another(5) * 3; break;
	case 5: n = third(6, x) + 9; break;
	case 6: n = third(7, x) + 9; break;
	}
	sink = n;
	switch (x) {
	case 1: return other(1) + n;
	case 2: return another(2) - n;
	case 3: return other(3) + n * 2;
	case 4: return third(x, n);
	case 5: return another(5) * n;
	case 7: return third(6, x) + n;
	case 8: return third(9, x) + n;
	}
	return -1;
}

/* Cases that only compute a value become a table of values instead. */
EXPORT const char *names(int x)
{
	switch (x) {
	case 0: return "zero";
	case 1: return "one";
	case 2: return "two";
	case 3: return "three";
	case 4: return "four";
	case 5: return "five";
	}
	return "many";
}

/* Tail calls out of a table. */
typedef int (*handler)(int);
static const handler handlers[] = {other, another, dense, biased, negative};

EXPORT int through_table(int which, int x)
{
	if ((unsigned)which < sizeof(handlers) / sizeof(*handlers))
		return handlers[which](x);
	return 0;
}

EXPORT int through_parameter(handler h, int x) { return h(x); }
EXPORT int through_struct(struct { int n; handler h; } *s) { return s->h(s->n); }
EXPORT int through_stack_parameter(int a, int b, int c, int d, int e, handler h)
{
	return h(a + b + c + d + e);
}

EXPORT int through_either(int x)
{
	handler h = x & 1 ? other : another;

	return h(x);
}

/* Duff's device. */
EXPORT void duff(int *to, const int *from, int count)
{
	int n = (count + 7) / 8;

	switch (count % 8) {
	case 0: do { *to++ = *from++;
	case 7: *to++ = *from++;
	case 6: *to++ = *from++;
	case 5: *to++ = *from++;
	case 4: *to++ = *from++;
	case 3: *to++ = *from++;
	case 2: *to++ = *from++;
	case 1: *to++ = *from++;
		} while (--n > 0);
	}
}
