/* What the steps of `appulse optimize` share. */
#ifndef APPULSE_REORDER_OPTIMIZE_H
#define APPULSE_REORDER_OPTIMIZE_H

#include "base/swap.h"
#include "cli/options.h"
#include "subtools.h"

enum { PAGE_BYTES = 4096 };

/* What is where in the output folder. */
#define OPTIMIZE_FOLDER "appulse-out"
#define OPTIMIZE_WORK ".appulse-work-" /* six characters follow */
#define OPTIMIZE_DATABASE "profile.db"

extern const char *const optimize_placements[];

struct optimize_options {
	struct string_list images, pins;
	const char *output, *database, *scenario; /* NULL: the default */
	uint64_t runs, exit_code;
	uint64_t wait; /* seconds; valid with has_wait */
	bool has_wait;
	unsigned placement;
	bool no_pages, force;
	char **command;
};

/* Counts of an image; UNKNOWN_COUNT when not measured. */
#define UNKNOWN_COUNT UINT64_MAX

struct image_figures {
	uint64_t functions, movable_functions, touched_functions;
	uint64_t bytes, movable_bytes, touched_bytes; /* of functions */
	uint64_t code_pages, pages_before, pages_after;
	uint64_t size_before, size_after; /* of the file */
	uint64_t runs; /* in the database, that the touched ones are of */
};

/* An image to optimize. */
struct subject {
	const char *given;  /* as on the command line */
	const char *name;   /* its last part: what the program calls the image */
	char *path;         /* owned: absolute, without links: the file to swap */
	uint32_t folder;    /* index of its folder */
	char *instrumented; /* owned: paths of what is made */
	char *relinked;
	char *relinked_map;
	char *output;
	char *output_map;
	struct image_figures figures;
	json_t *pins; /* owned: as appulse-reorder counts them; NULL before */
};

/* How a run's stdout compares with that of the original images. */
enum output_match { OUTPUT_SAME, OUTPUT_DIFFERS, OUTPUT_VARIES };

struct optimize {
	struct tool *tool;
	const struct optimize_options *options;
	struct subtools subtools;
	struct subject *subjects;    /* owned; as many as options->images */
	uint32_t subject_count;      /* that are filled in */
	struct swap_folder *folders; /* owned: the folders of the images, by path */
	uint32_t folder_count;
	struct swap_folder output; /* DIR, locked; nothing is swapped in it */
	bool made_output;          /* DIR did not exist */
	char *work;                /* owned: the folder for all that is made; NULL: none */
	char *agent;               /* owned: path of the agent beside them */
	char *database, *database_output; /* owned: where it is, where it goes; the latter
					   * is NULL when it stays */
	char *stdout_before, *stdout_now; /* owned: paths of what COMMAND printed */
	bool varies;             /* COMMAND's output, from run to run without relinking */
	enum output_match match; /* of the relinked images' run */
};

/* Finds the images, locks their folders and the output's, makes the work folder.
 * (optimize_prepare.c) */
enum status optimize_prepare(struct optimize *o, struct diag *diag);

/* Moves what was made from the work folder to the output folder. */
enum status optimize_publish(struct optimize *o, struct diag *diag);

/* Puts originals back, removes the work folder, lets go of all.  A failure to put
 * back is a status. */
enum status optimize_release(struct optimize *o, struct diag *diag);

/* Paths, on the heap; NULL when memory is out. */
char *path_join(const char *folder, const char *name);

/* Whether each --pin names one of the images; USAGE.  (optimize_runs.c) */
enum status optimize_check_pins(const struct optimize *o, struct diag *diag);

/* Adds probes to all images. */
enum status optimize_instrument(struct optimize *o, struct diag *diag);

/* Runs the command with the original images, under the page debugger if wanted. */
enum status optimize_measure(struct optimize *o, struct diag *diag);

/* Runs it with the instrumented images, options->runs times. */
enum status optimize_profile(struct optimize *o, struct diag *diag);

/* Relinks all images. */
enum status optimize_relink(struct optimize *o, struct diag *diag);

/* Runs the command with the relinked images, and compares.  VERIFY when it fails. */
enum status optimize_check(struct optimize *o, struct diag *diag);

/* The result, as text or into the tool's JSON.  (optimize_report.c) */
enum status optimize_report(struct optimize *o, struct diag *diag);

#endif
