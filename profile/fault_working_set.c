/* Pages of images in the working sets of a command's processes at their ends, or when the
 * images are unloaded.
 *
 * The Windows debugger program asks for them (debugger/working_set.c); here its log
 * becomes what the other methods give.  Which file an image of the log is, its device
 * and inode say: the debugger knows its base name alone.
 *
 * An image whose process was killed or crashed has no answer: it counts as lost.
 */
#include "fault_meter_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The index in the meter of the image that was loaded from `path`; `end`: of none. */
static uint32_t find_image(const struct fault_meter *meter, uint32_t first, uint32_t end,
			   const char *path)
{
	struct stat loaded, wanted;

	if (stat(path, &loaded) != 0)
		return end;
	for (uint32_t i = first; i < end; i++)
		if (fstat(meter->images[i].fd, &wanted) == 0 &&
		    wanted.st_dev == loaded.st_dev && wanted.st_ino == loaded.st_ino)
			return i;
	return end;
}

static bool put_process(struct fault_run *run, const struct debugger_process *p)
{
	const struct fault_process process = {p->pid, p->started_ns};

	for (uint32_t i = 0; i < run->processes.len; i++)
		if (run->processes.data[i].pid == p->pid)
			return true;
	run->page_faults += p->page_faults;
	return vec_push(&run->processes, process);
}

/* The pages of one load, `loaded` in the log, of the meter's image `index`. */
static bool put_pages(const struct fault_meter *meter, const struct debugger_log *log,
		      uint32_t loaded, uint32_t index, struct fault_run *run)
{
	const struct image_pages *pages = &meter->images[index].pages;
	struct page_fault fault = {.image = index, .kind = FAULT_RESIDENT, .time_ns = -1};
	bool ok = true;

	fault.process = log->processes.data[log->images.data[loaded].process].pid;
	for (uint32_t i = 0; i < log->resident.len; i++) {
		const struct debugger_range *range = &log->resident.data[i];

		for (uint32_t k = 0; range->image == loaded && k < range->pages && ok; k++) {
			uint32_t at;

			fault.page = rva_of(range->rva.v + k * FAULT_PAGE_BYTES);
			at = image_pages_find(pages, fault.page);
			if (at == IMAGE_NO_PAGE)
				continue; /* not of the file, as of .bss */
			fault.code = pages->pages[at].code;
			ok = vec_push(&run->faults, fault);
		}
	}
	return ok;
}

static enum status put_log(struct fault_meter *meter, uint32_t first, uint32_t end,
			   struct fault_run *run, struct diag *diag)
{
	const struct debugger_log *log = &meter->debugger.log;
	bool ok = true;

	for (uint32_t i = 0; i < log->images.len && ok; i++) {
		const struct debugger_image *loaded = &log->images.data[i];
		uint32_t index = find_image(meter, first, end, loaded->path);

		if (index == end)
			continue;
		run->counts[index].mappings++;
		run->lost += !loaded->answered;
		ok = put_process(run, &log->processes.data[loaded->process]) &&
		     put_pages(meter, log, i, index, run);
	}
	return ok ? STATUS_OK : diag_no_memory(diag);
}

enum status fault_working_set_run(struct fault_meter *meter, uint32_t first, uint32_t end,
				  const struct child *child, struct fault_run *run,
				  struct diag *diag)
{
	char **words = calloc(2 * (size_t)(end - first) + 2, sizeof(*words)), **w = words;
	enum status status;

	if (!words)
		return diag_no_memory(diag);
	*w++ = "working-set";
	for (uint32_t i = first; i < end; i++) {
		*w++ = "--image";
		*w++ = (char *)base_name(meter->images[i].place);
	}
	status = debugger_run_command(&meter->debugger, words, child, diag);
	free(words);
	run->exit = meter->debugger.exit;
	if (status == STATUS_OK)
		status = put_log(meter, first, end, run, diag);
	debugger_log_release(&meter->debugger.log);
	return status;
}
