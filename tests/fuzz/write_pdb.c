/* usage: write_pdb FILE: writes the PDB of made_pdb.h, to begin a corpus with. */
#include <stdio.h>

#include "made_pdb.h"

int main(int argc, char **argv)
{
	size_t size;
	uint8_t *bytes = made_pdb(&size);
	FILE *file = argc == 2 ? fopen(argv[1], "wb") : NULL;
	int failed = !file || fwrite(bytes, 1, size, file) != size;

	if (file)
		failed |= fclose(file) != 0;
	free(bytes);
	return failed;
}
