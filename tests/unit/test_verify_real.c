/* Real images, named on the command line, shuffled: each must verify, and must
 * not when a byte of its code or data is changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "random_relink.h"

enum { SEEDS = 2, DAMAGES = 12 };

static char **paths;
static int path_count;

struct shuffled {
	struct image image;
	struct graph graph;
	struct relinked relinked;
};

static void shuffle(struct shuffled *s, const char *path, uint64_t seed,
		    enum placement placement, uint32_t file_alignment)
{
	struct discovery_options discovery = {0};
	struct diag diag;

	assert_int_equal(image_open(&s->image, path, &diag), STATUS_OK);
	assert_int_equal(graph_discover(&s->graph, &s->image, &discovery, &diag),
			 STATUS_OK);
	random_relink(&s->graph, seed, placement, file_alignment, &s->relinked);
}

static void release(struct shuffled *s)
{
	relinked_release(&s->relinked);
	graph_release(&s->graph);
	image_release(&s->image);
}

static void check(const char *path, uint64_t seed, enum placement placement,
		  uint32_t file_alignment)
{
	struct verify_report report;
	struct shuffled s;
	char text[2048];
	struct diag diag;

	shuffle(&s, path, seed, placement, file_alignment);
	assert_true(s.relinked.moves.len > s.graph.blocks.len / 2);
	if (random_relink_verify(&s.graph, &s.relinked, &report, &diag) != STATUS_OK) {
		diag_format(&diag, text, sizeof(text));
		fail_msg("%s, seed %u, %s: %s", path, (unsigned)seed,
			 placement == PLACEMENT_APPEND ? "append" : "exchange", text);
	}
	/* Every instruction that discovery has decoded and kept, and every relocation. */
	assert_in_range(report.instructions, s.graph.decoded * 9 / 10, s.graph.decoded);
	assert_int_equal(report.relocations, s.graph.tables.relocs.count);
	assert_true(report.references > s.graph.refs.len / 2);
	release(&s);
}

static void test_shuffled_images_verify(void **state)
{
	(void)state;
	for (int i = 0; i < path_count; i++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			check(paths[i], seed, PLACEMENT_EXCHANGE, 0);
			check(paths[i], seed, PLACEMENT_APPEND, 4096);
		}
}

/* Bytes at places of all sections, by a fixed sequence. */
static void test_damaged_images_do_not(void **state)
{
	uint32_t random = 1;

	(void)state;
	for (int i = 0; i < path_count; i++) {
		struct shuffled s;

		shuffle(&s, paths[i], 3, PLACEMENT_EXCHANGE, 0);
		for (int k = 0; k < DAMAGES; k++) {
			const struct section *section;
			struct verify_report report;
			struct diag diag;
			uint32_t at;

			random = random * 1664525u + 1013904223u;
			section = &s.image.sections[(random >> 8) % s.image.section_count];
			if (section->raw_size == 0)
				section = &s.image.sections[0];
			at = section->raw.v + (random >> 4) % section->raw_size;
			s.relinked.bytes[at] ^= 0x10;
			fix_checksum_at(s.relinked.bytes, s.relinked.size,
					s.image.headers.optional.v + OPTIONAL_CHECKSUM);
			if (random_relink_verify(&s.graph, &s.relinked, &report, &diag) !=
			    STATUS_VERIFY)
				fail_msg("%s: the byte at 0x%x passes", paths[i], at);
			s.relinked.bytes[at] ^= 0x10;
		}
		release(&s);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shuffled_images_verify),
		cmocka_unit_test(test_damaged_images_do_not),
	};

	if (argc < 2) {
		fprintf(stderr, "usage: %s IMAGE...\n", argv[0]);
		return 2;
	}
	paths = argv + 1;
	path_count = argc - 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
