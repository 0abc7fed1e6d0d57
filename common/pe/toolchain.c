/* The signs, and where they are known from:
 *
 *   Microsoft link   the Rich header; it alone writes one
 *   lld              linker version 14.0 and the PE signature at 0x78, right behind its
 *                    short DOS stub (observed: lld 14.0.6; LLVM's lld/COFF/Writer.cpp
 *                    writes both constants)
 *   GNU ld           linker version 2.x (binutils' own: observed 2.40 as 2.40) and the PE
 *                    signature at 0x80
 *   GCC, clang       the text of `.ident`, which GCC leaves in read-only data; producers
 *                    in DWARF strings (observed: GCC 12.2, clang 14.0.6)
 *   mingw-w64        a message of its start-up code (observed: mingw-w64 10.0)
 *   Rust             source paths in panic messages: "/rustc/", the compiler's commit, '/'
 *   Go, .NET         image_check_supported refuses them by their own signs
 *   .NET native      the section ".managed" (observed in none here; name from the .NET
 *                    runtime's documentation of Native AOT)
 *   Delphi           the version text of its run-time library
 *   packers          names of their sections
 *
 * Texts are looked for in sections without the execute characteristic, since a sign in
 * code is chance.  A text could be a quotation in a program about compilers; the result
 * is shown as a guess with its source.
 */
#include "pe/toolchain.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "pe/section_name.h"

enum {
	OPTIONAL_LINKER_MAJOR = 2,
	OPTIONAL_LINKER_MINOR = 3,
	PE_BEHIND_LLD_STUB = 0x78,
	PE_BEHIND_GNU_STUB = 0x80,
};

const char *linker_name(enum linker linker)
{
	static const char *const names[] = {
		[LINKER_UNKNOWN] = "unknown",
		[LINKER_MICROSOFT] = "Microsoft link",
		[LINKER_LLD] = "LLVM lld",
		[LINKER_GNU] = "GNU ld",
	};

	return names[linker];
}

/* Microsoft Learn, "Microsoft C/C++ compiler versioning". */
const char *visual_studio_of(uint8_t major, uint8_t minor)
{
	static const struct {
		uint8_t major, minor; /* the first version */
		const char *name;
	} releases[] = {
		{14, 50, "Visual Studio 2026"}, {14, 30, "Visual Studio 2022"},
		{14, 20, "Visual Studio 2019"}, {14, 10, "Visual Studio 2017"},
		{14, 0, "Visual Studio 2015"},  {12, 0, "Visual Studio 2013"},
		{11, 0, "Visual Studio 2012"},  {10, 0, "Visual Studio 2010"},
		{9, 0, "Visual Studio 2008"},   {8, 0, "Visual Studio 2005"},
	};

	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++)
		if (major == releases[i].major && minor >= releases[i].minor)
			return releases[i].name;
	return NULL;
}

static void find_linker(const struct image *image, struct toolchain *t)
{
	const uint8_t *optional = image->bytes + image->headers.optional.v;

	t->linker_major = optional[OPTIONAL_LINKER_MAJOR];
	t->linker_minor = optional[OPTIONAL_LINKER_MINOR];
	if (t->rich.count) {
		t->linker = LINKER_MICROSOFT;
		t->linker_found = "Rich header";
	} else if (t->linker_major == 14 && t->linker_minor == 0 &&
		   image->headers.pe.v == PE_BEHIND_LLD_STUB) {
		t->linker = LINKER_LLD;
		t->linker_found = "linker version and DOS stub";
	} else if (t->linker_major == 2 && image->headers.pe.v == PE_BEHIND_GNU_STUB) {
		t->linker = LINKER_GNU;
		t->linker_found = "linker version and DOS stub";
	}
}

/* ---- texts ---- */

/* How a sign's version stands behind its text. */
enum version_form {
	VERSION_NONE,
	VERSION_WORD,   /* one of the words behind the text's own */
	VERSION_COMMIT, /* 40 hexadecimal digits */
};

struct text_sign {
	const char *name, *text;
	enum version_form form;
};

static const struct text_sign text_signs[] = {
	{"GCC", "GCC: (", VERSION_WORD},
	{"GCC", "GNU C", VERSION_WORD},
	{"clang", "clang version", VERSION_WORD},
	{"Rust", "/rustc/", VERSION_COMMIT},
	{"mingw-w64", "Mingw-w64 runtime failure:", VERSION_NONE},
	{"Delphi", "Embarcadero Delphi for Win64 compiler version", VERSION_WORD},
};

static bool is_version(const char *text)
{
	return isdigit((unsigned char)text[0]) && text[1] &&
	       (text[1] == '.' || isdigit((unsigned char)text[1]) || text[1] == ' ' ||
		text[1] == '-');
}

/* The first word of the `length` bytes that is a version.  The bytes up to a space belong
 * to the text's own last word. */
