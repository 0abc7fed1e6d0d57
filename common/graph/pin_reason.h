/* Why a block may not move.  Each reason is counted in reports under its name;
 * docs/pin-reasons.md explains them. */
#ifndef APPULSE_GRAPH_PIN_REASON_H
#define APPULSE_GRAPH_PIN_REASON_H

/* X(enumerator, name, what it means) */
#define PIN_REASON_LIST(X)                                                                 \
	X(UNKNOWN_BYTES, "unknown-bytes", "bytes in a code section that are not understood")   \
	X(UNDECODED, "undecoded", "an instruction in it cannot be decoded")                    \
	X(OVERLAP, "overlapping-code", "control flow enters the middle of an instruction")     \
	X(UNSOLVED_JUMP, "unsolved-jump", "a computed jump whose targets are not proven")      \
	X(TABLE_CONFLICT, "table-conflict", "its jump tables contradict each other")           \
	X(UNKNOWN_HANDLER, "unknown-handler", "exception data that is not understood")         \
	X(HIDDEN_REFERENCE, "hidden-reference", "a word in data equals its RVA")               \
	X(CODE_CONSTANT, "code-constant", "a constant in code equals its RVA")                 \
	X(DOUBTFUL_TARGET, "doubtful-target", "code or bytes that are in doubt refer to it")   \
	X(READ_AS_DATA, "read-as-data", "an instruction reads or writes its bytes")            \
	X(OUTSIDE_REFERENCE, "outside-reference", "a reference to a place that is no instruction") \
	X(USER, "user", "the user asked for it")

enum pin_reason {
#define X(id, name, meaning) PIN_##id,
	PIN_REASON_LIST(X)
#undef X
	PIN_REASON_COUNT
};

/* The reason's name as reports show it, and a phrase that explains it. */
const char *pin_reason_name(enum pin_reason reason);
const char *pin_reason_meaning(enum pin_reason reason);

#endif
