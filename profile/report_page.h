/* The report as a web page: one file with all that it needs. */
#ifndef APPULSE_PROFILE_REPORT_PAGE_H
#define APPULSE_PROFILE_REPORT_PAGE_H

#include "report_pack.h"
#include "report_subject.h"

struct page {
	json_t *images; /* owned: what the page needs of each image */
	struct pack pack;
	bool failed;    /* memory ran out */
};

void page_init(struct page *page);
void page_release(struct page *page);

/* Adds an image; its figures stand in the report's JSON, under the same id.
 * `other` is the same image, or another build of it, in another database; may be
 * NULL.  `from_run` is the run that differences begin with, of `other` if there is one;
 * 0: which one is for the page to choose.  Statuses of db_list_run_touches, and NO_MEMORY. */
enum status page_add(struct page *page, struct db *db, const struct subject *s,
		     struct db *other_db, const struct subject *other, int64_t from_run,
		     struct diag *diag);

/* Writes the page.  `images` is the array of that name that --json prints.
 * EXISTS unless `force`, IO, NO_MEMORY. */
enum status page_write(struct page *page, json_t *images, const char *path,
		       bool force, uint64_t *ret_size, struct diag *diag);

#endif
