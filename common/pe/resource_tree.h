/* The directories of the resources (PE/COFF specification, "The .rsrc Section"). */
#ifndef APPULSE_PE_RESOURCE_TREE_H
#define APPULSE_PE_RESOURCE_TREE_H

#include "pe/image.h"

/* Bytes of a directory with its entries, of a name, or of what says where a resource's
 * data are; never the data. */
struct resource_part {
	struct rva begin;
	uint32_t size;
};

struct resource_tree {
	struct resource_part *parts; /* in the image's arena; several may be the same */
	uint32_t count;              /* 0 when there are no resources, or when they are not
				      * of the form that the specification says */
};

/* NO_MEMORY only: nobody but the program itself reads its resources. */
enum status resource_tree_read(struct image *image, struct resource_tree *ret_tree,
			       struct diag *diag);

#endif
