/* The exception data of __CxxFrameHandler3 (pe/cxx_frame3.h).
 *
 * One FuncInfo serves a function and its catch funclets; each has a row of the function
 * table.  They may move apart: what names a funclet is a reference, and the state map,
 * which lists instructions of all of them in ascending order, is sorted again.  That is
 * right when each unit has a row of the map at its begin.  MSVC 2005 leaves such a row out
 * when the unit before ends in the same state (observed in 7-Zip: 128 of 802 units); then
 * the two are joined.  A first unit without such a row has state -1 up to its first row,
 * which would change if another unit came to stand before it.
 *
 * LLVM puts rows one byte behind a call, into the midst of an instruction, and possibly
 * behind the unit's end, where the next unit begins (LLVM's WinException.cpp).  A row at
 * or one byte behind an end says nothing about any instruction of its unit.  It has no
 * reference, and the writer makes it repeat the last row.
 *
 * A row anywhere else, or a map out of order, is not understood: all its units stay.
 */
#include "graph/exception_pass.h"
#include "pe/cxx_frame3.h"

#include <stdlib.h>

enum {
	UNWIND_FIELDS = 1 << 1,   /* words of a row that are references: the action, */
	CATCH_FIELDS = 1 << 3,    /* the funclet */
	JOIN_BYTES_MAX = 0x10000, /* between two units that are joined */
	FLAGS_MAX = 7,            /* synchronous, dynamic alignment, noexcept */
};

static bool walk_unwinds(struct exception_pass *pass, const struct cxx_frame3 *frame)
{
	for (uint32_t i = 0; i < frame->unwinds.count; i++) {
		struct frame3_unwind row = frame3_unwind_at(frame, i);

		if (row.next < -1 || row.next >= (int64_t)i)
			return false;
		if (row.action.v == 0)
			continue;
		if (!exception_pass_is_code(pass, row.action))
			return false;
		exception_pass_ref(pass, row.site, row.action, REF_RVA, true);
	}
	exception_pass_rows(pass, frame->unwinds.rva,
			    frame->unwinds.count * FRAME3_UNWIND_BYTES, FRAME3_UNWIND_BYTES,
			    UNWIND_FIELDS);
	return true;
}

/* The system looks for a catch funclet by the begin of its row, so no thunk may stand
 * in for it. */
static bool walk_catches(struct exception_pass *pass, const struct frame3_rows *catches)
{
	if (!exception_pass_spend(pass, (uint64_t)catches->count * FRAME3_CATCH_BYTES))
		return false;
	for (uint32_t i = 0; i < catches->count; i++) {
		struct frame3_catch row = frame3_catch_at(catches, i);

		if (!exception_pass_is_row(pass, row.funclet) ||
		    (row.type.v && !image_section_at(pass->d->image, row.type)))
			return false;
		exception_pass_ref(pass, row.site, row.funclet, REF_RVA, false);
	}
	exception_pass_rows(pass, catches->rva, catches->count * FRAME3_CATCH_BYTES,
			    FRAME3_CATCH_BYTES, CATCH_FIELDS);
	return true;
}

static bool walk_tries(struct exception_pass *pass, const struct cxx_frame3 *frame)
{
	int64_t states = frame->unwinds.count;

	for (uint32_t i = 0; i < frame->tries.count; i++) {
		struct frame3_try row;

		if (!frame3_try_at(pass->d->image, frame, i, &row) || row.low < 0 ||
		    row.high < row.low || row.catch_high <= row.high ||
		    row.catch_high >= states || row.catches.count == 0 ||
		    !walk_catches(pass, &row.catches))
			return false;
	}
	exception_pass_keep(pass, frame->tries.rva, frame->tries.count * FRAME3_TRY_BYTES);
	return true;
}

