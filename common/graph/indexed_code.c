/* Position-indexed code: code that is reached and looked up by where it stands.
 *
 * The problem.  An engine that compiles code into its own image keeps one address, that of
 * the first byte, and a table of offsets; it jumps to base plus offset, and asks of a
 * return address which offset it has.  V8's embedded builtins are such (observed: node.exe
 * 18, 20 and 22: 1.4 to 1.9 MB of .text, reached through one relocated pointer, with
 * {offset, length, ...} for each builtin in .rdata).  No relocation says so, and each
 * builtin looks like a function that may move.
 *
 * The way.  Code of that kind is a *window*: a run of functions of which only the first
 * is referred to from outside, and that not by a call.  Two things prove that a window is
 * indexed: a table in data whose ascending words, at one distance, lead to instructions of
 * the window when they are added to the address that was taken; or that there are far
 * more functions than any program has in a row without a reference to them.  The
 * base need not be where a function begins (V8's is four bytes behind), so the whole
 * function that holds it belongs to the window.
 *
 * What is in a window is neither moved nor edited, and gets no probe.  Dead code that is
 * taken for indexed loses nothing by that: nobody runs it.
 *
 * Wine's relay stubs are the same in small: their descriptor holds the base and the table
 * (observed: libwine 8.0; it begins with the number below).  Only tracing of calls uses
 * them, so nothing shows when they have moved apart.
 *
 * Rejected: to look for the table alone.  Any ascending numbers are offsets of something,
 * and there are tens of thousands of addresses that could be their base.
 *
 * Cost: some steps for each function and reference; for windows in question one pass over
 * the data.
 */
#include <stdlib.h>

#include "graph/discovery.h"

enum {
	WINDOW_MIN = 24,        /* functions besides the first; with a table */
	WINDOW_CERTAIN = 128,   /* the same without, half of them with no reference */
	WINDOWS_LOOKED_UP = 32, /* the largest ones, in tables */
	TABLE_RUN = 24,         /* words of a table that lead to instructions */
	STRIDE_MAX = 8,         /* words from one to the next */
	STEPS_PER_FUNCTION = 64,
	RELAY_BYTES = 48,       /* of Wine's descriptor: six words, */
	RELAY_BASE = 24,        /* a pointer, */
	RELAY_OFFSETS = 32,     /* one to the table, */
	RELAY_ARGUMENTS = 40,   /* and one to what stands behind the table */
};
#define RELAY_MAGIC UINT64_C(0xdeb90002)

/* The lowest and the highest function of a kind; first > last when there is none. */
struct span {
	uint32_t first, last;
};

/* Who refers to a function; what it does itself does not count. */
struct referrers {
	struct span code;    /* functions whose code refers to it */
	struct span callers; /* those of them that do not merely take its address */
	struct rva taken;    /* the place in it whose address is taken first, or 0 */
	bool data;           /* data leads to it */
	bool exported;       /* not by an address that a relocation or lea would show */
};

struct window {
	uint32_t first, end; /* functions; the end is exclusive */
	struct rva base;     /* whose address is taken */
	uint32_t size;       /* bytes behind the base */
	bool indexed;
};

struct window_search {
	struct discovery *d;
	struct referrers *of; /* by function; owned */
	VEC(struct window) windows;
	uint32_t relay_words; /* that may still be read for relay descriptors */
};

/* Fields of tables that describe a function and do not lead to it. */
static bool is_description(const struct ref *ref)
{
	return (ref->kind == REF_RVA && !ref->enters) || ref->kind == REF_RVA_END;
}

static bool takes_address(const struct ref *ref)
{
	return ref->kind == REF_ADDRESS || ref->kind == REF_VA64 || ref->kind == REF_VA32;
}

static void span_add(struct span *span, uint32_t id)
{
	if (id < span->first)
		span->first = id;
	if (id > span->last)
		span->last = id;
}

static bool span_is_empty(const struct span *span)
{
	return span->first > span->last;
}

static void note_ref(struct window_search *s, const struct ref *ref)
{
	uint32_t to = graph_function_at(s->d->graph, ref->target);
	uint32_t from = graph_function_at(s->d->graph, ref->site);
	struct referrers *of;

	if (to == NO_FUNCTION || to == from || (from == NO_FUNCTION && is_description(ref)))
		return;
	of = &s->of[to];
	if (takes_address(ref) && of->taken.v == 0)
		of->taken = ref->target;
	if (from == NO_FUNCTION) {
		of->data = true;
		of->exported |= !takes_address(ref);
		return;
	}
	span_add(&of->code, from);
	if (!takes_address(ref))
		span_add(&of->callers, from);
}

static bool note_refs(struct window_search *s)
{
	const struct graph *graph = s->d->graph;
	const struct span empty = {UINT32_MAX, 0};

	s->of = calloc((size_t)graph->functions.len + 1, sizeof(*s->of));
	if (!s->of)
		return false;
	for (uint32_t i = 0; i < graph->functions.len; i++)
		s->of[i].code = s->of[i].callers = empty;
	for (uint32_t i = 0; i < graph->refs.len; i++)
		note_ref(s, &graph->refs.data[i]);
	return true;
}

