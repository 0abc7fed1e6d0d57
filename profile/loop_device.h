/* A block device of our own, which the kernel takes away when we are gone. */
#ifndef APPULSE_PROFILE_LOOP_DEVICE_H
#define APPULSE_PROFILE_LOOP_DEVICE_H

#include "base/diag.h"

struct loop_device {
	int fd;         /* of the device, -1: none */
	char path[32];  /* "/dev/loop7" */
	long former;    /* its read-ahead before, in sectors of 512 bytes */
};

/* Attaches the file behind `backing` to a free loop device, with a read-ahead of
 * `read_ahead_kib`.  The device is detached when nobody has it open any more: neither
 * this descriptor nor a file system mounted from it.  COMMAND, with the reason, when
 * that cannot be had. */
enum status loop_device_open(struct loop_device *device, int backing,
			     unsigned read_ahead_kib, struct diag *diag);

/* Gives the read-ahead back; fine for one that was not opened (`fd` -1). */
void loop_device_close(struct loop_device *device);

#endif
