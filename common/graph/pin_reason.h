/* Why a block may not move.  Each reason is counted in reports under its name;
 * docs/pin-reasons.md explains them. */
#ifndef APPULSE_GRAPH_PIN_REASON_H
#define APPULSE_GRAPH_PIN_REASON_H

/* X(enumerator, name) */
#define PIN_REASON_LIST(X)                                                                 \
	X(UNKNOWN_BYTES, "unknown-bytes")         /* bytes that are not understood */      \
	X(UNDECODED, "undecoded")                 /* code that does not decode */          \
	X(OVERLAP, "overlapping-code")            /* an instruction's middle is entered */ \
	X(UNSOLVED_JUMP, "unsolved-jump")         /* a jump without proven targets */      \
	X(TABLE_CONFLICT, "table-conflict")       /* its jump tables contradict */         \
	X(UNKNOWN_HANDLER, "unknown-handler")     /* unclear exception data */             \
	X(HIDDEN_REFERENCE, "hidden-reference")   /* a word in data equals its RVA */      \
	X(CODE_CONSTANT, "code-constant")         /* a constant in code equals its RVA */  \
	X(DOUBTFUL_TARGET, "doubtful-target")     /* bytes in doubt refer to it */         \
	X(READ_AS_DATA, "read-as-data")           /* read or written by instructions */    \
	X(OUTSIDE_REFERENCE, "outside-reference") /* it refers to no instruction */        \
	X(USER, "user")                           /* the user asked for it */

enum pin_reason {
#define X(id, name) PIN_##id,
	PIN_REASON_LIST(X)
#undef X
	PIN_REASON_COUNT
};

/* The reason's name as reports show it. */
const char *pin_reason_name(enum pin_reason reason);

#endif
