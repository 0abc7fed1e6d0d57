/* The table, byte by byte:
 *
 *     u8        encoding of @LPStart; 0xff: none, landing pads count from the
 *               function's begin
 *     pointer   @LPStart in that encoding, if any
 *     u8        encoding of @TType; 0xff: none
 *     uleb128   offset to the type table, if there is one
 *     u8        encoding of the call sites' fields
 *     uleb128   bytes of the call-site table
 *     records   begin, size, landing pad (all in that encoding), uleb128 action
 *
 * The action and type tables behind it are not read: they hold no code
 * addresses.  On x64 Windows a function has its table at the handler data of
 * its unwind information, so "the function" is one row of .pdata.  A function
 * that GCC splits into a hot and a cold part has two tables, each with landing
 * pads in its own part (observed: all 1,456 tables of GCC 12's libstdc++-6.dll
 * are without @LPStart); @LPStart is read all the same, for those that are not.
 *
 * That the bytes are such a table at all is only known by the name of the
 * personality, which a stripped image does not have.  So the reader refuses
 * whatever no compiler writes: that is what the caller classifies handlers by.
 *
 * Sources: Itanium C++ ABI, "Exception Handling Tables" (draft); encodings: LSB
 * Core, "DWARF Extensions"; GCC's unwind-pe.h for how each is applied.
 */
#include "pe/lsda.h"

enum {
	ENCODING_OMIT = 0xff,
	ENCODING_FORMAT = 0x0f,
	ENCODING_APPLICATION = 0x70,
	ENCODING_INDIRECT = 0x80,
	FORMAT_POINTER = 0x00,
	FORMAT_ULEB128 = 0x01,
	FORMAT_UDATA2 = 0x02,
	FORMAT_UDATA4 = 0x03,
	FORMAT_UDATA8 = 0x04,
	FORMAT_SLEB128 = 0x09,
	FORMAT_SDATA2 = 0x0a,
	FORMAT_SDATA4 = 0x0b,
	FORMAT_SDATA8 = 0x0c,
	APPLICATION_ABSOLUTE = 0x00,
	APPLICATION_PC_RELATIVE = 0x10,
	RECORD_BYTES_MIN = 4, /* four fields of one byte */
};

/* One value in the format of `encoding`; the reader fails on others. */
static int64_t read_value(struct reader *r, uint8_t encoding)
{
	switch (encoding & ENCODING_FORMAT) {
	case FORMAT_ULEB128:
		return (int64_t)read_uleb128(r);
	case FORMAT_SLEB128:
		return read_sleb128(r);
	case FORMAT_UDATA2:
		return read_u16(r);
	case FORMAT_SDATA2:
		return (int16_t)read_u16(r);
	case FORMAT_UDATA4:
		return read_u32(r);
	case FORMAT_SDATA4:
		return (int32_t)read_u32(r);
	case FORMAT_POINTER:
	case FORMAT_UDATA8:
	case FORMAT_SDATA8:
		return (int64_t)read_u64(r);
	default:
		r->failed = true;
		return 0;
	}
}

static enum status malformed(struct rva data, const char *what, struct diag *diag)
{
	return diag_fail_at(diag, STATUS_MALFORMED, data, "exception table: %s", what);
}

/* What an @LPStart of `value` at `site` resolves to. */
static enum status resolve_lp_start(const struct image *image, struct lsda *lsda,
				    int64_t value, struct diag *diag)
{
	uint64_t address = (uint64_t)value;

	switch (lsda->lp_start_encoding & (ENCODING_APPLICATION | ENCODING_INDIRECT)) {
	case APPLICATION_PC_RELATIVE:
		address += lsda->lp_start_site.v;
		break;
	case APPLICATION_ABSOLUTE:
		address -= image->headers.image_base;
		break;
	default:
		return malformed(lsda->lp_start_site, "unknown @LPStart encoding", diag);
	}
	if (address > UINT32_MAX || !image_section_at(image, rva_of((uint32_t)address)))
		return malformed(lsda->lp_start_site, "@LPStart outside the image", diag);
	lsda->lp_start = rva_of((uint32_t)address);
	return STATUS_OK;
}

