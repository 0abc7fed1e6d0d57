/* Lines of code (C13 form; LLVM's PDB documentation has none of it: Microsoft's published
 * cvinfo.h, CV_DebugSSubsectionHeader_t and CV_DebugSLinesHeader_t).
 *
 * A subsection of lines is about one contribution: where it begins, and for each source
 * file of it the offsets at which lines begin.  One whose bytes stay together needs another
 * begin and nothing else.  Others (an object's whole text, as assemblers make it) are
 * written anew, one for each piece, which begins with the line that was in force there.
 *
 * Other subsections have no places: source files, inlined functions' lines, frame data.
 */
#include <stdlib.h>

#include "layout/pdb_parts.h"

enum {
	SUBSECTION_LINES = 0xf2,
	SUBSECTION_HEAD = 8, /* kind, size */
	LINES_HEAD = 12,     /* offset, section, flags, size */
	FILE_HEAD = 12,      /* file, count of lines, size */
	LINE_BYTES = 8,      /* offset, line and flags */
	COLUMN_BYTES = 4,
	HAS_COLUMNS = 1,
};

struct line {
	uint32_t offset;  /* bytes from the contribution's begin */
	uint32_t file;    /* as the file's head has it */
	uint32_t number;  /* with its flags */
	uint32_t columns; /* two of 16 bits */
	uint32_t place;   /* among the lines as they were read */
};

struct lines {
	VEC(struct line) list;
	bool has_columns;
};

static enum status bad(struct diag *diag)
{
	return diag_fail(diag, STATUS_BAD_SYMBOLS,
			 "a damaged PDB: a module's lines are cut off");
}

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

/* The lines of one source file. */
static enum status read_file(struct pdb_rewriting *rewriting, struct reader *r,
			     struct lines *lines)
{
	uint32_t file = read_u32(r), count = read_u32(r), size = read_u32(r);
	uint64_t need =
		(uint64_t)count * (LINE_BYTES + (lines->has_columns ? COLUMN_BYTES : 0));
	const uint8_t *numbers, *columns = NULL;

	if (r->failed || size < FILE_HEAD || need > size - FILE_HEAD ||
	    size - FILE_HEAD > reader_left(r))
		return bad(rewriting->diag);
	numbers = read_bytes(r, (size_t)count * LINE_BYTES);
	if (lines->has_columns)
		columns = read_bytes(r, (size_t)count * COLUMN_BYTES);
	read_skip(r, (size_t)(size - FILE_HEAD - need));
	for (uint32_t i = 0; i < count; i++) {
		struct line line = {load_u32(numbers + (size_t)i * LINE_BYTES), file,
				    load_u32(numbers + (size_t)i * LINE_BYTES + 4),
				    columns ? load_u32(columns + (size_t)i * COLUMN_BYTES)
					    : 0,
				    lines->list.len};

		if (!vec_push(&lines->list, line))
			return diag_no_memory(rewriting->diag);
	}
	return STATUS_OK;
}

static enum status read_lines(struct pdb_rewriting *rewriting, const uint8_t *bytes,
			      uint32_t size, struct lines *lines)
{
	struct reader r = reader_of(bytes, size);
	enum status status = STATUS_OK;

	read_skip(&r, LINES_HEAD);
	lines->has_columns = load_u16(bytes + 6) & HAS_COLUMNS;
	while (reader_left(&r) > 0 && status == STATUS_OK)
		status = read_file(rewriting, &r, lines);
	if (status == STATUS_OK && lines->list.len)
		qsort(lines->list.data, lines->list.len, sizeof(*lines->list.data),
		      compare_lines);
	return status;
}

/* Lines of one file: `count` from `line` on.  An offset before the piece is its begin. */
static bool put_file(struct pdb_bytes *to, const struct lines *lines,
		     const struct line *line, uint32_t count, uint32_t begin)
{
	uint32_t bytes = LINE_BYTES + (lines->has_columns ? COLUMN_BYTES : 0);
	bool room = pdb_bytes_u32(to, line->file) && pdb_bytes_u32(to, count) &&
		    pdb_bytes_u32(to, FILE_HEAD + count * bytes);

	for (uint32_t i = 0; i < count; i++)
		room = room &&
		       pdb_bytes_u32(to,
				     line[i].offset > begin ? line[i].offset - begin : 0) &&
		       pdb_bytes_u32(to, line[i].number);
	for (uint32_t i = 0; i < count && lines->has_columns; i++)
		room = room && pdb_bytes_u32(to, line[i].columns);
	return room;
}

