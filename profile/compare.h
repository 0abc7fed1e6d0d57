/* What the steps of `appulse-profile compare` share. */
#ifndef APPULSE_PROFILE_COMPARE_H
#define APPULSE_PROFILE_COMPARE_H

#include <signal.h>

#include "base/paired.h"
#include "base/swap.h"
#include "cli/tool.h"
#include "fault_meter.h"
#include "run_clock.h"

enum compare_side { SIDE_A, SIDE_B, SIDE_COUNT };

/* What is compared, in the order of the table: id, name, unit. */
#define COMPARE_METRIC_LIST(X)                   \
	X(PHASE, "run phase", UNIT_SECONDS)      \
	X(WALL, "wall time", UNIT_SECONDS)       \
	X(MEMORY, "working set", UNIT_BYTES)     \
	X(RESIDENT, "pages read", UNIT_PAGES)    \
	X(FAULTS, "hard faults", UNIT_FAULTS)    \
	X(CODE_PAGES, "code pages", UNIT_PAGES)

enum compare_unit { UNIT_SECONDS, UNIT_BYTES, UNIT_PAGES, UNIT_FAULTS };

enum compare_metric {
#define X(id, name, unit) COMPARE_##id,
	COMPARE_METRIC_LIST(X)
#undef X
	COMPARE_METRIC_COUNT
};

/* One metric in all its pairs. */
struct compare_series {
	double *values[SIDE_COUNT]; /* owned: one for each pair */
	uint32_t pairs;             /* 0: not measured */
	struct paired result;       /* when pairs is above 0 */
};

struct compare_options {
	const char *marker; /* NULL: the run phase ends with the process */
	uint64_t runs, seed;
	bool cold, times_only;
};

/* An image, and what runs with it have shown. */
struct compare_image {
	const char *path;     /* borrowed, as given */
	int fd;               /* of the file, -1: not open */
	char content[32];     /* a path to it that stays right when A is put aside */
	uint64_t size;        /* bytes */
	uint32_t file_pages;  /* of the file */
	struct sha256 hash;
	bool mappable;        /* Wine maps it page by page */
	uint32_t runs, whole_reads, resident_at_first; /* timed ones, and those of them in
							* which the program read all of it,
							* or had it in memory before */
};

struct compare {
	struct tool *tool;
	const struct compare_options *options;
	char **command; /* NULL-terminated, borrowed */
	struct compare_image images[SIDE_COUNT];
	char *folder, *name; /* owned: where A stands */
	struct swap_folder swap;
	struct run_clock clock;
	struct fault_meter *meter;  /* while hard faults are counted; else NULL */
	const char *fault_method, *fault_counter; /* how they were; NULL: they were not */
	char *not_counted;          /* owned: why; NULL: they are, or nobody asked */
	int null;                   /* where the command's output goes */
	sigset_t held, before;      /* signals that wait for a good moment; as it was */
	bool has_code;
	int code;                   /* exit code of the first run, which was A's */
	int server;                 /* process id of Wine's server; 0: none */
	uint32_t server_starts;     /* how often it was another one than before */
	uint32_t again;             /* runs in which the program never began */
	uint32_t lost_again;        /* counted runs with lost events */
	bool memory_untold;         /* some process ended without a word of its memory */
	uint64_t random;            /* state of the order in pairs */
	struct compare_series series[COMPARE_METRIC_COUNT];
};

/* Whether the program itself brought the whole image into memory, in more than half of the
 * timed runs: then it hardly matters where its functions lie. */
bool compare_read_whole(const struct compare_image *image);
bool compare_resident_at_first(const struct compare_image *image);

/* Counts hard faults in pairs of cold runs, unless that cannot be done: then `not_counted`
 * says why.  COMMAND when a run fails, UNSUPPORTED when the image cannot be measured cold
 * and that was asked for; what swapping answers.  (compare_runs.c) */
enum status compare_count(struct compare *c, struct diag *diag);

/* Times pairs of runs.  COMMAND when a run fails or the images cannot be evicted,
 * NOT_FOUND when the program loads no such file or prints no marker. */
enum status compare_time(struct compare *c, struct diag *diag);

/* The result, as text or into the tool's JSON.  (compare_tell.c) */
void compare_tell_json(const struct compare *c);
enum status compare_tell_people(const struct compare *c, struct diag *diag);

#endif
