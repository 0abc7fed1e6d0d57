/* Text of unknown origin, made fit to show.
 *
 * Symbol, section and file names come from untrusted images and file systems:
 * they may hold bytes that are no UTF-8, or escape sequences that a terminal
 * would obey.
 */
#ifndef APPULSE_BASE_UTF8_H
#define APPULSE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Replaces each byte that is not part of well-formed UTF-8 (Unicode Standard,
 * table 3-7) by '?', and each control character (C0, DEL, C1) too unless
 * `keep_controls`.  The length stays. */
void utf8_clean(char *text, bool keep_controls);

/* Whether utf8_clean without `keep_controls` would leave the text as it is. */
bool utf8_is_clean(const char *text);

/* Columns that well-formed text takes: one for each code point. */
size_t utf8_width(const char *text);

#endif