/* The end of the functions behind `first` that neither data nor a function before
 * `first` leads to, all in one section. */
static uint32_t window_limit(const struct window_search *s, uint32_t first)
{
	const struct graph *graph = s->d->graph;
	const struct code_range *range =
		discovery_range(s->d, graph->functions.data[first].begin);
	uint32_t end = first + 1;

	while (end < graph->functions.len && !s->of[end].data &&
	       s->of[end].code.first >= first &&
	       rva_in(graph->functions.data[end].begin, range->begin, range->size))
		end++;
	return end;
}

/* The greatest end up to `limit` that leaves out all who refer to what is before it. */
static uint32_t window_end(const struct window_search *s, uint32_t first, uint32_t limit)
{
	uint32_t end = first + 1, highest = 0;

	for (uint32_t i = first + 1; i < limit; i++) {
		if (s->of[i].code.last > highest)
			highest = s->of[i].code.last;
		if (highest <= i)
			end = i + 1;
	}
	return end;
}

/* Whether the window needs no table to be one. */
static bool is_certain(const struct window_search *s, const struct window *w)
{
	const struct referrers *head = &s->of[w->first];
	uint32_t count = w->end - w->first - 1, alone = 0;

	if (count < WINDOW_CERTAIN || head->exported ||
	    (!span_is_empty(&head->callers) &&
	     (head->callers.first < w->first || head->callers.last >= w->end)))
		return false;
	for (uint32_t i = w->first + 1; i < w->end; i++)
		alone += span_is_empty(&s->of[i].code);
	return alone >= count / 2;
}

static void add_window(struct window_search *s, uint32_t first, uint32_t end)
{
	const struct function *last = &s->d->graph->functions.data[end - 1];
	struct window window = {.first = first, .end = end, .base = s->of[first].taken};

	if (end - first - 1 < WINDOW_MIN || window.base.v == 0)
		return;
	window.size = last->begin.v + last->size - window.base.v;
	window.indexed = is_certain(s, &window);
	if (!vec_push(&s->windows, window))
		s->d->out_of_memory = true;
}

/* Steps are bounded, because functions can be made to be gone over again for each one
 * before them. */
static void find_windows(struct window_search *s)
{
	uint32_t count = s->d->graph->functions.len;
	uint64_t steps = (uint64_t)count * STEPS_PER_FUNCTION;

	for (uint32_t first = 0, end; first < count; first = end) {
		uint32_t limit = window_limit(s, first);

		end = window_end(s, first, limit);
		add_window(s, first, end);
		if (steps < limit - first)
			return;
		steps -= limit - first;
	}
}

