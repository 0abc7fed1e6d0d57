/* An image made in memory with C++ exception data of the MSVC ABI: a function with a
 * FuncInfo and its catch funclet, one with a FuncInfo4 and its own, a separated one, one
 * with a security cookie, and one whose handler has labels.  Written by hand, so that the
 * tests know every place. */
#ifndef APPULSE_TESTS_FRAME_IMAGE_H
#define APPULSE_TESTS_FRAME_IMAGE_H

#include "built_graph.h"

struct frame_image {
	struct built_graph t;
	/* Functions; resumes are places in f and h that only funclets lead to. */
	struct rva f, resume3, catch3, cleanup, handler3, h, resume4, resume4b, catch4,
		first, second, handler4, labelled, handler_asm, guarded, handler_gs, g;
	/* Exception data, and fields in it. */
	struct rva info3, unwinds3, tries3, catches3, states3, info4, unwinds4, tries4,
		catches4, states4, continuation4, info4_catch, segments, labels, cookie;
	struct rva data3, data3_catch; /* handler data of f and its funclet */
};

#define FRAME_PROLOG "\x48\x83\xec\x28"     /* sub rsp, 40 */
#define FRAME_EPILOG "\x48\x83\xc4\x28\xc3" /* add rsp, 40; ret */

static inline void frame_image_text(struct frame_image *i)
{
	struct built_graph *t = &i->t;

	i->f = CODE(t, FRAME_PROLOG    /* 0 */
		    "\xe8\0\0\0\0\x90" /* 4 call g; 9 nop */
		    "\xe8\0\0\0\0\x90" /* 10 call g; 15 nop */
		    FRAME_EPILOG       /* 16 */
		    "\xeb\xf9");       /* 21 jmp epilog */
	i->resume3 = rva_add(i->f, 21);
	i->catch3 = CODE(t, FRAME_PROLOG "\x48\x8d\x05\0\0\0\0" /* lea rax, [resume3] */
			 FRAME_EPILOG);
	i->cleanup = CODE(t, "\x31\xc0\xc3");
	i->handler3 = CODE(t, "\x31\xc0\xc3");
	i->h = CODE(t, FRAME_PROLOG "\xe8\0\0\0\0\x90" /* 4 call g; 9 nop */
		    FRAME_EPILOG                       /* 10 */
				    "\xeb\xf9"         /* 15 jmp epilog */
				    "\xeb\xf7");       /* 17 jmp epilog */
	i->resume4 = rva_add(i->h, 15);
	i->resume4b = rva_add(i->h, 17);
	i->catch4 = CODE(t, FRAME_PROLOG "\x31\xc0" FRAME_EPILOG);
	i->first = CODE(t, FRAME_PROLOG FRAME_EPILOG);
	i->second = CODE(t, FRAME_PROLOG "\x90" FRAME_EPILOG);
	i->handler4 = CODE(t, "\x31\xdb\xc3");
	i->labelled = CODE(t, FRAME_PROLOG "\x90" FRAME_EPILOG);
	i->handler_asm = CODE(t, "\x31\xd2\xc3");
	i->guarded = CODE(t, FRAME_PROLOG "\xe8\0\0\0\0" FRAME_EPILOG);
	i->handler_gs = CODE(t, "\x31\xc9\xc3");
	i->g = CODE(t, "\x31\xc0\xc3");
	built_graph_point(t, rva_add(i->f, 5), i->g);
	built_graph_point(t, rva_add(i->f, 11), i->g);
	built_graph_point(t, rva_add(i->catch3, 7), i->resume3);
	built_graph_point(t, rva_add(i->h, 5), i->g);
	built_graph_point(t, rva_add(i->guarded, 5), i->g);
}

static inline struct rva frame_image_bytes(struct frame_image *i, const char *bytes,
					   size_t size)
{
	return image_builder_put(&i->t.b, bytes, size);
}

#define PUT(i, bytes) frame_image_bytes(i, bytes, sizeof(bytes) - 1)

static inline struct rva frame_image_rva(struct frame_image *i, struct rva rva)
{
	return image_builder_u32(&i->t.b, rva.v);
}

static inline void frame_image_info3(struct frame_image *i)
{
	struct image_builder *b = &i->t.b;

	i->unwinds3 = image_builder_u32(b, UINT32_MAX); /* state 0 */
	frame_image_rva(i, i->cleanup);
	image_builder_u32(b, UINT32_MAX); /* state 1 */
	image_builder_u32(b, 0);
	i->catches3 = image_builder_u32(b, 0x40);
	image_builder_u32(b, 0);
	image_builder_u32(b, 0);
	frame_image_rva(i, i->catch3);
	image_builder_u32(b, 0x38);
	i->tries3 = image_builder_u32(b, 0);
	image_builder_u32(b, 0);
	image_builder_u32(b, 1);
	image_builder_u32(b, 1);
	frame_image_rva(i, i->catches3);
	i->states3 = frame_image_rva(i, i->f);
	image_builder_u32(b, UINT32_MAX);
	frame_image_rva(i, rva_add(i->f, 9));
	image_builder_u32(b, 0);
	frame_image_rva(i, rva_add(i->f, 15));
	image_builder_u32(b, UINT32_MAX);
	frame_image_rva(i, i->catch3);
	image_builder_u32(b, 1);
	i->info3 = image_builder_u32(b, 0x19930522);
	image_builder_u32(b, 2);
	frame_image_rva(i, i->unwinds3);
	image_builder_u32(b, 1);
	frame_image_rva(i, i->tries3);
	image_builder_u32(b, 4);
	frame_image_rva(i, i->states3);
	image_builder_u32(b, 0x20);
	image_builder_u32(b, 0);
	image_builder_u32(b, 1);
}

