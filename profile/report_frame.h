/* What stands before and behind the data of the report's page; made at build time by
 * profile/report/embed.py from the files beside it. */
#ifndef APPULSE_PROFILE_REPORT_FRAME_H
#define APPULSE_PROFILE_REPORT_FRAME_H

#include <stddef.h>

extern const char report_frame_head[], report_frame_tail[];
extern const size_t report_frame_head_size, report_frame_tail_size;

#endif
