/* An order as a linker takes it, for those who can link their program anew. */
#ifndef APPULSE_REORDER_ORDER_LIST_H
#define APPULSE_REORDER_ORDER_LIST_H

#include "layout/order.h"

/* - MSVC: a decorated name a line, for link /ORDER:@FILE (Microsoft Learn, "/ORDER (Put
 *   Functions in Order)") and lld-link /order:@FILE;
 * - LLD: the same lines, for --symbol-ordering-file of ld.lld ("ld.lld", options);
 * - GNU_LD: an input section description a line, for a linker script ("Using ld", Input
 *   Section): GCC and clang put a function into .text$NAME or .text.KIND$NAME with
 *   -ffunction-sections. */
#define ORDER_FORMAT_LIST(X) \
	X(MSVC, "msvc")      \
	X(LLD, "lld")        \
	X(GNU_LD, "gnu-ld")

enum order_format {
#define X(id, name) ORDER_FORMAT_##id,
	ORDER_FORMAT_LIST(X)
#undef X
	ORDER_FORMAT_COUNT
};

/* NULL-terminated, in the sequence of enum order_format. */
extern const char *const order_format_names[ORDER_FORMAT_COUNT + 1];

/* All functions of the order, in one of the three. */
struct order_list_counts {
	uint32_t named;     /* the list names them and no other */
	uint32_t ambiguous; /* several functions of the image bear the name: static ones of
			     * different files.  It is in the list once, a linker takes it as
			     * it likes */
	uint32_t unnamed;   /* no symbol, or one that the format cannot hold */
};

/* On the heap, the caller frees; NULL when memory is out.  The same bytes for the same
 * order. */
char *order_list_text(const struct graph *graph, const struct function_order *order,
		      enum order_format format, struct order_list_counts *ret_counts,
		      size_t *ret_size);

#endif
