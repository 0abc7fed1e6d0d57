/* Replays a corpus: calls the target for each file, and for each file in each
 * folder, that the command line names. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "fuzz_target.h"

static unsigned replayed;

static int replay_file(const char *path)
{
	struct mapped_file file;
	struct diag diag;
	uint8_t *copy;

	diag_init(&diag);
	if (mapped_file_open(&file, path, &diag) != STATUS_OK) {
		fprintf(stderr, "%s\n", diag.message);
		return 1;
	}
	/* A copy on the heap of exactly the input's size: a sanitizer sees the first byte
	 * that is read behind it. */
	copy = malloc(file.size ? file.size : 1);
	if (!copy)
		return 1;
	if (file.size)
		memcpy(copy, file.data, file.size);
	LLVMFuzzerTestOneInput(copy, file.size);
	replayed++;
	free(copy);
	mapped_file_close(&file);
	return 0;
}

static int replay_folder(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	int failed = 0;

	if (!folder) {
		perror(path);
		return 1;
	}
	while ((entry = readdir(folder))) {
		char name[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		failed |= replay_file(name);
	}
	closedir(folder);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++) {
		struct stat st;

		if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
			failed |= replay_folder(argv[i]);
		else
			failed |= replay_file(argv[i]);
	}
	printf("replayed %u inputs\n", replayed);
	return failed || replayed == 0;
}