static int compare_windows(const void *a, const void *b)
{
	const struct window *x = a, *y = b;

	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

/* A word that may be an offset into a window, and how many of its like stand before it,
 * by their distance. */
struct offset_word {
	uint64_t index; /* of the word; 0: none yet */
	uint32_t value;
	uint8_t run[STRIDE_MAX + 1];
};

/* Words of data in search of tables for one window. */
struct table_search {
	struct window *window;
	const uint8_t *map; /* of the code, from the window's base on */
	uint64_t followed;  /* index of the first word that no table found took in */
	struct offset_word recent[STRIDE_MAX];
};

static bool leads_to_code(const struct discovery *d, struct rva base, uint32_t offset)
{
	return (graph_code_state(d->graph, rva_add(base, offset)) & CODE_STATE) ==
	       CODE_START;
}

/* Draws all that the table at `words` leads to into the window; `at` and `stride` in
 * words.  Gives the place of the first word that is none of the table's. */
static size_t follow_table(const struct discovery *d, struct window *w,
			   const uint8_t *words, size_t count, size_t at, size_t stride)
{
	uint32_t value = load_u32(words + 4 * at);

	for (at += stride; at < count; at += stride) {
		uint32_t next = load_u32(words + 4 * at), function;

		if (next <= value || !leads_to_code(d, w->base, next))
			break;
		value = next;
		function = graph_function_at(d->graph, rva_add(w->base, next));
		if (function != NO_FUNCTION && function >= w->end)
			w->end = function + 1;
	}
	return at;
}

/* Adds the word `value`, which leads into the window; the distance at which a table
 * stands then, or 0. */
static uint32_t add_word(struct table_search *t, uint64_t index, uint32_t value)
{
	struct offset_word word = {.index = index, .value = value};
	uint32_t found = 0;

	for (uint32_t stride = 1; stride <= STRIDE_MAX; stride++) {
		const struct offset_word *before =
			&t->recent[(index + STRIDE_MAX - stride) % STRIDE_MAX];

		word.run[stride] = 1;
		if (before->index + stride == index && before->value < value)
			word.run[stride] = (uint8_t)(before->run[stride] + 1);
		if (word.run[stride] == TABLE_RUN) {
			word.run[stride]--;
			found = stride;
		}
	}
	t->recent[index % STRIDE_MAX] = word;
	return found;
}

/* The place that the pointer at `word` means; 0 when it leaves the image. */
static struct rva pointed_to(const struct discovery *d, const uint8_t *word)
{
	uint64_t value = load_u64(word) - d->image->headers.image_base;

	return rva_of(value < d->image->headers.size_of_image ? (uint32_t)value : 0);
}

/* Takes all functions from the first to the last that a relay descriptor leads to for a
 * window. */
static void add_relay(struct window_search *s, const uint8_t *descriptor)
{
	struct rva base = pointed_to(s->d, descriptor + RELAY_BASE);
	struct rva table = pointed_to(s->d, descriptor + RELAY_OFFSETS);
	struct rva behind = pointed_to(s->d, descriptor + RELAY_ARGUMENTS);
	uint32_t count = behind.v > table.v ? (behind.v - table.v) / 4 : 0;
	struct window window = {.base = base, .indexed = true, .first = UINT32_MAX};

	for (uint32_t i = 0; i < count && s->relay_words > 0; i++, s->relay_words--) {
		const uint8_t *word = image_bytes(s->d->image, rva_add(table, 4 * i), 4);
		uint32_t id = word ? graph_function_at(s->d->graph,
						       rva_add(base, load_u32(word)))
				   : NO_FUNCTION;

		if (id == NO_FUNCTION)
			continue;
		if (id < window.first)
			window.first = id;
		if (id >= window.end)
			window.end = id + 1;
	}
	if (window.first < window.end && !vec_push(&s->windows, window))
		s->d->out_of_memory = true;
}

static void find_relays(struct window_search *s)
{
	/* All of them, but however many descriptors name the same. */
	s->relay_words = (uint32_t)(s->d->image->size / 4);
	for (uint32_t i = 0; i < s->d->image->section_count; i++) {
		const struct section *section = &s->d->image->sections[i];
		uint32_t size = section->raw_size < section->virtual_size
					? section->raw_size
					: section->virtual_size;
		const uint8_t *bytes = image_bytes(s->d->image, section->rva, size);

		if (!bytes || (section->characteristics & SECTION_EXECUTE))
			continue;
		for (uint32_t at = 0; size - at >= RELAY_BYTES; at += 8)
			if (load_u64(bytes + at) == RELAY_MAGIC)
				add_relay(s, bytes + at);
	}
}

/* `searches` from the largest window to the smallest. */
static void search_section(struct window_search *s, const struct section *section,
			   struct table_search *searches, uint32_t count)
{
	uint32_t size = section->raw_size < section->virtual_size ? section->raw_size
								  : section->virtual_size;
	const uint8_t *words = image_bytes(s->d->image, section->rva, size);

	if (!words || (section->characteristics & SECTION_EXECUTE))
		return;
	for (size_t i = 0; i < size / 4; i++) {
		uint32_t value = load_u32(words + 4 * i);

		if (value == 0)
			continue;
		for (uint32_t k = 0; k < count && value < searches[k].window->size; k++) {
			uint64_t index = section->rva.v / 4 + i;
			uint32_t stride;
			size_t end;

			if ((searches[k].map[value] & CODE_STATE) != CODE_START)
				continue;
			stride = add_word(&searches[k], index, value);
			if (stride == 0 || index < searches[k].followed)
				continue;
			searches[k].window->indexed = true;
			end = follow_table(s->d, searches[k].window, words, size / 4, i,
					   stride);
			searches[k].followed = section->rva.v / 4 + end;
		}
	}
}

static void search_tables(struct window_search *s)
{
	struct table_search searches[WINDOWS_LOOKED_UP] = {0};
	uint32_t count = s->windows.len;

	if (count == 0)
		return;
	qsort(s->windows.data, count, sizeof(*s->windows.data), compare_windows);
	if (count > WINDOWS_LOOKED_UP)
		count = WINDOWS_LOOKED_UP;
	for (uint32_t i = 0; i < count; i++) {
		searches[i].window = &s->windows.data[i];
		searches[i].map = discovery_state(s->d, s->windows.data[i].base);
	}
	for (uint32_t i = 0; i < s->d->image->section_count; i++)
		search_section(s, &s->d->image->sections[i], searches, count);
}

static void doubt_window(struct discovery *d, const struct window *w)
{
	for (uint32_t i = w->first; i < w->end; i++)
		discovery_doubt(d, d->graph->functions.data[i].begin,
				PIN_POSITION_INDEXED);
}

void indexed_code_find(struct discovery *d)
{
	struct window_search s = {.d = d};

	if (note_refs(&s)) {
		find_windows(&s);
		search_tables(&s);
		find_relays(&s);
	} else {
		d->out_of_memory = true;
	}
	for (uint32_t i = 0; i < s.windows.len; i++)
		if (s.windows.data[i].indexed)
			doubt_window(d, &s.windows.data[i]);
	free(s.of);
	vec_release(&s.windows);
}
