/* The page map and the curve of faults, drawn in characters. */
#ifndef APPULSE_PROFILE_REPORT_TERMINAL_H
#define APPULSE_PROFILE_REPORT_TERMINAL_H

#include <stdio.h>

#include "report_subject.h"

/* Whether stdout is a terminal that people look at. */
bool report_terminal_wanted(void);

/* Draws the newest run on `out`, as linked and for each relink.  Nothing when there
 * is no run or no function.  NO_MEMORY. */
enum status report_terminal_draw(const struct subject *s, FILE *out, struct diag *diag);

#endif
