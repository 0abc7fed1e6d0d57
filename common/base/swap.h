/* Puts files in the place of others for a while, and puts the originals back,
 * whatever happens in between.
 *
 *     swap_folder_open(&folder, path, SWAP_WAIT, tell, with, diag)
 *                                     locks it; puts right what a killed run left
 *     swap_folder_add(&folder, "app.dll", "work/app.dll", false, diag)
 *     swap_in(&folder, diag)
 *     ... run the program ...
 *     swap_out(&folder, diag)
 *     swap_folder_close(&folder)
 *
 * Invariant: at every moment, a kill at any instruction and a loss of power included,
 * each original stands whole in the folder, under its own name or with SWAP_ORIGINAL
 * behind it, as the same file (inode, times, mode, links).
 */
#ifndef APPULSE_BASE_SWAP_H
#define APPULSE_BASE_SWAP_H

#include "swap_journal.h"

enum swap_event {
	SWAP_WAITS,    /* for another run, which holds the folder */
	SWAP_UNLOCKED, /* the file system knows no locks: goes on without */
	SWAP_RESTORED, /* a file that a killed run had left swapped or added */
	SWAP_CHANGED,  /* somebody wrote that file meanwhile: it stays, the original is
			* kept beside it with SWAP_ORIGINAL behind its name */
};

/* Called for each event with the path of the folder or file. */
typedef void swap_tell_fn(void *with, enum swap_event event, const char *path);

enum swap_wait {
	SWAP_WAIT, /* until another run is done with the folder */
	SWAP_BUSY, /* fail when another run holds it */
};

/* All zero but `fd` of -1: not open. */
struct swap_folder {
	char *path;                  /* owned */
	int fd;                      /* of the folder, locked; -1: not open */
	struct swap_entries entries; /* what swap_in puts there */
	bool swapped;                /* a journal of ours stands in the folder */
	bool complete;               /* and all replacements in theirs */
	swap_tell_fn *tell;
	void *with;
};

/* Opens and locks the folder, and restores what a run that was killed left.  IO,
 * MALFORMED (a journal that is not ours), NO_MEMORY.  Close it either way. */
enum status swap_folder_open(struct swap_folder *folder, const char *path,
			     enum swap_wait wait, swap_tell_fn *tell, void *with,
			     struct diag *diag);
void swap_folder_close(struct swap_folder *folder);

/* Notes that `replacement` is to stand in the folder as `name`, in an original's place
 * or, when `added`, where there is no file.  USAGE when a journal could not hold the
 * name; IO, NO_MEMORY. */
enum status swap_folder_add(struct swap_folder *folder, const char *name,
			    const char *replacement, bool added, struct diag *diag);

/* Puts all replacements in.  On failure everything is as before.  EXISTS when a file
 * is in the way; IO, NO_MEMORY. */
enum status swap_in(struct swap_folder *folder, struct diag *diag);

/* Puts all originals back, and forgets the entries.  Nothing to do is no failure.  On
 * failure (IO, NO_MEMORY) the journal stays, so that a later swap_folder_open tries
 * again. */
enum status swap_out(struct swap_folder *folder, struct diag *diag);

#endif
