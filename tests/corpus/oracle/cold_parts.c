/* Functions in a hot and a cold part: GCC lays what is unlikely into another section, with
 * jumps between the two, and cases of switches on either side. */
volatile int sink, source;
#define EXPORT __declspec(dllexport)

__attribute__((noinline)) int other(int x) { return sink += x; }
__attribute__((noinline, cold)) int rare(int x) { return sink ^= x; }
__attribute__((noinline, cold, noreturn)) void fatal(int x)
{
	sink = x;
	__builtin_trap();
}

EXPORT int some_cases_cold(int x)
{
	switch (x) {
	case 0: return other(1);
	case 1: rare(1); rare(2); return rare(3);
	case 2: return other(3) + 1;
	case 3: fatal(3);
	case 4: return other(5) * 3;
	case 5: fatal(5);
	case 6: return other(7);
	case 7: rare(7); return other(8);
	}
	return -1;
}

EXPORT int some_cases_cold_unbounded(unsigned x)
{
	switch (x) {
	case 0: return other(1);
	case 1: rare(1); rare(2); return rare(3);
	case 2: return other(3) + 1;
	case 3: fatal(3);
	case 4: return other(5) * 3;
	case 5: fatal(5);
	case 6: return other(7);
	case 7: rare(7); return other(8);
	default: __builtin_unreachable();
	}
}

/* The switch itself is unlikely. */
EXPORT int switch_cold(int x, int y)
{
	if (__builtin_expect(y, 0)) {
		rare(y);
		switch (x) {
		case 0: sink = other(1); break;
		case 1: rare(2); break;
		case 2: sink = other(3) + 1; break;
		case 3: rare(3); break;
		case 4: sink = other(5) * 3; break;
		case 5: rare(5); break;
		case 6: sink = other(7); break;
		}
	}
	return other(y) + x;
}

EXPORT int switch_cold_unbounded(unsigned x, int y)
{
	if (__builtin_expect(y, 0)) {
		rare(y);
		switch (x) {
		case 0: sink = other(1); break;
		case 1: rare(2); break;
		case 2: sink = other(3) + 1; break;
		case 3: rare(3); break;
		case 4: sink = other(5) * 3; break;
		case 5: rare(5); break;
		case 6: sink = other(7); break;
		default: __builtin_unreachable();
		}
	}
	return other(y) + x;
}

/* The value comes back from the cold part to the switch in the hot one. */
EXPORT int back_from_cold(int x)
{
	int n = 0;

	for (int i = 0; i < 10; i++) {
		if (__builtin_expect(x < 0, 0)) {
			rare(x);
			x = source & 15;
			if (x > 9)
				fatal(x);
		}
		switch (x) {
		case 0: n += other(1); break;
		case 1: n ^= other(2); break;
		case 2: n -= other(3); break;
		case 3: n *= other(4); break;
		case 4: n |= other(5); break;
		case 5: n &= other(6); break;
		case 6: n <<= other(7); break;
		case 7: n += other(8) * n; break;
		case 8: n += other(9) & n; break;
		case 9: n += other(10) ^ n; break;
		default: __builtin_unreachable();
		}
		x = source;
	}
	return n;
}

/* A loop of switches, some of whose cases are never met in practice. */
EXPORT int interpret(const unsigned char *code)
{
	int a = 0, b = 1;

	for (;;)
		switch (*code++) {
		case 0: a += b; break;
		case 1: b ^= a; break;
		case 2: rare(a); rare(b); break;
		case 3: a = other(b); break;
		case 4: fatal(a);
		case 5: b = other(a); break;
		case 6:
			rare(6);
			switch (*code++) {
			case 0: rare(1); break;
			case 1: rare(a); break;
			case 2: a = rare(b); break;
			case 3: b = rare(7); break;
			case 4: a = b; break;
			case 5: a = rare(5); break;
			default: __builtin_unreachable();
			}
			break;
		case 7: return a + b;
		default: __builtin_unreachable();
		}
}
