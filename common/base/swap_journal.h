/* Which files of a folder have been swapped, as a file in that folder.
 *
 * The journal stands there from before the first file is touched until after the last
 * original is back.  Whoever finds one, and the folder unlocked, knows that the run
 * behind it was killed, and what to do.  A text, for people in need:
 *
 *     appulse-swap 1
 *     swapped SHA256 app.dll
 *     added SHA256 appulse-agent.dll
 *     end
 *
 * SHA256 is that of the file that was put there.
 */
#ifndef APPULSE_BASE_SWAP_JOURNAL_H
#define APPULSE_BASE_SWAP_JOURNAL_H

#include <stdbool.h>

#include "base/diag.h"
#include "base/sha256.h"
#include "base/vec.h"

#define SWAP_JOURNAL "appulse-swap.txt"
#define SWAP_ORIGINAL ".appulse-original" /* behind a name: the original, put aside */
#define SWAP_NEW ".appulse-new"           /* behind a name: being written */

struct swap_entry {
	char *name;         /* owned: of a file in the folder */
	char *replacement;  /* owned: path of what takes its place; NULL when read back */
	struct sha256 hash; /* of the replacement */
	bool added;         /* there was no such file before */
};

struct swap_entries {
	struct swap_entry *data; /* owned */
	uint32_t len, cap;
};

void swap_entries_release(struct swap_entries *entries);

/* Whether a journal can hold the name: not empty, no slash, no line break, not "."
 * or "..". */
bool swap_name_is_fit(const char *name);

/* The journal's text on the heap, of names that are fit; NULL when memory is out. */
char *swap_journal_text(const struct swap_entries *entries);

/* Reads a text back.  `ret_entries` needs swap_entries_release either way.
 * MALFORMED when it is not what swap_journal_text makes; NO_MEMORY. */
enum status swap_journal_parse(const char *text, size_t size,
			       struct swap_entries *ret_entries, struct diag *diag);

#endif
