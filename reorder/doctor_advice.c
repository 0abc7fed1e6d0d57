/* What a release engineer can do about what the doctor found. */
#include "doctor.h"

#include <stddef.h>

#include "layout/placement.h"

const char *doctor_pin_advice(enum pin_reason reason)
{
	static const char report[] = "send in compiler and version, it can be learnt";
	static const char in_text[] = "move data out of the code, in assembly mostly";
	static const char odd[] = "odd code, best left alone";
	static const char *const advice[PIN_REASON_COUNT] = {
		[PIN_UNKNOWN_BYTES] = in_text,
		[PIN_UNDECODED] = "data in the code, or very new instructions",
		[PIN_OVERLAP] = odd,
		[PIN_UNSOLVED_JUMP] = report,
		[PIN_TABLE_CONFLICT] = report,
		[PIN_UNKNOWN_HANDLER] = report,
		[PIN_HIDDEN_REFERENCE] = "mostly chance; or a private table of RVAs",
		[PIN_CODE_CONSTANT] = "mostly chance; link in another order",
		[PIN_ABSOLUTE_ADDRESS] = "link with base relocations (/DYNAMICBASE)",
		[PIN_DOUBTFUL_TARGET] = "goes away with the other reasons",
		[PIN_READ_AS_DATA] = in_text,
		[PIN_OUTSIDE_REFERENCE] = odd,
		[PIN_POSITION_INDEXED] = "an engine's own code, stays whole",
		[PIN_USER] = "named by --pin",
	};

	return advice[reason];
}

const char *doctor_refusal_advice(enum status status)
{
	switch (status) {
	case STATUS_NO_RELOCATIONS:
		return "find out which tool marked them as stripped, or link it anew";
	case STATUS_PACKED:
		return "take the image from before it was packed";
	case STATUS_DOTNET:
	case STATUS_NATIVE_AOT:
	case STATUS_GO:
		return "only images of native code without a runtime's tables can be "
		       "relinked";
	case STATUS_MALFORMED:
	case STATUS_OVERLAP:
		return "see what the linker or a later tool made of it; report it if "
		       "Windows loads it";
	default:
		return NULL;
	}
}

/* Whether something refers to where the code may come to stand that a new section gets. */
static bool is_referred_behind(const struct doctor *d)
{
	return d->discovered && d->graph.behind.v &&
	       d->graph.behind.v < layout_end_of_image(&d->image).v + d->pins.movable_bytes;
}

const char *doctor_remark(const struct doctor *d, unsigned index)
{
	enum { PAGE_BYTES = 4096 };
	const char *remarks[7];
	unsigned count = 0;

	if (d->toolchain.opaque)
		remarks[count++] =
			"half of the file or more is compressed or encrypted, not seen";
	if (d->reorder.status != STATUS_OK)
		return index < count ? remarks[index] : NULL;
	if (d->contents.certificate)
		remarks[count++] = "the signature is dropped: sign the output";
	if (d->contents.codeview.pdb)
		remarks[count++] = "the PDB stays the original's: --pdb-out writes a new one";
	if (d->contents.dwarf)
		remarks[count++] =
			"DWARF stays the original's: keep the map to translate";
	if (is_referred_behind(d))
		remarks[count++] = "something refers behind the image: --placement append "
				   "may find no room";
	if (d->image.headers.file_alignment < PAGE_BYTES)
		remarks[count++] =
			"Wine maps code from the file only with --file-alignment 4096";
	return index < count ? remarks[index] : NULL;
}