/* An exception specification names types only. */
static bool check_types(const struct exception_pass *pass, const struct cxx_frame3 *frame)
{
	for (uint32_t i = 0; i < frame->types.count; i++) {
		struct frame3_catch row = frame3_catch_at(&frame->types, i);

		if (row.funclet.v || !image_section_at(pass->d->image, row.type))
			return false;
	}
	return true;
}

static int compare_units(const void *a, const void *b)
{
	const struct state_unit *x = a, *y = b;

	return (x->begin.v > y->begin.v) - (x->begin.v < y->begin.v);
}

/* All rows of the function table whose states the map gives, ascending. */
static void list_units(struct exception_pass *pass, const struct handler_user *users,
		       uint32_t count, struct mapped_states *map)
{
	map->first_unit = pass->units.len;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t part_count;
		uint32_t first = exception_pass_parts(pass, users[i].function, &part_count);

		for (uint32_t k = first; k < first + part_count; k++) {
			struct state_unit unit = {pass->parts.data[k].begin,
						  pass->parts.data[k].end};

			if (!vec_push(&pass->units, unit))
				pass->d->out_of_memory = true;
		}
	}
	map->unit_count = pass->units.len - map->first_unit;
	if (map->unit_count)
		qsort(pass->units.data + map->first_unit, map->unit_count,
		      sizeof(*pass->units.data), compare_units);
}

/* Whether the unit without a row at its begin can be joined to the one before. */
static bool join_unit(struct exception_pass *pass, const struct state_unit *unit)
{
	uint32_t gap = unit->begin.v - unit[-1].end.v;

	if (gap > JOIN_BYTES_MAX || discovery_range(pass->d, unit->begin) !=
					    discovery_range(pass->d, unit[-1].begin))
		return false;
	exception_pass_join(pass, unit[-1].begin, unit->begin);
	return true;
}

/* Whether the map still holds when its units have moved apart. */
static bool is_movable(struct exception_pass *pass, const struct cxx_frame3 *frame,
		       const struct mapped_states *map)
{
	const struct state_unit *units = pass->units.data + map->first_unit;
	bool headless = false, apart = false;
	uint64_t last = 0;
	uint32_t row = 0;

	for (uint32_t u = 0; u < map->unit_count; u++) {
		bool headed = false, stray = false;

		for (; row < frame->states.count; row++) {
			struct frame3_state state = frame3_state_at(frame, row);
			bool is_stray = u > 0 && state.ip.v < units[u].begin.v;

			if (state.ip.v >= units[u].end.v)
				break;
			if ((row > 0 && state.ip.v <= last) ||
			    (u == 0 && state.ip.v < units[u].begin.v) ||
			    (is_stray && state.ip.v > units[u - 1].end.v + 1))
				return false;
			last = state.ip.v;
			stray = stray || is_stray;
			headed = headed || state.ip.v == units[u].begin.v;
		}
		if (u == 0)
			headless = !headed;
		else if (headed)
			apart = true;
		else if (stray || !join_unit(pass, &units[u]))
			return false;
	}
	for (; row < frame->states.count; row++) {
		uint32_t ip = frame3_state_at(frame, row).ip.v;

		if (map->unit_count == 0 || (row > 0 && ip <= last) ||
		    ip > units[map->unit_count - 1].end.v + 1)
			return false;
		last = ip;
	}
	return !headless || !apart;
}

static bool walk_states(struct exception_pass *pass, const struct cxx_frame3 *frame,
			const struct handler_user *users, uint32_t count)
{
	struct mapped_states map = {.rva = frame->states.rva, .count = frame->states.count};
	int64_t states = frame->unwinds.count;

	for (uint32_t i = 0; i < frame->states.count; i++) {
		struct frame3_state row = frame3_state_at(frame, i);

		if (row.state < -1 || row.state >= states)
			return false;
	}
	if (!pass->adding || frame->states.count == 0)
		return true;
	list_units(pass, users, count, &map);
	/* The verifier looks through the map for each unit. */
	if (!exception_pass_spend(pass, (uint64_t)map.count * map.unit_count))
		return false;
	map.movable = is_movable(pass, frame, &map);
	if (!vec_push(&pass->maps, map))
		pass->d->out_of_memory = true;
	return true;
}

