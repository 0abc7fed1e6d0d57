/* What a release engineer can do about what the doctor found. */
#include "doctor.h"

#include <stddef.h>

const char *doctor_pin_advice(enum pin_reason reason)
{
	static const char *const advice[PIN_REASON_COUNT] = {
		[PIN_UNKNOWN_BYTES] =
			"data among code: put it into a data section, in assembly most of all",
		[PIN_UNDECODED] =
			"data among code, or instructions that this version does not know",
		[PIN_OVERLAP] = "code enters an instruction's middle: leave it as it is",
		[PIN_UNSOLVED_JUMP] =
			"a switch of unknown form: name compiler and version in a report",
		[PIN_TABLE_CONFLICT] =
			"a switch of unknown form: name compiler and version in a report",
		[PIN_UNKNOWN_HANDLER] =
			"exception data of unknown form: name compiler and version in a report",
		[PIN_HIDDEN_REFERENCE] =
			"mostly chance; a private table of RVAs in data would be the reason",
		[PIN_CODE_CONSTANT] =
			"mostly chance: link the objects in another order if it hurts",
		[PIN_DOUBTFUL_TARGET] =
			"named by doubtful bytes: goes away with the other reasons",
		[PIN_READ_AS_DATA] = "code reads its bytes: put data into a data section",
		[PIN_OUTSIDE_REFERENCE] = "something leads between its instructions",
		[PIN_POSITION_INDEXED] =
			"an engine's own code, reached by offsets: it must stay as a whole",
		[PIN_USER] = "named by --pin",
	};

	return advice[reason];
}

const char *doctor_refusal_advice(enum status status)
{
	switch (status) {
	case STATUS_NO_RELOCATIONS:
		return "link it with /DYNAMICBASE and without /FIXED (GNU ld and lld: "
		       "--dynamicbase)";
	case STATUS_PACKED:
		return "take the image from before it was packed";
	case STATUS_INSTRUMENTED:
		return "take the original image";
	case STATUS_DOTNET:
	case STATUS_GO:
		return "only images of native code without a runtime's tables can be relinked";
	case STATUS_MALFORMED:
	case STATUS_OVERLAP:
		return "see what the linker or a later tool made of it; report it if Windows "
		       "loads it";
	default:
		return NULL;
	}
}

const char *doctor_remark(const struct doctor *d, unsigned index)
{
	enum { PAGE_BYTES = 4096 };
	const char *remarks[5];
	unsigned count = 0;

	if (d->toolchain.opaque)
		remarks[count++] = "half of the file and more is compressed or encrypted: code "
				   "in there is not seen";
	if (d->reorder.status != STATUS_OK)
		return index < count ? remarks[index] : NULL;
	if (d->contents.certificate)
		remarks[count++] = "the signature is dropped: sign the output";
	if (d->contents.codeview.pdb || d->contents.dwarf)
		remarks[count++] = "debug information is not rewritten: keep the map, "
				   "'appulse-reorder translate' reads it";
	if (d->image.headers.file_alignment < PAGE_BYTES)
		remarks[count++] = "to count pages under Wine relink with --file-alignment 4096";
	return index < count ? remarks[index] : NULL;
}
