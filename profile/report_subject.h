/* An image that is reported: what runs touched of it, where relinks put it, and what
 * that costs in page faults.  Everything that `report` says, in whatever form, comes
 * from here. */
#ifndef APPULSE_PROFILE_REPORT_SUBJECT_H
#define APPULSE_PROFILE_REPORT_SUBJECT_H

#include "layout/fault_model.h"
#include "trace/db_identities.h"
#include "trace/db_report.h"

/* What a set of touched RVAs amounts to. */
struct touched {
	uint64_t functions, bytes; /* known functions */
	uint64_t unknown;          /* RVAs that are no known function's */
	uint64_t floor_pages, linked_pages;
};

/* Where all functions stand: as linked, or after a relink. */
struct standing {
	const struct db_relink_row *relink; /* NULL: as linked */
	struct rva *rvas;                   /* owned: of each function */
	struct fault_section *sections;     /* owned: pages with code, see below */
	uint32_t section_count;
	uint32_t image_size;                /* bytes, to the last function's end */
	uint64_t linked_pages;              /* that hold functions that any run touched */
};

struct subject {
	const struct db_image_row *row; /* borrowed */
	struct arena arena;
	struct db_image_functions image;  /* owned */
	struct db_identities identities;  /* owned: of the same functions */
	struct db_profile profile;        /* owned */
	struct standing *standings;       /* owned; the first one is as linked */
	uint32_t standing_count;
	uint8_t *seen;  /* owned: per function, a touch in any run */
	uint8_t *pages; /* owned: per page, scratch */
	uint32_t page_count;
	struct touched all; /* by all runs */
};

/* Reads an image with its runs, or with one of them when `run` is not 0, of kind
 * `kind`, and its relinks.  Release it even after a failure. */
enum status subject_load(struct db *db, const struct db_image_row *row,
			 enum db_run_kind kind, int64_t run, struct subject *s,
			 struct diag *diag);
void subject_release(struct subject *s);

/* The index of the function that starts at `rva`, or the count of functions. */
uint32_t function_at(const struct db_image_functions *image, struct rva rva);

struct touched subject_count_run(struct subject *s, const struct db_profile_run *run);

/* What the model (layout/fault_model.h) says of a run.  Its touches are the run's, with
 * no range for one at an RVA that is no known function's.  The database does not know
 * sections: code pages that lie less than SECTION_GAP pages from each other count as
 * one.  The caller releases the result. */
enum { SECTION_GAP = 16 };
enum status subject_predict(const struct subject *s, const struct standing *standing,
			    const struct db_profile_run *run, uint32_t cluster,
			    struct fault_result *ret_result, struct diag *diag);

/* "as linked", or "first-touch, exchange": the order and the placement. */
void standing_name(const struct standing *standing, char *ret_name, size_t size);

#endif