bool frame3_walk(struct exception_pass *pass, const struct handler_user *users,
		 uint32_t count)
{
	struct cxx_frame3 frame;
	uint64_t size;

	if (cxx_frame3_read(pass->d->image, rva_of(users->word), &frame, NULL) != STATUS_OK)
		return false;
	size = (uint64_t)frame.unwinds.count * FRAME3_UNWIND_BYTES +
	       (uint64_t)frame.tries.count * FRAME3_TRY_BYTES +
	       (uint64_t)frame.states.count * FRAME3_STATE_BYTES +
	       (uint64_t)frame.types.count * FRAME3_CATCH_BYTES + frame.size;
	if (frame.flags > FLAGS_MAX || !exception_pass_spend(pass, size) ||
	    !walk_unwinds(pass, &frame) || !walk_tries(pass, &frame) ||
	    !check_types(pass, &frame) || !walk_states(pass, &frame, users, count))
		return false;
	exception_pass_keep(pass, frame.rva, frame.size);
	return true;
}

static int compare_maps(const void *a, const void *b)
{
	const struct mapped_states *x = a, *y = b;

	if (x->rva.v != y->rva.v)
		return x->rva.v < y->rva.v ? -1 : 1;
	return (x->first_unit > y->first_unit) - (x->first_unit < y->first_unit);
}

static void add_rows(struct exception_pass *pass, const struct mapped_states *map)
{
	const uint8_t *rows =
		image_bytes(pass->d->image, map->rva, map->count * FRAME3_STATE_BYTES);
	const struct state_unit *units = pass->units.data + map->first_unit;
	uint32_t unit = 0;

	for (uint32_t i = 0; rows && i < map->count; i++) {
		struct rva ip = rva_of(load_u32(rows + (size_t)i * FRAME3_STATE_BYTES));

		while (unit < map->unit_count && units[unit].end.v <= ip.v)
			unit++;
		if (unit < map->unit_count && ip.v >= units[unit].begin.v)
			exception_pass_ref(pass, rva_add(map->rva, i * FRAME3_STATE_BYTES),
					   ip, REF_STATE, false);
	}
}

/* Two FuncInfos that share rows of a map are none that a linker makes. */
static void doubt_shared_maps(struct exception_pass *pass)
{
	struct mapped_states *maps = pass->maps.data;
	uint64_t end = 0;
	uint32_t holder = 0;

	for (uint32_t i = 0; i < pass->maps.len; i++) {
		uint64_t map_end =
			maps[i].rva.v + (uint64_t)maps[i].count * FRAME3_STATE_BYTES;

		if (maps[i].rva.v < end)
			maps[i].movable = maps[holder].movable = false;
		if (map_end > end) {
			end = map_end;
			holder = i;
		}
	}
}

void state_maps_add(struct exception_pass *pass)
{
	if (pass->maps.len)
		qsort(pass->maps.data, pass->maps.len, sizeof(*pass->maps.data),
		      compare_maps);
	doubt_shared_maps(pass);
	for (uint32_t i = 0; i < pass->maps.len; i++) {
		const struct mapped_states *map = &pass->maps.data[i];
		struct state_map known = {map->rva, map->count};
		uint32_t size = map->count * FRAME3_STATE_BYTES;

		if (!map->movable) {
			exception_pass_keep(pass, map->rva, size);
			for (uint32_t u = 0; u < map->unit_count; u++)
				exception_pass_doubt(
					pass, pass->units.data[map->first_unit + u].begin);
			continue;
		}
		table_bytes_sort(pass->d, map->rva, size, FRAME3_STATE_BYTES);
		add_rows(pass, map);
		if (!vec_push(&pass->d->graph->state_maps, known))
			pass->d->out_of_memory = true;
	}
}
