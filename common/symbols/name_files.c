#include "symbols/name_files.h"

#include <string.h>

#include "symbols/linker_map.h"
#include "symbols/pdb_symbols.h"

static enum status add_pdb(const char *path, struct image *image, struct symbol_set *set,
			   struct diag *diag)
{
	struct pdb pdb;
	enum status status = pdb_open(&pdb, path, diag);

	if (status != STATUS_OK)
		return status;
	status = pdb_check_image(&pdb, image, diag);
	if (status == STATUS_OK)
		status = pdb_symbols_add(&pdb, image, set, diag);
	pdb_close(&pdb);
	return status;
}

static enum status add_linker_map(const char *path, struct image *image,
				  struct symbol_set *set, struct diag *diag)
{
	struct mapped_file file;
	enum status status = mapped_file_open(&file, path, diag);

	if (status != STATUS_OK)
		return status;
	status = linker_map_add(file.data, file.size, image, set, diag);
	mapped_file_close(&file);
	return status;
}

typedef enum status add_fn(const char *path, struct image *image, struct symbol_set *set,
			   struct diag *diag);

/* One file, whole or not at all. */
static enum status add_file(struct file_names *names, const char *path, add_fn *add,
			    struct image *image, struct diag *diag)
{
	uint32_t before = names->set.symbols.len, outside = names->set.outside;
	struct diag why;
	enum status status;

	if (!path)
		return STATUS_OK;
	diag_init(&why);
	status = add(path, image, &names->set, &why);
	diag_set_file(&why, path);
	if (status == STATUS_OK) {
		names->used_count++;
	} else if (status == STATUS_OTHER_IMAGE || status == STATUS_UNSUPPORTED) {
		names->refused[names->refused_count++] = why;
		names->set.symbols.len = before;
		names->set.outside = outside;
		status = STATUS_OK;
	} else if (diag) {
		*diag = why;
	}
	return status;
}

enum status file_names_read(struct file_names *names, const struct name_files *files,
			    struct image *image, struct diag *diag)
{
	enum status status;

	memset(names, 0, sizeof(*names));
	status = add_file(names, files->pdb, add_pdb, image, diag);
	if (status == STATUS_OK)
		status = add_file(names, files->linker_map, add_linker_map, image, diag);
	if (status == STATUS_OK && !symbol_set_finish(&names->set))
		status = diag_no_memory(diag);
	if (status != STATUS_OK)
		file_names_release(names);
	return status;
}

void file_names_release(struct file_names *names)
{
	symbol_set_release(&names->set);
	memset(names, 0, sizeof(*names));
}