static bool take_word(const char *text, size_t length, char *ret_version, size_t size)
{
	size_t limit = length < 64 ? length : 64;

	for (size_t i = 0; i + 2 < limit && text[i] >= ' ' && text[i] <= '~'; i++) {
		const char *word = text + i + 1;
		size_t used = 0;

		if (text[i] != ' ' || !is_version(word))
			continue;
		while (i + 1 + used < limit && used + 1 < size && word[used] > ' ' &&
		       word[used] <= '~')
			used++;
		memcpy(ret_version, word, used);
		ret_version[used] = '\0';
		return true;
	}
	return false;
}

static bool take_commit(const char *text, size_t length, char *ret_version, size_t size)
{
	enum { DIGITS = 40 };

	if (length < DIGITS || size <= DIGITS)
		return false;
	for (size_t i = 0; i < DIGITS; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	memcpy(ret_version, text, DIGITS);
	ret_version[DIGITS] = '\0';
	return true;
}

static bool knows(const struct toolchain *t, const char *name)
{
	for (uint32_t i = 0; i < t->sign_count; i++)
		if (strcmp(t->signs[i].name, name) == 0)
			return true;
	return false;
}

static void add_sign(struct toolchain *t, const struct toolchain_sign *sign)
{
	if (t->sign_count < TOOLCHAIN_SIGNS_MAX && !knows(t, sign->name))
		t->signs[t->sign_count++] = *sign;
}

/* Looks for one text in a section's data; what follows it must be as the form says. */
static bool find_text(const struct text_sign *sign, const char *data, size_t size,
		      struct toolchain_sign *ret_sign)
{
	size_t length = strlen(sign->text);
	const char *end = data + size;

	for (const char *at = data;; at++) {
		at = memmem(at, (size_t)(end - at), sign->text, length);
		if (!at)
			return false;
		switch (sign->form) {
		case VERSION_NONE:
			return true;
		case VERSION_WORD:
			if (take_word(at + length, (size_t)(end - at) - length,
				      ret_sign->version, sizeof(ret_sign->version)))
				return true;
			break;
		case VERSION_COMMIT:
			if (take_commit(at + length, (size_t)(end - at) - length,
					ret_sign->version, sizeof(ret_sign->version)))
				return true;
			break;
		}
	}
}

/* The section's bytes in the file and memory. */
static const uint8_t *section_data(const struct image *image, const struct section *section,
				   uint32_t *ret_size)
{
	*ret_size = section->raw_size < section->virtual_size ? section->raw_size
							      : section->virtual_size;
	return image_bytes(image, section->rva, *ret_size);
}

static void find_texts(const struct image *image, struct toolchain *t)
{
	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *section = &image->sections[i];
		uint32_t size;
		const uint8_t *data = section_data(image, section, &size);

		if (!data || (section->characteristics & SECTION_EXECUTE))
			continue;
		for (size_t s = 0; s < sizeof(text_signs) / sizeof(text_signs[0]); s++) {
			struct toolchain_sign sign = {
				.name = text_signs[s].name,
				.found = section_name(image, section),
			};

			if (!knows(t, sign.name) &&
			    find_text(&text_signs[s], (const char *)data, size, &sign))
				add_sign(t, &sign);
		}
	}
}

/* ---- section names ---- */

static void find_sections(const struct image *image, struct toolchain *t)
{
	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *section = &image->sections[i];
		const char *packer = section_packer(section);
		const struct toolchain_sign sign = {
			.name = packer ? packer : ".NET native",
			.found = "section name",
			.packer = packer != NULL,
		};

		if (packer || strcmp(section->name, ".managed") == 0)
			add_sign(t, &sign);
	}
}

/* ---- compressed data ---- */

/* Whether the bytes are spread as those of compressed or encrypted data: by the sum of
 * squared counts (the index of coincidence), within 2 % of that of random bytes. */
static bool is_opaque(const uint8_t *data, uint32_t size)
{
	uint64_t counts[256] = {0}, squares = 0, random;

	for (uint32_t i = 0; i < size; i++)
		counts[data[i]]++;
	for (unsigned i = 0; i < 256; i++)
		squares += counts[i] * counts[i];
	random = (uint64_t)size * size / 256;
	return squares < random + random / 50 + size;
}

static void find_opaque(const struct image *image, struct toolchain *t)
{
	for (uint32_t i = 0; i < image->section_count; i++) {
		const struct section *section = &image->sections[i];
		uint32_t size;
		const uint8_t *data = section_data(image, section, &size);

		if (data && size >= image->size / 2 && is_opaque(data, size))
			t->opaque = section;
	}
}

enum status toolchain_read(struct image *image, struct toolchain *ret_toolchain,
			   struct diag *diag)
{
	struct toolchain t = {0};
	enum status status = rich_header_read(image, &t.rich, diag);

	if (status != STATUS_OK)
		return status;
	find_linker(image, &t);
	find_texts(image, &t);
	find_sections(image, &t);
	find_opaque(image, &t);
	*ret_toolchain = t;
	return STATUS_OK;
}
