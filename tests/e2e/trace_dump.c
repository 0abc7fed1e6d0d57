/* Prints a trace file for tests: a line for each field and each touch, in order. */
#include <inttypes.h>
#include <stdio.h>

#include "trace/trace_file.h"

int main(int argc, char **argv)
{
	struct trace_file trace;
	struct diag diag = {0};
	char hex[SHA256_HEX_SIZE];
	char text[2048];

	if (argc != 2)
		return 2;
	if (trace_file_read(argv[1], &trace, &diag) != STATUS_OK) {
		diag_format(&diag, text, sizeof(text));
		fprintf(stderr, "%s: %s\n", status_name(diag.status), text);
		return status_exit_code(diag.status);
	}
	sha256_hex(&trace.image_hash, hex);
	printf("empty\t%d\nimage\t%s\nhash\t%s\nexecutable\t%s\n", trace.empty,
	       trace.image_name, hex, trace.executable);
	printf("process\t%" PRIu32 "\nparent\t%" PRIu32 "\nstart\t%" PRIu64 "\n",
	       trace.process, trace.parent, trace.process_start);
	printf("opened\t%" PRIu64 "\nprobes\t%" PRIu32 "\nincomplete\t%" PRIu32 "\n",
	       trace.opened, trace.probes, trace.incomplete);
	for (uint32_t i = 0; i < trace.touch_count; i++) {
		const struct trace_touch *t = &trace.touches[i];

		printf("touch\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu64 "\t%" PRId64 "\n",
		       t->rva.v, t->thread, t->seq,
		       trace_file_nanoseconds(&trace, t->ticks));
	}
	trace_file_release(&trace);
	return 0;
}
