/* The page fault model.
 *
 * It is that of Syzygy's simulator (simulate/page_fault_simulation.cc): a function that is
 * entered needs all its pages, from the first to the last; a page that is not in memory
 * costs a fault, which reads it and those behind it, 8 pages in all.  Windows itself reads
 * a few pages behind the page or before it (Windows Internals, 4th edition, "Demand
 * Paging").
 *
 * One thing is added: a read ends with its section.  Windows maps each section of an image
 * by a subsection of its own (Windows Internals, "Section Objects"), with its own place in
 * the file, so what stands behind is another read.  Syzygy reads on.
 *
 * Whether a read goes on behind a page that is in memory makes no difference: what read
 * that page was a fault further up the section, or the faulting page would be in memory
 * too, and so it read as far as this one would.  That bounds the work: each page is read
 * once.
 *
 * Which bytes are touched is counted in a bit for each byte of the image, so that ranges
 * may overlap and need no sorting; memory that stays zero is not used up.
 */
#include "layout/fault_model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64 };

struct model {
	const struct fault_input *input;
	struct fault_result *result;
	uint64_t *bytes; /* a bit for each byte of the image's pages; owned */
};

static uint32_t page_of(uint64_t rva)
{
	return (uint32_t)(rva / FAULT_PAGE);
}

static void check_input(const struct fault_input *input)
{
	uint64_t end = 0;

	assert(input->cluster >= 1);
	for (uint32_t i = 0; i < input->section_count; i++) {
		const struct fault_section *section = &input->sections[i];

		assert(section->size && section->begin.v >= end);
		end = (uint64_t)section->begin.v + section->size;
		assert(end <= input->image_size);
	}
	for (uint32_t i = 0; i < input->range_count; i++) {
		assert(input->ranges[i].touch < input->touch_count);
		assert(i == 0 || input->ranges[i].touch >= input->ranges[i - 1].touch);
	}
}

static enum status model_init(struct model *model, struct diag *diag)
{
	const struct fault_input *input = model->input;
	struct fault_result *result = model->result;
	uint64_t pages = ((uint64_t)input->image_size + FAULT_PAGE - 1) / FAULT_PAGE;
	size_t table = (pages + 1) * sizeof(uint32_t);

	result->page_count = (uint32_t)pages;
	result->touch_count = input->touch_count;
	result->curve = calloc((size_t)input->touch_count + 1, sizeof(*result->curve));
	result->touched_by = malloc(table);
	result->read_by = malloc(table);
	model->bytes = calloc(pages * (FAULT_PAGE / WORD_BITS) + 1, sizeof(*model->bytes));
	if (!result->curve || !result->touched_by || !result->read_by || !model->bytes)
		return diag_no_memory(diag);
	memset(result->touched_by, 0xff, table);
	memset(result->read_by, 0xff, table);
	return STATUS_OK;
}

/* Marks the bytes [begin, end). */
static void mark(struct model *model, uint64_t begin, uint64_t end)
{
	while (begin < end) {
		uint64_t *word = &model->bytes[begin / WORD_BITS];
		uint64_t first = begin % WORD_BITS, count = WORD_BITS - first, bits;

		if (count > end - begin)
			count = end - begin;
		bits = (count == WORD_BITS ? UINT64_MAX : (1ull << count) - 1) << first;
		model->result->touched_bytes +=
			(uint64_t)__builtin_popcountll(bits & ~*word);
		*word |= bits;
		begin += count;
	}
}

/* The fault at `page`; the section ends with the page `last`.  See the top of the file for
 * why the first page that is in memory ends it. */
static void fault(struct model *model, uint32_t page, uint32_t last, uint32_t touch)
{
	struct fault_result *result = model->result;
	uint64_t end = (uint64_t)page + model->input->cluster;

	if (end > (uint64_t)last + 1)
		end = (uint64_t)last + 1;
	for (uint64_t p = page; p < end && result->read_by[p] == NO_TOUCH; p++) {
		result->read_by[p] = touch;
		result->read_pages++;
	}
	result->faults++;
}

