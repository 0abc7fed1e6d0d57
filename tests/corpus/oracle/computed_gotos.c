/* Labels as values: absolute tables with relocations, relative ones, labels that are
 * kept in variables. */
volatile int sink;
#define EXPORT __declspec(dllexport)

__attribute__((noinline)) int other(int x)
{
	return sink += x;
}

EXPORT int absolute(const unsigned char *code)
{
	static const void *const table[] = {&&add, &&sub, &&call, &&end, &&jump};
	int a = 1, b = 2;

	goto *table[*code++];
add:
	a += b;
	goto *table[*code++];
sub:
	b -= a;
	goto *table[*code++];
call:
	a = other(b);
	goto *table[*code++];
jump:
	code += a;
	goto *table[*code++];
end:
	return a + b;
}

EXPORT int relative(const unsigned char *code)
{
	static const int table[] = {&&add - &&add, &&sub - &&add, &&call - &&add,
				    &&end - &&add};
	int a = 1, b = 2;

	goto *(&&add + table[*code++]);
add:
	a += b;
	goto *(&&add + table[*code++]);
sub:
	b -= a;
	goto *(&&add + table[*code++]);
call:
	a = other(b);
	goto *(&&add + table[*code++]);
end:
	return a + b;
}

/* A relative table that ends before data nothing else names. */
EXPORT int kept(int n)
{
	static const int table[] = {&&one - &&one, &&two - &&one, &&three - &&one};
	void *next = &&one + table[n % 3];
	void *then = n & 4 ? &&two : &&three;

	sink = n;
	goto *next;
one:
	sink = other(1);
	if (n-- > 0)
		goto *then;
two:
	sink = other(2);
	if (n-- > 0)
		goto *next;
three:
	return sink;
}

static void *saved;

/* Labels that outlive the function's run in a variable. */
EXPORT int resume(int n)
{
	if (saved && n)
		goto *saved;
first:
	saved = &&second;
	return other(n);
second:
	saved = &&third;
	return other(n + 1);
third:
	saved = &&first;
	return other(n + 2);
}

EXPORT int on_stack(int n)
{
	void *table[] = {&&one, &&two, &&three};

	goto *table[n];
one:
	return other(1);
two:
	return other(2) + other(n);
three:
	return other(3) * 7;
}
