#include "order_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const order_format_names[ORDER_FORMAT_COUNT + 1] = {
#define X(id, name) [ORDER_FORMAT_##id] = name,
	ORDER_FORMAT_LIST(X)
#undef X
};

/* The names of an image, sorted, each with what has become of it. */
struct list_name {
	const char *text;
	bool written;
};

struct name_index {
	struct list_name *names; /* owned */
	uint32_t count;
};

static int compare_names(const void *a, const void *b)
{
	const struct list_name *x = a, *y = b;

	return strcmp(x->text, y->text);
}

static bool index_names(const struct graph *graph, struct name_index *index)
{
	index->names = calloc((size_t)graph->functions.len + 1, sizeof(*index->names));
	if (!index->names)
		return false;
	for (uint32_t i = 0; i < graph->functions.len; i++)
		if (graph->functions.data[i].name)
			index->names[index->count++].text = graph->functions.data[i].name;
	if (index->count)
		qsort(index->names, index->count, sizeof(*index->names), compare_names);
	return true;
}

/* The first of those that are equal; the name is there. */
static struct list_name *find_name(const struct name_index *index, const char *text)
{
	uint32_t low = 0, high = index->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (strcmp(index->names[middle].text, text) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return &index->names[low];
}

static bool is_shared(const struct name_index *index, const struct list_name *name)
{
	return name + 1 < index->names + index->count &&
	       strcmp(name[0].text, name[1].text) == 0;
}

/* A name ends at a blank, and a line that begins with a comment's sign is none.  One that
 * begins with 0x is an address to who reads the list as an order file.  A linker
 * script has more signs of its own; patterns are among them. */
static bool can_be_written(const char *name, enum order_format format)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$@";

	if (format == ORDER_FORMAT_GNU_LD)
		return name[strspn(name, letters)] == '\0';
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return false;
	return *name != '\0' && *name != '#' && *name != ';' &&
	       !(name[0] == '0' && (name[1] == 'x' || name[1] == 'X'));
}

static void write_name(FILE *out, const char *name, enum order_format format)
{
	if (format == ORDER_FORMAT_GNU_LD)
		fprintf(out, "*(.text$%s .text.*$%s)\n", name, name);
	else
		fprintf(out, "%s\n", name);
}

static void write_function(FILE *out, const char *name, enum order_format format,
			   const struct name_index *index, struct order_list_counts *counts)
{
	struct list_name *found;

	if (!name || !can_be_written(name, format)) {
		counts->unnamed++;
		return;
	}
	found = find_name(index, name);
	if (is_shared(index, found))
		counts->ambiguous++;
	else
		counts->named++;
	if (!found->written)
		write_name(out, name, format);
	found->written = true;
}

char *order_list_text(const struct graph *graph, const struct function_order *order,
		      enum order_format format, struct order_list_counts *ret_counts,
		      size_t *ret_size)
{
	struct order_list_counts counts = {0};
	struct name_index index = {0};
	char *text = NULL;
	FILE *out = index_names(graph, &index) ? open_memstream(&text, ret_size) : NULL;
	bool ok = out != NULL;

	for (uint32_t i = 0; out && i < order->functions.len; i++)
		write_function(out, graph->functions.data[order->functions.data[i]].name,
			       format, &index, &counts);
	if (out) {
		ok = !ferror(out);
		ok = fclose(out) == 0 && ok;
	}
	free(index.names);
	if (!ok) {
		free(text);
		return NULL;
	}
	*ret_counts = counts;
	return text;
}
