/* A program that clang's control-flow guard has much to say about: functions whose address
 * is taken, setjmp, and where execution goes on after an exception. */
extern "C" int _setjmp(void *, void *) __attribute__((returns_twice));
extern "C" __attribute__((noreturn)) void longjmp(void *, int);

typedef int (*step)(int);
#define APART __attribute__((noinline))

static char place[512];

static APART int triple(int x)
{
	return x * 3 + 1;
}

static APART int shift(int x)
{
	return (x << 4) - x;
}

static APART int mix(int x)
{
	return x ^ 0x1234;
}

/* Nothing but calls: no indirect call may reach it. */
static APART int plain(int x)
{
	return x / 5 + 2;
}

extern "C" step steps[] = {triple, shift, mix};

extern "C" APART int walk(int x)
{
	int sum = plain(x);

	for (int i = 0; i < 3; i++)
		sum += steps[(x + i) % 3](i);
	return sum;
}

extern "C" APART int jumps(int x)
{
	if (_setjmp(place, 0))
		return x + 1;
	walk(x);
	longjmp(place, 1);
}

extern "C" APART int jumps_twice(int x)
{
	int way = _setjmp(place, 0);

	if (_setjmp(place + 256, 0))
		return way + steps[x % 3](x);
	longjmp(way ? place : place + 256, x);
}

extern "C" APART int catches(int x)
{
	try {
		return steps[x & 1](3);
	} catch (...) {
		x += 9;
	}
	return x * 7;
}

extern "C" APART int catches_twice(int x)
{
	int sum = 0;

	try {
		sum = steps[x % 3](x);
		try {
			sum += walk(x);
		} catch (...) {
			sum ^= 5;
		}
		sum += steps[sum & 1](sum);
	} catch (...) {
		sum -= 3;
	}
	return sum;
}

extern "C" __declspec(dllexport) int run(int x)
{
	return walk(x) + jumps(x) + jumps_twice(x) + catches(x) + catches_twice(x);
}
