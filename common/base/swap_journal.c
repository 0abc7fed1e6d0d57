#include "swap_journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HEAD[] = "appulse-swap 1", END[] = "end";

void swap_entries_release(struct swap_entries *entries)
{
	for (uint32_t i = 0; i < entries->len; i++) {
		free(entries->data[i].name);
		free(entries->data[i].replacement);
	}
	vec_release(entries);
}

bool swap_name_is_fit(const char *name)
{
	return name[0] && !strpbrk(name, "/\n") && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

char *swap_journal_text(const struct swap_entries *entries)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return NULL;
	fprintf(to, "%s\n", HEAD);
	for (uint32_t i = 0; i < entries->len; i++) {
		const struct swap_entry *e = &entries->data[i];
		char hash[SHA256_HEX_SIZE];

		sha256_hex(&e->hash, hash);
		fprintf(to, "%s %s %s\n", e->added ? "added" : "swapped", hash, e->name);
	}
	fprintf(to, "%s\n", END);
	if (fclose(to) == 0)
		return text;
	free(text);
	return NULL;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads a hash and the blank behind it; false when there is none. */
static bool parse_hash(const char *text, struct sha256 *ret_hash)
{
	for (unsigned i = 0; i < SHA256_BYTES; i++) {
		int high = hex_digit(text[2 * i]);
		int low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);

		if (low < 0)
			return false;
		ret_hash->bytes[i] = (uint8_t)(high << 4 | low);
	}
	return text[2 * SHA256_BYTES] == ' ';
}

/* One line of a file.  False when it is none. */
static bool parse_entry(const char *line, struct swap_entry *ret_entry,
			const char **ret_name)
{
	size_t word = strcspn(line, " ");

	ret_entry->added = word == 5 && memcmp(line, "added", word) == 0;
	if (!ret_entry->added && !(word == 7 && memcmp(line, "swapped", word) == 0))
		return false;
	if (line[word] != ' ' || !parse_hash(line + word + 1, &ret_entry->hash))
		return false;
	*ret_name = line + word + 1 + 2 * SHA256_BYTES + 1;
	return swap_name_is_fit(*ret_name);
}

/* `text` is a copy that may be cut into lines; it ends in a NUL. */
static enum status parse_lines(char *text, struct swap_entries *entries, struct diag *diag)
{
	char *line = text, *next;
	bool head = false;

	for (; (next = strchr(line, '\n')); line = next + 1) {
		struct swap_entry entry = {0};
		const char *name;

		*next = '\0';
		if (!head && strcmp(line, HEAD) == 0) {
			head = true;
			continue;
		}
		if (head && strcmp(line, END) == 0 && next[1] == '\0')
			return STATUS_OK;
		if (!head || !parse_entry(line, &entry, &name))
			break;
		entry.name = strdup(name);
		if (!entry.name || !vec_push(entries, entry)) {
			free(entry.name);
			return diag_no_memory(diag);
		}
	}
	return diag_fail(diag, STATUS_MALFORMED, "not a journal of swapped files");
}

enum status swap_journal_parse(const char *text, size_t size,
			       struct swap_entries *ret_entries, struct diag *diag)
{
	char *copy = strndup(text, size);
	enum status status;

	memset(ret_entries, 0, sizeof(*ret_entries));
	if (!copy)
		return diag_no_memory(diag);
	status = parse_lines(copy, ret_entries, diag);
	free(copy);
	return status;
}
