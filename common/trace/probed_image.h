/* Recognising an image that is instrumented already. */
#ifndef APPULSE_TRACE_PROBED_IMAGE_H
#define APPULSE_TRACE_PROBED_IMAGE_H

#include "pe/image.h"

/* Whether the image carries our probes: its section PROBE_DATA_SECTION begins
 * with PROBE_MAGIC. */
bool image_is_probed(const struct image *image);

/* STATUS_INSTRUMENTED, with what to do instead, when it does. */
enum status image_refuse_probed(const struct image *image, struct diag *diag);

#endif