/* Touches the bytes [begin, end), which lie in `section`. */
static void touch_part(struct model *model, const struct fault_section *section,
		       uint64_t begin, uint64_t end, uint32_t touch)
{
	struct fault_result *result = model->result;
	uint32_t last = page_of((uint64_t)section->begin.v + section->size - 1);

	for (uint32_t page = page_of(begin); page <= page_of(end - 1); page++) {
		if (result->read_by[page] == NO_TOUCH)
			fault(model, page, last, touch);
		if (result->touched_by[page] == NO_TOUCH) {
			result->touched_by[page] = touch;
			result->pages++;
		}
	}
	mark(model, begin, end);
}

/* The first section that ends behind `rva`. */
static uint32_t section_from(const struct fault_input *input, uint64_t rva)
{
	uint32_t low = 0, high = input->section_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct fault_section *section = &input->sections[middle];

		if ((uint64_t)section->begin.v + section->size <= rva)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void touch_range(struct model *model, const struct fault_range *range)
{
	const struct fault_input *input = model->input;
	uint64_t at = range->begin.v, end = at + range->size, inside = 0;

	for (uint32_t s = section_from(input, at); s < input->section_count; s++) {
		const struct fault_section *section = &input->sections[s];
		uint64_t section_end = (uint64_t)section->begin.v + section->size;
		uint64_t from = at > section->begin.v ? at : section->begin.v;
		uint64_t to = end < section_end ? end : section_end;

		if (from >= end)
			break;
		touch_part(model, section, from, to, range->touch);
		inside += to - from;
	}
	model->result->outside_bytes += range->size - inside;
}

/* What of the sections stands on touched pages, less what is touched. */
static void count_waste(struct model *model)
{
	const struct fault_input *input = model->input;
	struct fault_result *result = model->result;
	uint64_t bytes = 0;

	for (uint32_t s = 0; s < input->section_count; s++) {
		uint64_t begin = input->sections[s].begin.v;
		uint64_t end = begin + input->sections[s].size;

		while (begin < end) {
			uint64_t next = ((uint64_t)page_of(begin) + 1) * FAULT_PAGE;
			uint64_t stop = next < end ? next : end;

			if (result->touched_by[page_of(begin)] != NO_TOUCH)
				bytes += stop - begin;
			begin = stop;
		}
	}
	result->wasted_bytes = bytes - result->touched_bytes;
}

/* The areas of the finished curve. */
static void measure_curve(const struct fault_input *input, struct fault_result *result)
{
	uint64_t sum = 0;
	double timed = 0, width = 0;
	int64_t latest = input->times_ns && input->touch_count ? input->times_ns[0] : 0;

	for (uint32_t i = 0; i < input->touch_count; i++) {
		sum += result->curve[i];
		if (input->times_ns && i > 0 && input->times_ns[i] > latest) {
			/* Exact also where the times themselves are not in a double. */
			double step =
				(double)((uint64_t)input->times_ns[i] - (uint64_t)latest);

			timed += step * result->curve[i - 1];
			width += step;
			latest = input->times_ns[i];
		}
	}
	if (input->touch_count)
		result->area = (double)sum / input->touch_count;
	result->has_time = width > 0;
	if (result->has_time)
		result->time_area = timed / width;
}

enum status fault_model_run(const struct fault_input *input,
			    struct fault_result *ret_result, struct diag *diag)
{
	struct fault_result result = {0};
	struct model model = {.input = input, .result = &result};
	enum status status;
	uint32_t r = 0;

	check_input(input);
	status = model_init(&model, diag);
	for (uint32_t touch = 0; status == STATUS_OK && touch < input->touch_count;
	     touch++) {
		for (; r < input->range_count && input->ranges[r].touch == touch; r++)
			touch_range(&model, &input->ranges[r]);
		result.curve[touch] = result.faults;
	}
	free(model.bytes);
	if (status != STATUS_OK) {
		fault_result_release(&result);
		return status;
	}
	*ret_result = result;
	count_waste(&(struct model){.input = input, .result = ret_result});
	measure_curve(input, ret_result);
	return STATUS_OK;
}

void fault_result_release(struct fault_result *result)
{
	free(result->curve);
	free(result->touched_by);
	free(result->read_by);
	memset(result, 0, sizeof(*result));
}
