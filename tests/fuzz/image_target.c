/* A PE image through all that reads and writes images.
 *
 * Promises: an image is refused with a status and a message, or it is instrumented
 * and relinked.  Whatever is written can be read again; what is relinked, in whatever
 * order, verifies, and can be relinked again, with the result verified again.
 */
#include <string.h>

#include "base/sha256.h"
#include "fuzz_target.h"
#include "graph/graph.h"
#include "layout/order.h"
#include "layout/placement.h"
#include "layout/relink.h"
#include "layout/verify.h"
#include "pe/codeview.h"
#include "pe/image_kind.h"
#include "pe/section_name.h"
#include "pe/toolchain.h"
#include "probe_plan.h"
#include "probe_writer.h"

struct input {
	struct image image;
	struct graph graph;
};

/* What the tools call an image: opened, supported, discovered. */
static enum status input_open(struct input *input, const void *data, size_t size,
			      struct diag *diag)
{
	enum status status = image_open_bytes(&input->image, data, size, "input", diag);

	if (status != STATUS_OK)
		return status;
	status = image_check_supported(&input->image, diag);
	if (status == STATUS_OK)
		status = graph_discover(&input->graph, &input->image, NULL, diag);
	if (status != STATUS_OK)
		image_release(&input->image);
	return status;
}

static void input_close(struct input *input)
{
	graph_release(&input->graph);
	image_release(&input->image);
}

static void check(bool holds, const char *promise)
{
	if (!holds)
		fuzz_fail(promise, NULL);
}

static uint32_t function_end(const struct graph *graph, uint32_t id)
{
	return graph->functions.data[id].begin.v + graph->functions.data[id].size;
}

/* The invariants of graph.h. */
static void check_graph(const struct graph *graph)
{
	uint32_t next = 0;

	for (uint32_t i = 1; i < graph->functions.len; i++)
		check(function_end(graph, i - 1) <= graph->functions.data[i].begin.v,
		      "functions ascend and do not overlap");
	for (uint32_t i = 0; i < graph->blocks.len; i++) {
		const struct block *block = &graph->blocks.data[i];

		check(i == 0 || block[-1].begin.v + block[-1].size <= block->begin.v,
		      "blocks ascend and do not overlap");
		check(block->first_function == next && block->function_count > 0,
		      "the functions of a block are consecutive");
		next += block->function_count;
		check(next <= graph->functions.len,
		      "every function lies in exactly one block");
		check(function_end(graph, next - 1) <= block->begin.v + block->size,
		      "a block holds its functions");
	}
	check(next == graph->functions.len, "every function lies in exactly one block");
	for (uint32_t i = 1; i < graph->refs.len; i++)
		check(graph->refs.data[i - 1].site.v < graph->refs.data[i].site.v,
		      "references ascend by site, one per site");
}

static enum status relink(const struct graph *graph, uint64_t seed,
			  enum placement placement, struct relinked *ret_relinked,
			  struct diag *diag)
{
	const struct relink_options options = {0};
	struct layout layout = {0};
	struct order order = {0};
	enum status status = seed ? order_random(graph, seed, &order, diag)
				  : order_original(graph, &order, diag);

	if (status == STATUS_OK)
		status = layout_place(graph, &order, placement, &layout, diag);
	if (status == STATUS_OK)
		status = relink_write(graph, &layout, &options, ret_relinked, diag);
	layout_release(&layout);
	order_release(&order);
	return status;
}

static void verify(const struct graph *graph, const struct relinked *relinked)
{
	struct verify_report report;
	struct image image;
	struct diag diag;

	diag_init(&diag);
	if (image_open_bytes(&image, relinked->bytes, relinked->size, "output", &diag) !=
	    STATUS_OK)
		fuzz_fail("what is relinked can be opened", &diag);
	if (verify_relink(graph, &image, relinked->moves.data, relinked->moves.len, &report,
			  &diag) != STATUS_OK)
		fuzz_fail("what is relinked verifies", &diag);
	image_release(&image);
}

/* Relinks `graph`; seed 0 moves nothing.  What comes out is relinked again. */
static void try_relink(const struct graph *graph, uint64_t seed, enum placement placement,
		       bool again)
{
	struct relinked relinked;
	struct input output;
	struct diag diag;
	enum status status;

	diag_init(&diag);
	status = relink(graph, seed, placement, &relinked, &diag);
	if (status != STATUS_OK) {
		fuzz_check_failure(status, &diag);
		return;
	}
	verify(graph, &relinked);
	if (again) {
		if (input_open(&output, relinked.bytes, relinked.size, &diag) != STATUS_OK)
			fuzz_fail("what was relinked is accepted again", &diag);
		check_graph(&output.graph);
		try_relink(&output.graph, 0, placement, false);
		input_close(&output);
	}
	relinked_release(&relinked);
}

static void try_instrument(const struct input *input)
{
	const struct probe_options options = {.agent = "agent.dll", .name = "input"};
	const struct probe_filter filter = {0};
	struct probe_plan plan;
	struct probed probed;
	struct input output;
	struct diag diag;
	enum status status;

	diag_init(&diag);
	status = probe_plan_make(&input->graph, &filter, &plan, &diag);
	if (status != STATUS_OK) {
		fuzz_check_failure(status, &diag);
		return;
	}
	if (plan.functions.len > 0) {
		status = probe_write(&input->graph, &plan, &options, &probed, &diag);
		if (status != STATUS_OK) {
			fuzz_check_failure(status, &diag);
		} else {
			if (input_open(&output, probed.bytes, probed.size, &diag) !=
			    STATUS_OK)
				fuzz_fail("an instrumented image can be read", &diag);
			input_close(&output);
			probed_release(&probed);
		}
	}
	probe_plan_release(&plan);
}

/* What the doctor looks at, of refused images too. */
static void examine(const void *data, size_t size)
{
	struct image image;
	struct toolchain toolchain;
	struct debug_directory debug;
	struct codeview codeview;

	if (image_open_bytes(&image, data, size, "input", NULL) != STATUS_OK)
		return;
	check(toolchain_read(&image, &toolchain, NULL) == STATUS_OK, "signs can be read");
	check(image_kind_name(image_kind_of(&image)) != NULL, "an image has a kind");
	for (uint32_t i = 0; i < image.section_count; i++)
		check(strlen(section_name(&image, &image.sections[i])) < size,
		      "a section's name ends in the file");
	if (debug_directory_read(&image, &debug, NULL) == STATUS_OK) {
		codeview_read(&image, &debug, &codeview);
		check(!codeview.pdb || strlen(codeview.pdb) < size,
		      "a PDB's name ends in the file");
	}
	image_release(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sha256 hash = sha256_of(data, size);
	struct input input;
	struct diag diag;
	enum status status;

	examine(data, size);
	diag_init(&diag);
	status = input_open(&input, data, size, &diag);
	if (status != STATUS_OK) {
		fuzz_check_failure(status, &diag);
		return 0;
	}
	check_graph(&input.graph);
	try_instrument(&input);
	try_relink(&input.graph, 0, PLACEMENT_EXCHANGE, true);
	try_relink(&input.graph, 1 + hash.bytes[0], PLACEMENT_EXCHANGE, true);
	try_relink(&input.graph, 1 + hash.bytes[1], PLACEMENT_APPEND, true);
	input_close(&input);
	return 0;
}
