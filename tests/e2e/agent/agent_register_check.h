#ifndef APPULSE_AGENT_REGISTER_CHECK_H
#define APPULSE_AGENT_REGISTER_CHECK_H

#include "probed_image.h"

/* Prints a line for each call, with the names of what it changed.  The image's
 * functions only return, and none has been touched. */
void agent_register_check(const struct probed_image *image);

#endif
