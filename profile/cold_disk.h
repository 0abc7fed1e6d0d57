/* A small disk of our own for copies of images, and laying them over files.
 *
 * What is laid over a file is seen by this process and by what it starts, in a mount
 * namespace that cold_disk_open enters for good; nobody else sees any of it, and the
 * files themselves stay as they are. */
#ifndef APPULSE_PROFILE_COLD_DISK_H
#define APPULSE_PROFILE_COLD_DISK_H

#include <stdint.h>

#include "loop_device.h"

struct cold_disk {
	struct loop_device loop;
	int root;         /* mounted file system, -1: none */
	uint32_t files;   /* copies on it: named "0", "1", ... */
};

/* Makes a disk for `bytes` of content, with that read-ahead.  COMMAND, with the
 * reason, when this user or machine cannot do it; IO. */
enum status cold_disk_open(struct cold_disk *disk, uint64_t bytes, unsigned read_ahead_kib,
			   struct diag *diag);

/* Fine for one that was never opened, if `root` and `loop.fd` are -1. */
void cold_disk_close(struct cold_disk *disk);

/* Copies the file; `ret_fd` is open for reading, the caller closes it.  IO. */
enum status cold_disk_copy(struct cold_disk *disk, const char *path, uint32_t *ret_file,
			   int *ret_fd, struct diag *diag);

/* Lays a copy over the file `place`, and takes it away again. */
enum status cold_disk_lay(struct cold_disk *disk, uint32_t file, const char *place,
			  struct diag *diag);
void cold_disk_lift(const char *place);

#endif
