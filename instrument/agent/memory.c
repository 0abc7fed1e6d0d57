/* The functions of a C library that the compiler may call by itself. */
#include "agent.h"

void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);

void *memcpy(void *to, const void *from, size_t size)
{
	void *result = to;

	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
	return result;
}

void *memset(void *to, int byte, size_t size)
{
	void *result = to;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(byte) : "memory");
	return result;
}

int memcmp(const void *a, const void *b, size_t size)
{
	const uint8_t *p = a, *q = b;

	for (size_t i = 0; i < size; i++)
		if (p[i] != q[i])
			return p[i] - q[i];
	return 0;
}
