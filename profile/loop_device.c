/* A block device of our own, which the kernel takes away when we are gone.
 *
 * LO_FLAGS_AUTOCLEAR detaches the device at its last close (loop(4)), so that a
 * killed process leaves none.  The read-ahead is the block device's (BLKRASET), and a
 * file takes it over when it is opened.  A loop device gets its default back when it
 * is attached anew (observed: Linux 6.18); we give it back all the same.
 */
#include "loop_device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TRIES = 16, SECTORS_PER_KIB = 2 };

static enum status fail(struct diag *diag, int err, const char *what)
{
	return diag_fail_errno(diag, STATUS_COMMAND, err, "no loop device: cannot %s", what);
}

/* Another program may take the free device between the two calls: EBUSY. */
static int attach(struct loop_device *device, int control, int backing)
{
	struct loop_config config = {.fd = (uint32_t)backing,
				     .info.lo_flags = LO_FLAGS_AUTOCLEAR};
	int number = ioctl(control, LOOP_CTL_GET_FREE), err;

	if (number < 0)
		return errno;
	snprintf(device->path, sizeof(device->path), "/dev/loop%d", number);
	device->fd = open(device->path, O_RDWR | O_CLOEXEC);
	if (device->fd < 0)
		return errno;
	if (ioctl(device->fd, LOOP_CONFIGURE, &config) == 0)
		return 0;
	err = errno;
	close(device->fd);
	device->fd = -1;
	return err;
}

enum status loop_device_open(struct loop_device *device, int backing,
			     unsigned read_ahead_kib, struct diag *diag)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), err = EBUSY;

	*device = (struct loop_device){.fd = -1};
	if (control < 0)
		return fail(diag, errno, "open '/dev/loop-control'");
	for (int i = 0; i < TRIES && err == EBUSY; i++)
		err = attach(device, control, backing);
	close(control);
	if (err)
		return fail(diag, err, "attach one");
	if (ioctl(device->fd, BLKRAGET, &device->former) != 0 ||
	    ioctl(device->fd, BLKRASET, (long)read_ahead_kib * SECTORS_PER_KIB) != 0) {
		err = errno;
		loop_device_close(device);
		return fail(diag, err, "set its read-ahead");
	}
	return STATUS_OK;
}

void loop_device_close(struct loop_device *device)
{
	if (device->fd < 0)
		return;
	if (device->former > 0)
		(void)ioctl(device->fd, BLKRASET, device->former);
	close(device->fd);
	device->fd = -1;
}
