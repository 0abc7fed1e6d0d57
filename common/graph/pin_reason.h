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
	X(ABSOLUTE_ADDRESS, "absolute-address")   /* a word equals an address in it */     \
	X(DOUBTFUL_TARGET, "doubtful-target")     /* bytes in doubt refer to it */         \
	X(READ_AS_DATA, "read-as-data")           /* read or written by instructions */    \
	X(OUTSIDE_REFERENCE, "outside-reference") /* it refers to no instruction */        \
	X(POSITION_INDEXED, "position-indexed")   /* looked up by where it stands */       \
	X(USER, "user")                           /* the user asked for it */

enum pin_reason {
#define X(id, name) PIN_##id,
	PIN_REASON_LIST(X)
#undef X
	PIN_REASON_COUNT
};

/* Reasons for which code gets neither a probe nor a breakpoint: its bytes may be data, or
 * who looks it up by its place must find it. */
#define PINS_UNPROBED                                                                      \
	(1u << PIN_UNKNOWN_BYTES | 1u << PIN_UNDECODED | 1u << PIN_OVERLAP |               \
	 1u << PIN_READ_AS_DATA | 1u << PIN_POSITION_INDEXED | 1u << PIN_USER)

/* The reason's name as reports show it. */
const char *pin_reason_name(enum pin_reason reason);

#endif
