/* The function table and unwind information, read from the bytes.
 *
 * The system's unwinder searches the table by bisection, so it must ascend.  Its
 * rows must be the original's, each with begin and end mapped and with the same
 * unwind information, which does not move.  Handlers and chained rows in there
 * are proven here; prolog codes and handler data are compared with all other
 * bytes, and what handler data says of code is among the graph's references.
 */
#include "layout/verify_state.h"

#include <stdlib.h>
#include <string.h>

#include "pe/unwind_info.h"

static enum status check_ascending(struct verifier *v, const uint8_t *rows, uint32_t count)
{
	uint32_t end = 0;

	for (uint32_t i = 0; i < count; i++, rows += RUNTIME_FUNCTION_BYTES) {
		if (load_u32(rows) < end)
			return verify_differs(
				v, rva_of(load_u32(rows)), end, load_u32(rows),
				"row %u of the function table is out of order", i);
		end = load_u32(rows + 4);
	}
	return STATUS_OK;
}

/* One row against the row of the original that should stand here. */
static enum status compare_row(struct verifier *v, const struct runtime_function *was,
			       const uint8_t *is)
{
	struct rva begin = verify_map(v, was->begin);
	struct rva end = verify_map_end(v, was->end);

	if (was->begin.v == was->end.v)
		end = begin;
	if (load_u32(is) != begin.v)
		return verify_differs(v, begin, begin.v, load_u32(is),
				      "the begin of a row of the function table");
	if (load_u32(is + 4) != end.v)
		return verify_differs(v, begin, end.v, load_u32(is + 4),
				      "the end of a row of the function table");
	if (load_u32(is + 8) != was->unwind.v)
		return verify_differs(
			v, begin, was->unwind.v, load_u32(is + 8),
			"the unwind information of a row of the function table");
	v->report->table_entries++;
	return STATUS_OK;
}

static enum status compare_rows(struct verifier *v, const uint8_t *rows)
{
	const struct function_table *table = &v->old_graph->tables.functions;
	uint32_t *order = NULL;
	enum status status;

	status = verify_new_order(v, table->data, offsetof(struct runtime_function, begin),
				  sizeof(*table->data), table->count,
				  "a row of the function table", &order);
	if (status == STATUS_OK)
		status = check_ascending(v, rows, table->count);
	for (uint32_t i = 0; status == STATUS_OK && i < table->count; i++)
		status = compare_row(v, &table->data[order[i]],
				     rows + (size_t)i * RUNTIME_FUNCTION_BYTES);
	free(order);
	return status;
}

/* A field of 4 bytes in unwind information, which has not moved. */
static enum status prove_field(struct verifier *v, const struct runtime_function *row,
			       struct rva site, struct rva expected, const char *what)
{
	const uint8_t *is = image_bytes(v->new_image, site, 4);

	if (!is)
		return verify_fail(v, site, "%s cannot be read", what);
	if (load_u32(is) != expected.v)
		return verify_differs(v, verify_map(v, row->begin), expected.v,
				      load_u32(is), "%s", what);
	verify_prove(v, site, 4);
	v->report->table_entries++;
	return STATUS_OK;
}

static enum status check_info(struct verifier *v, const struct runtime_function *row)
{
	struct unwind_info info;
	enum status status = unwind_info_read(v->old_image, row->unwind, &info, v->diag);

	if (status != STATUS_OK)
		return status; /* function_table_read has proven it */
	if (info.flags & UNWIND_CHAININFO) {
		status = prove_field(v, row, info.chained.site,
				     verify_map(v, info.chained.begin),
				     "the begin of a chained row");
		if (status == STATUS_OK)
			status = prove_field(v, row, rva_add(info.chained.site, 4),
					     verify_map_end(v, info.chained.end),
					     "the end of a chained row");
	} else if (info.flags) {
		status = prove_field(v, row, info.handler_site, verify_map(v, info.handler),
				     "the exception handler");
	}
	return status;
}

enum status verify_unwind(struct verifier *v)
{
	const struct function_table *table = &v->old_graph->tables.functions;
	struct data_directory was = v->old_image->directories[DIRECTORY_EXCEPTION];
	struct data_directory is = v->new_image->directories[DIRECTORY_EXCEPTION];
	uint32_t size = table->count * RUNTIME_FUNCTION_BYTES;
	const uint8_t *rows = image_bytes(v->new_image, is.rva, is.size);
	enum status status = STATUS_OK;

	if (table->count == 0)
		return STATUS_OK;
	if (!rows || is.size < size)
		return verify_differs(v, is.rva, was.size, is.size,
				      "the size of the function table");
	status = compare_rows(v, rows);
	for (uint32_t i = 0; status == STATUS_OK && i < table->count; i++)
		status = check_info(v, &table->data[i]);
	if (status == STATUS_OK)
		status = verify_sorted_table(v, was.rva, size);
	return status;
}