/* A subsection for one piece with the lines [first, end). */
static bool put_piece(struct pdb_bytes *to, const struct lines *lines,
		      const struct pdb_piece *piece, uint32_t first, uint32_t end)
{
	const struct line *list = lines->list.data;
	uint32_t head = to->bytes.len;
	bool room = pdb_bytes_u32(to, SUBSECTION_LINES) && pdb_bytes_u32(to, 0) &&
		    pdb_bytes_u32(to, piece->offset) && pdb_bytes_u16(to, piece->section) &&
		    pdb_bytes_u16(to, lines->has_columns ? HAS_COLUMNS : 0) &&
		    pdb_bytes_u32(to, piece->size);

	for (uint32_t i = first, next; i < end && room; i = next) {
		for (next = i + 1; next < end && list[next].file == list[i].file; next++)
			;
		room = put_file(to, lines, &list[i], next - i, piece->begin);
	}
	if (room)
		store_u32(to->bytes.data + head + 4,
			  to->bytes.len - head - SUBSECTION_HEAD);
	return room;
}

/* The first line that begins at or behind `offset`. */
static uint32_t line_from(const struct lines *lines, uint32_t offset)
{
	uint32_t low = 0, high = lines->list.len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (lines->list.data[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool put_pieces(struct pdb_rewriting *rewriting, const uint8_t *head,
		       const struct lines *lines, struct pdb_bytes *to)
{
	uint32_t at = 0;
	struct pdb_piece piece;
	bool room = true;

	while (room && pdb_next_piece(&rewriting->places, load_u16(head + 4),
				      load_u32(head), load_u32(head + 8), &at, &piece)) {
		uint32_t first = line_from(lines, piece.begin);
		uint32_t end = line_from(lines, piece.begin + piece.size);

		/* The line in force at its begin. */
		if (first > 0 && (first == lines->list.len ||
				  lines->list.data[first].offset != piece.begin))
			first--;
		if (first < end)
			room = put_piece(to, lines, &piece, first, end);
	}
	return room;
}

/* One subsection of lines, with its head. */
static enum status move_lines(struct pdb_rewriting *rewriting, const uint8_t *bytes,
			      uint32_t size, struct pdb_bytes *to)
{
	const uint8_t *head = bytes + SUBSECTION_HEAD;
	uint8_t moved[LINES_HEAD];
	struct lines lines = {0};
	uint32_t length;
	enum status status;

	if (size < SUBSECTION_HEAD + LINES_HEAD)
		return bad(rewriting->diag);
	length = load_u32(head + 8);
	if (pdb_place_stretch(&rewriting->places, load_u16(head + 4), load_u32(head),
			      length) == length) {
		memcpy(moved, head, LINES_HEAD);
		pdb_place_move(&rewriting->places, moved, moved + 4);
		return pdb_bytes_put(to, bytes, SUBSECTION_HEAD) &&
				       pdb_bytes_put(to, moved, LINES_HEAD) &&
				       pdb_bytes_put(to, head + LINES_HEAD,
						     size - SUBSECTION_HEAD - LINES_HEAD)
			       ? STATUS_OK
			       : diag_no_memory(rewriting->diag);
	}
	status = read_lines(rewriting, head, size - SUBSECTION_HEAD, &lines);
	if (status == STATUS_OK && !put_pieces(rewriting, head, &lines, to))
		status = diag_no_memory(rewriting->diag);
	vec_release(&lines.list);
	return status;
}

enum status pdb_lines_move(struct pdb_rewriting *rewriting, const uint8_t *lines,
			   uint32_t size, struct pdb_bytes *to)
{
	uint32_t at = 0;
	enum status status = STATUS_OK;

	while (at < size && status == STATUS_OK) {
		uint32_t length;

		if (size - at < SUBSECTION_HEAD)
			return bad(rewriting->diag);
		length = load_u32(lines + at + 4);
		if (length > size - at - SUBSECTION_HEAD)
			return bad(rewriting->diag);
		length += SUBSECTION_HEAD;
		if (load_u32(lines + at) == SUBSECTION_LINES)
			status = move_lines(rewriting, lines + at, length, to);
		else if (!pdb_bytes_put(to, lines + at, length))
			status = diag_no_memory(rewriting->diag);
		/* Each begins at a multiple of four. */
		at += length;
		while (at % 4 && at < size)
			at++;
		while (status == STATUS_OK && to->bytes.len % 4)
			if (!pdb_bytes_put(to, "", 1))
				status = diag_no_memory(rewriting->diag);
	}
	return status;
}
