/* The map file.
 *
 * A map is small (three numbers a block) and is read by strangers: scripts that
 * symbolize crash dumps, other versions of this program.  So it is JSON, one
 * object with a format name and a schema number, and reading trusts nothing: a
 * map that would translate an address to two places is refused.
 *
 * Moves are arrays of three numbers, not objects: an object a move is four times
 * the bytes, and the sequence from, to, size is written down in docs/map-file.md.
 */
#include "layout/map_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static const char map_format[] = "appulse-map";

/* Far above any real map, far below what would trouble the parser. */
enum { MAP_BYTES_MAX = 256 * 1024 * 1024 };

static int compare_from(const void *a, const void *b)
{
	const struct move *x = a, *y = b;

	return (x->from.v > y->from.v) - (x->from.v < y->from.v);
}

static int compare_to(const void *a, const void *b)
{
	const struct move *x = a, *y = b;

	return (x->to.v > y->to.v) - (x->to.v < y->to.v);
}

/* Whether `size` bytes at `begin` end before 2^32. */
static bool fits(struct rva begin, uint32_t size)
{
	return size <= UINT32_MAX - begin.v;
}

static enum status check_moves(const struct move_map *map, struct diag *diag)
{
	for (uint32_t i = 0; i < map->moves.len; i++) {
		const struct move *move = &map->moves.data[i];
		const struct move *by_target = &map->by_target[i];

		if (move->size == 0 || !fits(move->from, move->size) ||
		    !fits(move->to, move->size))
			return diag_fail_at(diag, STATUS_BAD_MAP, move->from,
					    "a move is empty or leaves the address space");
		if (i > 0 && rva_in(move->from, move[-1].from, move[-1].size))
			return diag_fail_at(diag, STATUS_BAD_MAP, move->from,
					    "two moves overlap in the original");
		if (i > 0 && rva_in(by_target->to, by_target[-1].to, by_target[-1].size))
			return diag_fail_at(diag, STATUS_BAD_MAP, by_target->to,
					    "two moves overlap in the relinked image");
	}
	return STATUS_OK;
}

enum status move_map_finish(struct move_map *map, struct diag *diag)
{
	size_t bytes = map->moves.len * sizeof(struct move);
	struct move *by_target = malloc(bytes ? bytes : 1);

	if (!by_target)
		return diag_no_memory(diag);
	if (map->moves.len) {
		qsort(map->moves.data, map->moves.len, sizeof(struct move), compare_from);
		memcpy(by_target, map->moves.data, bytes);
		qsort(by_target, map->moves.len, sizeof(struct move), compare_to);
	}
	free(map->by_target);
	map->by_target = by_target;
	return check_moves(map, diag);
}