/* Numbers below 128 are packed as twice themselves. */
static inline void frame_image_info4(struct frame_image *i)
{
	struct rva states, states_catch;

	i->unwinds4 = PUT(i, "\x04\x0e"); /* 2 states; 0: next is 1 byte back, a funclet */
	frame_image_rva(i, i->cleanup);
	PUT(i, "\x30");                       /* 1: next is 6 bytes back, nothing */
	i->catches4 = PUT(i, "\x04\x11\x80"); /* 2; adjectives, a relative continuation */
	frame_image_rva(i, i->catch4);
	PUT(i, "\x1e\x18"); /* 15; an absolute continuation */
	frame_image_rva(i, i->catch4);
	i->continuation4 = frame_image_rva(i, i->resume4b);
	i->tries4 = PUT(i, "\x02\x00\x00\x02"); /* 1: states 0 to 0, catches to 1 */
	frame_image_rva(i, i->catches4);
	i->states4 = PUT(i, "\x04\x12\x02\x0c\x00"); /* 2: 9 is 0; 15 is -1 */
	states_catch = PUT(i, "\x02\x00\x04");       /* 1: 0 is 1 */
	i->info4 = PUT(i, "\x38");
	frame_image_rva(i, i->unwinds4);
	frame_image_rva(i, i->tries4);
	frame_image_rva(i, i->states4);
	i->info4_catch = PUT(i, "\x29");
	frame_image_rva(i, i->unwinds4);
	frame_image_rva(i, states_catch);
	PUT(i, "\x70");
	states = PUT(i, "\x02\x00\x00"); /* 1: 0 is -1 */
	i->segments = PUT(i, "\x04");
	frame_image_rva(i, i->first);
	frame_image_rva(i, states);
	frame_image_rva(i, i->second);
	frame_image_rva(i, states);
}

/* Unwind information of `sub rsp, 40` with a handler and the first word of its data. */
static inline struct rva frame_image_handled(struct frame_image *i, struct rva function,
					     uint32_t size, struct rva handler,
					     uint32_t word)
{
	struct rva info =
		(image_builder_align(&i->t.b, 4), PUT(i, "\x19\x04\x01\x00\x04\x42\0\0"));

	frame_image_rva(i, handler);
	image_builder_u32(&i->t.b, word);
	built_graph_row(&i->t, function, size);
	i->t.rows[i->t.row_count - 1].unwind = info;
	return rva_add(info, 12);
}

/* All but what built_graph_discover adds.  Rows stand in the order of their begins. */
static inline void frame_image_make(struct frame_image *i)
{
	struct rva separated;

	memset(i, 0, sizeof(*i));
	built_graph_init(&i->t);
	frame_image_text(i);
	image_builder_section(&i->t.b, ".xdata1", BUILT_CONST);
	frame_image_info3(i);
	frame_image_info4(i);
	separated = PUT(i, "\x22");
	frame_image_rva(i, i->segments);
	i->data3 = frame_image_handled(i, i->f, 23, i->handler3, i->info3.v);
	i->data3_catch = frame_image_handled(i, i->catch3, 16, i->handler3, i->info3.v);
	built_graph_row(&i->t, i->handler3, 3);
	frame_image_handled(i, i->h, 19, i->handler4, i->info4.v);
	frame_image_handled(i, i->catch4, 11, i->handler4, i->info4_catch.v);
	frame_image_handled(i, i->first, 9, i->handler4, separated.v);
	frame_image_handled(i, i->second, 10, i->handler4, separated.v);
	built_graph_row(&i->t, i->handler4, 3);
	i->labels =
		frame_image_handled(i, i->labelled, 10, i->handler_asm, i->labelled.v + 4);
	frame_image_rva(i, rva_add(i->labelled, 10)); /* its end */
	image_builder_u32(&i->t.b, 0x28);
	built_graph_row(&i->t, i->handler_asm, 3);
	i->t.rows[i->t.row_count - 1].unwind = PUT(i, "\x01\0\0\0");
	i->cookie = frame_image_handled(i, i->guarded, 14, i->handler_gs, 0x20);
	built_graph_row(&i->t, i->handler_gs, 3);
	built_graph_export(&i->t, i->f);
	built_graph_export(&i->t, i->h);
	built_graph_export(&i->t, i->first);
	built_graph_export(&i->t, i->second);
	built_graph_export(&i->t, i->labelled);
	built_graph_export(&i->t, i->guarded);
	built_graph_export(&i->t, i->g);
}

/* Overwrites a word of exception data. */
static inline void frame_image_set(struct frame_image *i, struct rva at, uint32_t word)
{
	store_u32(image_builder_at(&i->t.b, at), word);
}

#endif
