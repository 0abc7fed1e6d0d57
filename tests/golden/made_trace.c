/* Makes trace files and images for the sessions, without any Windows program.
 *
 *     made_trace trace FILE IMAGE PID PARENT START TOUCH...
 *         A trace of IMAGE in process PID of PARENT that started START seconds after
 *         2001-01-01.  TOUCH is RVA[/THREAD][+MICROSECONDS], or - for a record that
 *         was cut short.  FILE ending in a slash is a folder, in which the file gets
 *         a name as the agent would give it; @ is the folder that the agent would use.
 *     made_trace image DATABASE IMAGE RVA:SIZE:NAME[:REASON]...
 *         The image's functions; with a REASON one is pinned.
 *     made_trace pages DATABASE IMAGE SCENARIO PAGE[r]...
 *         A page run; r marks a page that was only read.
 *
 * An IMAGE with a slash in it is a file.  The hash of any other is that of its name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "trace/db.h"
#include "trace/probe.h"
#include "trace/trace_format.h"

enum { THREAD = 101, FREQUENCY = 10000000 };

/* FILETIME of 2001-01-01: 146,097 days after 1601-01-01. */
#define BEGIN (UINT64_C(146097) * 86400 * FREQUENCY)

static void check(enum status status, const struct diag *diag)
{
	if (status == STATUS_OK)
		return;
	fprintf(stderr, "made_trace: %s\n", diag->message);
	exit(1);
}

static struct sha256 hash_of(const char *name)
{
	struct mapped_file file;
	struct sha256 hash;
	struct diag diag;

	if (!strchr(name, '/'))
		return sha256_of(name, strlen(name));
	check(mapped_file_open(&file, name, &diag), &diag);
	hash = sha256_of(file.data, file.size);
	mapped_file_close(&file);
	return hash;
}

/* The folder that the environment names in Wine's form, as a Unix path. */
static char *agent_folder(void)
{
	const char *value = getenv(PROBE_TRACE_FOLDER);
	const char prefix[] = "\\\\?\\unix";
	char *path;

	if (!value || strncmp(value, prefix, sizeof(prefix) - 1) != 0) {
		fprintf(stderr, "made_trace: no folder for traces\n");
		exit(1);
	}
	path = strdup(value + sizeof(prefix) - 1);
	for (char *p = path; *p; p++)
		if (*p == '\\')
			*p = '/';
	return path;
}

static char *file_path(const char *file, const char *image, const char *pid)
{
	size_t length = strlen(file);
	char *path;

	if (strcmp(file, "@") == 0) {
		char *folder = agent_folder();

		if (asprintf(&path, "%s/%s-%s.aptrace", folder, image, pid) < 0)
			abort();
		free(folder);
	} else if (length && file[length - 1] == '/') {
		if (asprintf(&path, "%s%s-%s.aptrace", file, image, pid) < 0)
			abort();
	} else {
		path = strdup(file);
	}
	return path;
}

static struct trace_record record_of(const char *touch, uint64_t seq)
{
	struct trace_record record = {.seq = seq, .thread = THREAD, .ticks = 1000};
	char *end;

	if (strcmp(touch, "-") == 0)
		return (struct trace_record){0};
	record.rva = (uint32_t)strtoul(touch, &end, 16);
	if (*end == '/')
		record.thread = (uint32_t)strtoul(end + 1, &end, 10);
	if (*end == '+')
		record.ticks += strtoull(end + 1, &end, 10) * (FREQUENCY / 1000000);
	return record;
}