/* A number that fits 32 bits. */
static bool get_u32(const json_t *array, size_t index, uint32_t *ret_value)
{
	const json_t *item = json_array_get(array, index);
	json_int_t value = json_integer_value(item);

	if (!json_is_integer(item) || value < 0 || value > (json_int_t)UINT32_MAX)
		return false;
	*ret_value = (uint32_t)value;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static bool get_hash(const json_t *root, const char *key, struct sha256 *ret_hash)
{
	const char *text = json_string_value(json_object_get(root, key));

	if (!text || strlen(text) != 2 * SHA256_BYTES)
		return false;
	for (unsigned i = 0; i < SHA256_BYTES; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret_hash->bytes[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static enum status check_head(const json_t *root, struct diag *diag)
{
	const char *format = json_string_value(json_object_get(root, "format"));
	const json_t *schema = json_object_get(root, "schema");

	if (!format || strcmp(format, map_format) != 0)
		return diag_fail(diag, STATUS_BAD_MAP, "this is no map of a relink");
	if (!json_is_integer(schema) || json_integer_value(schema) < 1)
		return diag_fail(diag, STATUS_BAD_MAP, "the map has no 'schema' number");
	if (json_integer_value(schema) > MAP_SCHEMA)
		return diag_fail(
			diag, STATUS_BAD_MAP,
			"the map has schema %lld, newer than %d; use a newer version",
			(long long)json_integer_value(schema), MAP_SCHEMA);
	return STATUS_OK;
}

static enum status get_moves(struct move_map *map, const json_t *root, struct diag *diag)
{
	const json_t *moves = json_object_get(root, "moves");

	if (!json_is_array(moves))
		return diag_fail(diag, STATUS_BAD_MAP, "the map has no array 'moves'");
	for (size_t i = 0; i < json_array_size(moves); i++) {
		const json_t *item = json_array_get(moves, i);
		struct move move;

		if (json_array_size(item) != 3 || !get_u32(item, 0, &move.from.v) ||
		    !get_u32(item, 1, &move.to.v) || !get_u32(item, 2, &move.size))
			return diag_fail(
				diag, STATUS_BAD_MAP,
				"move %zu is not [from, to, size] in 32-bit numbers", i);
		if (!vec_push(&map->moves, move))
			return diag_no_memory(diag);
	}
	return STATUS_OK;
}

static enum status fill(struct move_map *map, const json_t *root, struct diag *diag)
{
	enum status status = check_head(root, diag);

	if (status != STATUS_OK)
		return status;
	if (!get_hash(root, "original", &map->original) ||
	    !get_hash(root, "relinked", &map->relinked))
		return diag_fail(diag, STATUS_BAD_MAP,
				 "the map does not name both files by their SHA-256");
	status = get_moves(map, root, diag);
	if (status != STATUS_OK)
		return status;
	return move_map_finish(map, diag);
}

enum status move_map_parse(struct move_map *map, const char *text, size_t size,
			   struct diag *diag)
{
	struct move_map made = {0};
	json_error_t error;
	enum status status;
	json_t *root;

	if (size > MAP_BYTES_MAX)
		return diag_fail(diag, STATUS_BAD_MAP, "the map is larger than %d bytes",
				 MAP_BYTES_MAX);
	root = json_loadb(text ? text : "", size, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return diag_fail(diag, STATUS_BAD_MAP, "the map is not JSON: line %d: %s",
				 error.line, error.text);
	status = fill(&made, root, diag);
	json_decref(root);
	if (status != STATUS_OK)
		move_map_release(&made);
	else
		*map = made;
	return status;
}

enum status move_map_read(struct move_map *map, const char *path, struct diag *diag)
{
	struct mapped_file file;
	enum status status = mapped_file_open(&file, path, diag);

	if (status != STATUS_OK)
		return status;
	status = move_map_parse(map, (const char *)file.data, file.size, diag);
	if (status != STATUS_OK)
		diag_set_file(diag, path);
	mapped_file_close(&file);
	return status;
}

/* The map as text, to be freed, or NULL when memory is out.  Nothing in it needs an
 * escape, and tens of thousands of moves would be as many small objects. */
static char *make_text(const struct move_map *map, size_t *ret_size)
{
	char original[SHA256_HEX_SIZE], relinked[SHA256_HEX_SIZE], *text = NULL;
	FILE *file = open_memstream(&text, ret_size);
	bool failed;

	if (!file)
		return NULL;
	sha256_hex(&map->original, original);
	sha256_hex(&map->relinked, relinked);
	fprintf(file,
		"{\"format\":\"%s\",\"schema\":%d,\"original\":\"%s\","
		"\"relinked\":\"%s\",\"moves\":[",
		map_format, (int)MAP_SCHEMA, original, relinked);
	for (uint32_t i = 0; i < map->moves.len; i++) {
		const struct move *move = &map->moves.data[i];

		fprintf(file, "%s[%u,%u,%u]", i ? "," : "", move->from.v, move->to.v,
			move->size);
	}
	fprintf(file, "]}\n");
	failed = ferror(file);
	if (fclose(file) != 0 || failed) {
		free(text);
		return NULL;
	}
	return text;
}

enum status move_map_write(const struct move_map *map, const char *path, bool force,
			   struct diag *diag)
{
	size_t size = 0;
	char *text = make_text(map, &size);
	struct output_file out;
	enum status status;

	if (!text)
		return diag_no_memory(diag);
	status = output_file_open(&out, path, force, diag);
	if (status == STATUS_OK) {
		status = output_file_write(&out, text, size, diag);
		if (status == STATUS_OK)
			status = output_file_commit(&out, 0, diag);
		output_file_discard(&out);
	}
	free(text);
	return status;
}

void move_map_release(struct move_map *map)
{
	vec_release(&map->moves);
	free(map->by_target);
	map->by_target = NULL;
}

/* The last of `count` moves that begins at or before `rva` (in the relinked
 * image when `by_target`);
 * NULL when there is none. */
static const struct move *last_at(const struct move *moves, uint32_t count, struct rva rva,
				  bool by_target)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct rva begin = by_target ? moves[middle].to : moves[middle].from;

		if (begin.v <= rva.v)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &moves[low - 1] : NULL;
}

static const struct move *moved_from(const struct move_map *map, struct rva rva)
{
	const struct move *move = last_at(map->moves.data, map->moves.len, rva, false);

	return move && rva_in(rva, move->from, move->size) ? move : NULL;
}

struct rva move_map_forward(const struct move_map *map, struct rva rva)
{
	const struct move *move = moved_from(map, rva);

	return move ? rva_add(move->to, rva.v - move->from.v) : rva;
}

uint32_t move_map_stretch(const struct move_map *map, struct rva rva, uint32_t size,
			  struct rva *ret_to)
{
	const struct move *moves = map->moves.data;
	const struct move *last = last_at(moves, map->moves.len, rva, false);
	uint32_t next = last ? (uint32_t)(last - moves) + 1 : 0, limit = UINT32_MAX - rva.v;

	*ret_to = move_map_forward(map, rva);
	if (last && rva_in(rva, last->from, last->size))
		limit = last->size - (rva.v - last->from.v);
	else if (next < map->moves.len)
		limit = moves[next].from.v - rva.v;
	return size < limit ? size : limit;
}

struct rva move_map_backward(const struct move_map *map, struct rva rva, bool *ret_gone)
{
	const struct move *move = last_at(map->by_target, map->moves.len, rva, true);

	*ret_gone = false;
	if (move && rva_in(rva, move->to, move->size))
		return rva_add(move->from, rva.v - move->to.v);
	*ret_gone = moved_from(map, rva) != NULL;
	return rva;
}
