#include "pe/scope_table.h"

enum { SCOPE_COUNT_BYTES = 4 };

enum status scope_table_read(const struct image *image, struct arena *arena,
			     struct rva data, struct scope_table *ret_table,
			     struct diag *diag)
{
	struct reader r = image_reader(image, data);
	struct scope_table table = {.count = read_u32(&r)};

	if (r.failed || table.count > reader_left(&r) / SCOPE_RECORD_BYTES)
		return diag_fail_at(diag, STATUS_MALFORMED, data,
				    "a scope table leaves the file's data");
	table.data = arena_array(arena, table.count, sizeof(*table.data));
	if (!table.data)
		return diag_no_memory(diag);
	for (uint32_t i = 0; i < table.count; i++) {
		struct scope_record *record = &table.data[i];

		record->begin = rva_of(read_u32(&r));
		record->end = rva_of(read_u32(&r));
		record->handler = rva_of(read_u32(&r));
		record->target = rva_of(read_u32(&r));
		record->site = rva_add(data, SCOPE_COUNT_BYTES + i * SCOPE_RECORD_BYTES);
	}
	*ret_table = table;
	return STATUS_OK;
}
