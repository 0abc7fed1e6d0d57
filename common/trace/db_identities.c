/* See db_identities.h.  A function's row holds its callees' RVAs as little-endian words
 * of 32 bits: as rows of their own they would take ten times the space. */
#include "trace/db_identities.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "trace/db_statement.h"

enum { CALLEE_BYTES = 4 };

static enum status put_one(struct db_statement *insert, int64_t image,
			   const struct function_identities *all,
			   const struct function_identity *one, uint8_t *bytes,
			   struct diag *diag)
{
	for (uint32_t i = 0; i < one->callee_count; i++)
		store_u32(bytes + CALLEE_BYTES * (size_t)i,
			  all->callees[one->first_callee + i].v);
	return db_run(insert,
		      DB_VALUES(db_int(image), db_int(one->rva.v), db_int((int64_t)one->content),
				db_blob(bytes, CALLEE_BYTES * one->callee_count)),
		      diag);
}

static enum status put_all(struct db *db, int64_t image, const struct function_identities *all,
			   struct diag *diag)
{
	struct db_statement insert = {0};
	uint8_t *bytes = malloc(CALLEE_BYTES * ((size_t)all->callee_count + 1));
	enum status status =
		bytes ? db_execute(db, "DELETE FROM identities WHERE image = ?1",
				   DB_VALUES(db_int(image)), diag)
		      : diag_no_memory(diag);

	if (status == STATUS_OK)
		status = db_prepare(db, &insert,
				    "INSERT INTO identities(image, rva, content, callees)"
				    " VALUES(?1, ?2, ?3, ?4)",
				    diag);
	for (uint32_t i = 0; i < all->count && status == STATUS_OK; i++)
		status = put_one(&insert, image, all, &all->list[i], bytes, diag);
	db_finalize(&insert);
	free(bytes);
	return status;
}

enum status db_put_identities(struct db *db, int64_t image,
			      const struct function_identities *identities,
			      struct diag *diag)
{
	enum status status = db_begin(db, diag);

	if (status != STATUS_OK)
		return status;
	return db_end(db, put_all(db, image, identities, diag), diag);
}

/* ---- reading ---- */

struct loading {
	struct arena *arena;
	VEC(struct function_identity) list;
	VEC(struct rva) callees;
};

static enum status take_callees(struct db *db, struct loading *l, const struct db_cell *cell,
				struct diag *diag)
{
	const uint8_t *bytes = (const uint8_t *)cell->text;

	if (cell->type == DB_CELL_NULL)
		return STATUS_OK;
	if (cell->type != DB_CELL_BLOB || cell->size % CALLEE_BYTES)
		return db_fail_content(db, diag, "callees that are no list of addresses");
	for (size_t at = 0; at < cell->size; at += CALLEE_BYTES)
		if (!vec_push(&l->callees, rva_of(load_u32(bytes + at))))
			return diag_no_memory(diag);
	return STATUS_OK;
}

static enum status take_row(struct db *db, struct loading *l, struct db_statement *s,
			    struct diag *diag)
{
	const char *name = db_column_text(s, 2);
	struct function_identity one = {
		.rva = rva_of(db_column_u32(s, 0)),
		.size = db_column_u32(s, 1),
		.name = name ? arena_strndup(l->arena, name, strlen(name)) : NULL,
		.content = (uint64_t)db_column_int(s, 3),
		.first_callee = l->callees.len,
	};
	struct db_cell cell;
	enum status status = (name && !one.name) || !db_column_cell(s, 4, &cell)
				     ? diag_no_memory(diag)
				     : take_callees(db, l, &cell, diag);

	one.callee_count = l->callees.len - one.first_callee;
	if (status == STATUS_OK && !vec_push(&l->list, one))
		status = diag_no_memory(diag);
	return status;
}

static enum status load_rows(struct db *db, int64_t image, struct loading *l,
			     struct diag *diag)
{
	struct db_statement s;
	bool row = false;
	enum status status = db_prepare(
		db, &s,
		"SELECT f.rva, f.size, f.name, i.content, i.callees FROM functions f"
		" LEFT JOIN identities i ON i.image = f.image AND i.rva = f.rva"
		" WHERE f.image = ?1 ORDER BY f.rva",
		diag);

	if (status == STATUS_OK)
		db_bind(&s, DB_VALUES(db_int(image)));
	while (status == STATUS_OK && (status = db_step(&s, &row, diag)) == STATUS_OK && row)
		status = take_row(db, l, &s, diag);
	db_finalize(&s);
	return status;
}

enum status db_load_identities(struct db *db, int64_t image,
			       struct db_identities *ret_identities, struct diag *diag)
{
	struct loading l = {.arena = malloc(sizeof(*l.arena))};
	struct db_identities loaded;
	enum status status;

	if (!l.arena)
		return diag_no_memory(diag);
	arena_init(l.arena);
	status = load_rows(db, image, &l, diag);
	loaded = (struct db_identities){
		.functions = {l.list.data, l.list.len, l.callees.data, l.callees.len},
		.storage = l.arena};
	if (status == STATUS_OK)
		*ret_identities = loaded;
	else
		db_identities_release(&loaded);
	return status;
}

void db_identities_release(struct db_identities *identities)
{
	function_identities_release(&identities->functions);
	if (identities->storage)
		arena_release(identities->storage);
	free(identities->storage);
	memset(identities, 0, sizeof(*identities));
}
