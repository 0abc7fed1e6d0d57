/* What a library function can answer, and the exit code it leads to.
 *
 * One list makes the enum, the names that people read and the exit codes, so
 * that they cannot drift apart.  The codes are the tools' documented ones:
 * 0 done, 1 failed, 2 wrong usage, 3 input refused, 4 what was asked for cannot be
 * vouched for: verification failed, or a profile fits too little.
 */
#ifndef APPULSE_BASE_STATUS_H
#define APPULSE_BASE_STATUS_H

/* X(enumerator, name, exit code) */
#define STATUS_LIST(X)                                        \
	X(OK, "ok", 0)                                        \
	/* Failures of this run, not of the input. */         \
	X(NO_MEMORY, "no-memory", 1)                          \
	X(IO, "io-error", 1)                                  \
	X(EXISTS, "output-exists", 1)                         \
	X(DATABASE, "database-error", 1)                      \
	X(COMMAND, "command-failed", 1)                       \
	X(NOT_FOUND, "not-found", 1)                          \
	X(NO_ROOM, "no-room", 1)                              \
	X(USAGE, "usage", 2)                                  \
	/* The input is refused; the name is the reason. */   \
	X(NOT_PE, "not-pe", 3)                                \
	X(MALFORMED, "malformed", 3)                          \
	X(MACHINE, "other-machine", 3)                        \
	X(NO_RELOCATIONS, "no-relocations", 3)                \
	X(DOTNET, "dotnet", 3)                                \
	X(NATIVE_AOT, "native-aot", 3)                        \
	X(GO, "go", 3)                                        \
	X(PACKED, "packed", 3)                                \
	X(OVERLAP, "overlapping-sections", 3)                 \
	X(INSTRUMENTED, "already-instrumented", 3)            \
	X(UNSUPPORTED, "unsupported", 3)                      \
	X(BAD_TRACE, "bad-trace", 3)                          \
	X(BAD_DATABASE, "bad-database", 3)                    \
	X(BAD_MAP, "bad-map", 3)                              \
	X(BAD_ORDER, "bad-order", 3)                          \
	X(BAD_SYMBOLS, "bad-symbols", 3)                      \
	X(OTHER_IMAGE, "other-image", 3)                      \
	X(VERIFY, "verification-failed", 4)                   \
	X(STALE_PROFILE, "stale-profile", 4)

enum status {
#define X(id, name, code) STATUS_##id,
	STATUS_LIST(X)
#undef X
	STATUS_COUNT
};

/* The status's name as reports and messages show it; never NULL. */
const char *status_name(enum status status);

/* The process exit code that the status leads to. */
int status_exit_code(enum status status);

#endif