/* Reads up to the records. */
static enum status read_header(const struct image *image, struct rva data, struct reader *r,
			       struct lsda *lsda, uint64_t *ret_table_size,
			       struct diag *diag)
{
	lsda->lp_start_encoding = read_u8(r);
	if (lsda->lp_start_encoding != ENCODING_OMIT) {
		int64_t value;
		enum status status;

		lsda->has_lp_start = true;
		lsda->lp_start_site = rva_add(data, (uint32_t)r->pos);
		value = read_value(r, lsda->lp_start_encoding);
		if (r->failed)
			return malformed(data, "unknown @LPStart encoding", diag);
		status = resolve_lp_start(image, lsda, value, diag);
		if (status != STATUS_OK)
			return status;
	}
	if (read_u8(r) != ENCODING_OMIT)
		(void)read_uleb128(r);
	lsda->call_site_encoding = read_u8(r);
	*ret_table_size = read_uleb128(r);
	if (r->failed || *ret_table_size > reader_left(r))
		return malformed(data, "cut off", diag);
	if (lsda->call_site_encoding & ~ENCODING_FORMAT)
		return malformed(data, "unknown call-site encoding", diag);
	return STATUS_OK;
}

/* One record, whose reader begins at `table`.  `*end` is where the one before
 * ended in the function. */
static enum status read_record(struct reader *r, struct rva table, uint32_t function_size,
			       const struct lsda *lsda, uint64_t *end,
			       struct lsda_site *ret_site, struct diag *diag)
{
	uint64_t begin = (uint64_t)read_value(r, lsda->call_site_encoding);
	uint64_t size = (uint64_t)read_value(r, lsda->call_site_encoding);
	size_t field = r->pos;
	int64_t landing_pad = read_value(r, lsda->call_site_encoding);
	size_t field_end = r->pos;

	(void)read_uleb128(r);
	if (r->failed)
		return malformed(table, "a call site is cut off", diag);
	if (begin < *end || begin > function_size || size > function_size - begin)
		return malformed(table, "call sites out of order or outside the function",
				 diag);
	if (!lsda->has_lp_start && (landing_pad < 0 || landing_pad >= function_size))
		return malformed(table, "a landing pad outside the function", diag);
	*end = begin + size;
	*ret_site = (struct lsda_site){
		.begin = (uint32_t)begin,
		.size = (uint32_t)size,
		.landing_pad = landing_pad,
		.field = rva_add(table, (uint32_t)field),
		.field_size = (uint8_t)(field_end - field),
	};
	return STATUS_OK;
}

static enum status check_pad(const struct image *image, const struct lsda *lsda,
			     const struct lsda_site *site, struct diag *diag)
{
	uint64_t pad = lsda->lp_start.v + (uint64_t)site->landing_pad;

	if (lsda->has_lp_start &&
	    (pad > UINT32_MAX || !image_section_at(image, rva_of((uint32_t)pad))))
		return malformed(site->field, "a landing pad outside the image", diag);
	return STATUS_OK;
}

static enum status read_records(const struct image *image, struct arena *arena,
				struct rva table, struct reader *r,
				uint32_t function_size, struct lsda *lsda,
				struct diag *diag)
{
	uint64_t end = 0;

	lsda->sites = arena_array(arena, reader_left(r) / RECORD_BYTES_MIN,
				  sizeof(*lsda->sites));
	if (!lsda->sites)
		return diag_no_memory(diag);
	while (reader_left(r)) {
		struct lsda_site site;
		enum status status = read_record(r, table, function_size, lsda, &end, &site,
						 diag);

		if (status == STATUS_OK)
			status = check_pad(image, lsda, &site, diag);
		if (status != STATUS_OK)
			return status;
		if (site.landing_pad != 0)
			lsda->sites[lsda->site_count++] = site;
	}
	return STATUS_OK;
}

enum status lsda_read(const struct image *image, struct arena *arena, struct rva data,
		      struct rva begin, uint32_t function_size, struct lsda *ret_lsda,
		      uint32_t *ret_read, struct diag *diag)
{
	struct reader r = image_reader(image, data), records;
	struct lsda lsda = {0};
	uint64_t table_size = 0;
	enum status status = read_header(image, data, &r, &lsda, &table_size, diag);

	if (ret_read)
		*ret_read = (uint32_t)r.pos;
	if (status != STATUS_OK)
		return status;
	lsda.size = (uint32_t)(r.pos + table_size);
	records = reader_of(r.data + r.pos, (size_t)table_size);
	if (!lsda.has_lp_start)
		lsda.lp_start = begin;
	status = read_records(image, arena, rva_add(data, (uint32_t)r.pos), &records,
			      function_size, &lsda, diag);
	if (ret_read)
		*ret_read += (uint32_t)records.pos;
	if (status == STATUS_OK)
		*ret_lsda = lsda;
	return status;
}
