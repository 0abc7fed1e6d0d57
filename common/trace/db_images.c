/* Images, their functions, and relinks in the trace database. */
#include "trace/db_statement.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

static enum status put_image_row(struct db *db, const struct db_image *image,
				 int64_t *ret_id, struct diag *diag)
{
	char hex[SHA256_HEX_SIZE];
	bool found;
	enum status status;

	sha256_hex(&image->hash, hex);
	status = db_execute(
		db,
		"INSERT INTO images(sha256, name, size, code_size)"
		" VALUES(?1, ?2, ?3, ?4)"
		" ON CONFLICT(sha256) DO UPDATE SET"
		"  size = coalesce(excluded.size, size),"
		"  code_size = coalesce(excluded.code_size, code_size)",
		DB_VALUES(db_text(hex), db_text(image->name),
			  db_int_if(image->size, (int64_t)image->size),
			  db_int_if(image->code_size, (int64_t)image->code_size)),
		diag);
	if (status != STATUS_OK)
		return status;
	return db_query_int(db, "SELECT id FROM images WHERE sha256 = ?1",
			    DB_VALUES(db_text(hex)), &found, ret_id, diag);
}

static enum status put_functions(struct db *db, int64_t image,
				 const struct db_function *functions, uint32_t count,
				 struct diag *diag)
{
	struct db_statement insert;
	enum status status = db_execute(db, "DELETE FROM functions WHERE image = ?1",
					DB_VALUES(db_int(image)), diag);

	if (status != STATUS_OK)
		return status;
	status = db_prepare(db, &insert,
			    "INSERT INTO functions(image, rva, size, name, movable, pins,"
			    " probe) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
			    diag);
	for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
		const struct db_function *f = &functions[i];

		status = db_run(&insert,
				DB_VALUES(db_int(image), db_int(f->rva.v), db_int(f->size),
					  db_text(f->name), db_int(f->movable),
					  db_text(f->pins),
					  db_int_if(f->probe >= 0, f->probe)),
				diag);
	}
	db_finalize(&insert);
	return status;
}

enum status db_put_image(struct db *db, const struct db_image *image,
			 const struct db_function *functions, uint32_t count,
			 int64_t *ret_id, struct diag *diag)
{
	int64_t id = 0;
	enum status status = db_begin(db, diag);

	if (status != STATUS_OK)
		return status;
	status = put_image_row(db, image, &id, diag);
	if (status == STATUS_OK && count > 0)
		status = put_functions(db, id, functions, count, diag);
	status = db_end(db, status, diag);
	if (status == STATUS_OK && ret_id)
		*ret_id = id;
	return status;
}

enum status db_find_image(struct db *db, const struct sha256 *hash, int64_t *ret_id,
			  struct diag *diag)
{
	char hex[SHA256_HEX_SIZE];
	bool found;
	enum status status;

	sha256_hex(hash, hex);
	status = db_query_int(db, "SELECT id FROM images WHERE sha256 = ?1",
			      DB_VALUES(db_text(hex)), &found, ret_id, diag);
	if (status == STATUS_OK && !found)
		return diag_fail(diag, STATUS_NOT_FOUND,
				 "database '%s' has no image with the hash %s, instrument "
				 "it with this database first",
				 db_path(db), hex);
	return status;
}

/* ---- reading ---- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool db_parse_hash(const char *hex, struct sha256 *ret_hash)
{
	struct sha256 hash;

	if (!hex || strlen(hex) != 2 * SHA256_BYTES)
		return false;
	for (unsigned i = 0; i < SHA256_BYTES; i++) {
		int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		hash.bytes[i] = (uint8_t)(high << 4 | low);
	}
	*ret_hash = hash;
	return true;
}

/* A copy in the arena; `*ok` becomes false when memory is out. */
static const char *keep(struct arena *arena, const char *text, bool *ok)
{
	char *copy = text ? arena_strndup(arena, text, strlen(text)) : NULL;

	if (text && !copy)
		*ok = false;
	return copy;
}

static enum status read_image_row(struct db *db, int64_t id, struct arena *arena,
				  struct db_image *ret_image, struct diag *diag)
{
	struct db_statement s;
	bool row = false, ok = true;
	enum status status = db_prepare(
		db, &s, "SELECT sha256, name, size, code_size FROM images WHERE id = ?1",
		diag);

	if (status == STATUS_OK) {
		db_bind(&s, DB_VALUES(db_int(id)));
		status = db_step(&s, &row, diag);
	}
	if (status == STATUS_OK && !row)
		status = diag_fail(diag, STATUS_NOT_FOUND,
				   "database '%s' has no image %" PRId64, db_path(db), id);
	if (status == STATUS_OK) {
		ret_image->id = id;
		ret_image->name = keep(arena, db_column_text(&s, 1), &ok);
		ret_image->size = (uint64_t)db_column_int(&s, 2);
		ret_image->code_size = (uint64_t)db_column_int(&s, 3);
		if (!ok)
			status = diag_no_memory(diag);
		else if (!ret_image->name ||
			 !db_parse_hash(db_column_text(&s, 0), &ret_image->hash))
			status = db_fail_content(db, diag,
						 "an image without a hash or name");
	}
	db_finalize(&s);
	return status;
}