static int make_trace(int argc, char **argv)
{
	static const char executable[] = "C:\\app\\app.exe";
	const char *image = argv[1];
	uint32_t count = (uint32_t)(argc - 5);
	struct trace_header header = {
		.magic = TRACE_MAGIC,
		.version = TRACE_VERSION,
		.header_size = trace_header_size(sizeof(executable) - 1),
		.record_size = sizeof(struct trace_record),
		.capacity = count + 1,
		.next = count,
		.process = (uint32_t)atoi(argv[2]),
		.parent = (uint32_t)atoi(argv[3]),
		.path_size = sizeof(executable) - 1,
		.process_start = BEGIN + (uint64_t)atoi(argv[4]) * FREQUENCY,
		.opened_ticks = 1000,
		.frequency = FREQUENCY,
	};
	struct sha256 hash = hash_of(image);
	size_t size = trace_file_size(header.header_size, header.capacity);
	uint8_t *bytes = calloc(1, size);
	char *path = file_path(argv[0], image, argv[2]);
	struct diag diag;

	header.opened = header.process_start + FREQUENCY / 10;
	memcpy(header.image_hash, &hash, sizeof(hash));
	snprintf(header.image_name, sizeof(header.image_name), "%s", basename(image));
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), executable, sizeof(executable) - 1);
	for (uint32_t i = 0; i < count; i++) {
		struct trace_record record = record_of(argv[5 + i], i + 1);

		memcpy(bytes + header.header_size + i * sizeof(record), &record,
		       sizeof(record));
		bytes[header.header_size + header.capacity * sizeof(record) + i] = 1;
	}
	check(file_write(path, bytes, size, true, &diag), &diag);
	free(path);
	free(bytes);
	return 0;
}

static int64_t put_image(struct db *db, const char *name,
			 const struct db_function *functions, uint32_t count)
{
	struct db_image image = {
		.hash = hash_of(name), .name = name, .size = count ? 65536 : 0};
	struct diag diag;
	int64_t id;

	check(db_put_image(db, &image, functions, count, &id, &diag), &diag);
	return id;
}

static int make_image(int argc, char **argv)
{
	struct db_function functions[64] = {0};
	struct diag diag;
	struct db *db;

	check(db_open(argv[0], DB_CREATE, &db, &diag), &diag);
	for (int i = 2; i < argc && i < 66; i++) {
		struct db_function *f = &functions[i - 2];

		f->rva.v = (uint32_t)strtoul(strtok(argv[i], ":"), NULL, 16);
		f->size = (uint32_t)atoi(strtok(NULL, ":"));
		f->name = strtok(NULL, ":");
		f->pins = strtok(NULL, ":");
		f->movable = !f->pins;
		f->probe = i - 2;
	}
	put_image(db, argv[1], functions, (uint32_t)(argc - 2));
	db_close(db);
	return 0;
}

static int make_pages(int argc, char **argv)
{
	struct db_page_touch pages[64] = {0};
	struct db_run run = {.kind = DB_RUN_PAGES,
			     .scenario = argv[2],
			     .weight = 1,
			     .command = "wine app.exe",
			     .host = "host",
			     .started_ns = INT64_C(978307200) * 1000000000};
	struct db_process process = {.pid = 77};
	struct diag diag;
	struct db *db;
	int64_t image, id;

	check(db_open(argv[0], DB_CREATE, &db, &diag), &diag);
	image = put_image(db, argv[1], NULL, 0);
	for (int i = 3; i < argc && i < 67; i++) {
		char *end;

		pages[i - 3].seq = (uint32_t)i;
		pages[i - 3].page.v = (uint32_t)strtoul(argv[i], &end, 16);
		pages[i - 3].kind = *end == 'r' ? DB_ACCESS_READ : DB_ACCESS_EXECUTE;
	}
	check(db_begin_run(db, &run, &process.run, &diag), &diag);
	check(db_put_process(db, &process, &id, &diag), &diag);
	check(db_put_page_touches(db, id, image, pages, (uint32_t)(argc - 3), &diag),
	      &diag);
	check(db_finish_run(db, process.run, DB_EXIT_EXITED, 0, 1, &diag), &diag);
	db_close(db);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 7 && strcmp(argv[1], "trace") == 0)
		return make_trace(argc - 2, argv + 2);
	if (argc >= 4 && strcmp(argv[1], "image") == 0)
		return make_image(argc - 2, argv + 2);
	if (argc >= 5 && strcmp(argv[1], "pages") == 0)
		return make_pages(argc - 2, argv + 2);
	fprintf(stderr, "made_trace: wrong usage\n");
	return 2;
}