static enum status read_functions(struct db *db, struct arena *arena,
				  struct db_image_functions *image, int64_t count,
				  struct diag *diag)
{
	struct db_statement s;
	bool row = false, ok = true;
	enum status status;

	if (count < 0 || count > UINT32_MAX)
		return db_fail_content(db, diag, "too many functions");
	image->functions = arena_array(arena, (size_t)count, sizeof(*image->functions));
	if (!image->functions)
		return diag_no_memory(diag);
	status = db_prepare(db, &s,
			    "SELECT rva, size, name, movable, pins, coalesce(probe, -1)"
			    " FROM functions WHERE image = ?1 ORDER BY rva LIMIT ?2",
			    diag);
	if (status == STATUS_OK)
		db_bind(&s, DB_VALUES(db_int(image->image.id), db_int(count)));
	while (status == STATUS_OK && (status = db_step(&s, &row, diag)) == STATUS_OK &&
	       row) {
		struct db_function *f = &image->functions[image->count++];

		f->rva = rva_of(db_column_u32(&s, 0));
		f->size = db_column_u32(&s, 1);
		f->name = keep(arena, db_column_text(&s, 2), &ok);
		f->movable = db_column_int(&s, 3) != 0;
		f->pins = keep(arena, db_column_text(&s, 4), &ok);
		f->probe = (int32_t)db_column_int(&s, 5);
		if (!ok)
			status = diag_no_memory(diag);
	}
	db_finalize(&s);
	return status;
}

enum status db_load_image(struct db *db, int64_t id, struct db_image_functions *ret_image,
			  struct diag *diag)
{
	struct db_image_functions image = {0};
	struct arena *arena = malloc(sizeof(*arena));
	int64_t count = 0;
	bool found;
	enum status status;

	if (!arena)
		return diag_no_memory(diag);
	arena_init(arena);
	image.storage = arena;
	status = read_image_row(db, id, arena, &image.image, diag);
	if (status == STATUS_OK)
		status = db_query_int(db, "SELECT count(*) FROM functions WHERE image = ?1",
				      DB_VALUES(db_int(id)), &found, &count, diag);
	if (status == STATUS_OK)
		status = read_functions(db, arena, &image, count, diag);
	if (status == STATUS_OK)
		*ret_image = image;
	else
		db_image_release(&image);
	return status;
}

void db_image_release(struct db_image_functions *image)
{
	if (image->storage)
		arena_release(image->storage);
	free(image->storage);
	memset(image, 0, sizeof(*image));
}

/* ---- relinks ---- */

static enum status put_moves(struct db *db, int64_t id, const struct db_relink *relink,
			     struct diag *diag)
{
	struct db_statement insert;
	enum status status = db_execute(db, "DELETE FROM moves WHERE relink = ?1",
					DB_VALUES(db_int(id)), diag);

	if (status != STATUS_OK)
		return status;
	status = db_prepare(db, &insert,
			    "INSERT INTO moves(relink, old_rva, new_rva, size)"
			    " VALUES(?1, ?2, ?3, ?4)",
			    diag);
	for (uint32_t i = 0; i < relink->move_count && status == STATUS_OK; i++) {
		const struct db_move *m = &relink->moves[i];

		status = db_run(&insert,
				DB_VALUES(db_int(id), db_int(m->old_rva.v),
					  db_int(m->new_rva.v), db_int(m->size)),
				diag);
	}
	db_finalize(&insert);
	return status;
}

enum status db_put_relink(struct db *db, const struct db_relink *relink,
			  int64_t *ret_output_image, struct diag *diag)
{
	struct db_image output = {.hash = relink->output,
				  .name = relink->output_name,
				  .size = relink->output_size};
	char seed[24];
	int64_t output_id = 0, id = 0;
	bool found;
	enum status status = db_begin(db, diag);

	if (status != STATUS_OK)
		return status;
	snprintf(seed, sizeof(seed), "%" PRIu64, relink->seed);
	status = put_image_row(db, &output, &output_id, diag);
	if (status == STATUS_OK)
		status = db_execute(
			db,
			"INSERT INTO relinks(image, output, order_name, seed,"
			" placement) VALUES(?1, ?2, ?3, ?4, ?5)"
			" ON CONFLICT(image, output) DO UPDATE SET"
			"  order_name = excluded.order_name,"
			"  seed = excluded.seed, placement = excluded.placement",
			DB_VALUES(db_int(relink->image), db_int(output_id),
				  db_text(relink->order),
				  db_text(strcmp(relink->order, "random") ? NULL : seed),
				  db_text(relink->placement)),
			diag);
	if (status == STATUS_OK)
		status = db_query_int(db,
				      "SELECT id FROM relinks WHERE image = ?1"
				      " AND output = ?2",
				      DB_VALUES(db_int(relink->image), db_int(output_id)),
				      &found, &id, diag);
	if (status == STATUS_OK)
		status = put_moves(db, id, relink, diag);
	status = db_end(db, status, diag);
	if (status == STATUS_OK && ret_output_image)
		*ret_output_image = output_id;
	return status;
}
