/* The doctor's findings as members of the JSON object (docs/doctor.md). */
#include "cli/name_report.h"
#include "doctor.h"

static void put_hidden(const struct doctor *d, struct result *r, json_t *object)
{
	json_t *array = result_put_array(r, object, "hidden_words");

	for (uint32_t i = 0; i < d->image.section_count; i++) {
		json_t *row;

		if (d->graph.hidden_words[i] == 0)
			continue;
		row = result_add_object(r, array);
		result_put_text(r, row, "section", d->image.sections[i].name);
		result_put_count(r, row, "words", d->graph.hidden_words[i]);
	}
}

static void put_image(const struct doctor *d, struct result *r)
{
	json_t *image = result_put_object(r, r->root, "image");
	char hash[SHA256_HEX_SIZE];

	sha256_hex(&d->hash, hash);
	result_put_text(r, image, "path", d->path);
	result_put_text(r, image, "sha256", hash);
	result_put_count(r, image, "size", d->image.size);
	result_put_text(r, image, "kind", image_kind_name(d->kind));
	result_put_flag(r, image, "node_addon", d->node_addon);
	result_put_count(r, image, "subsystem", d->image.headers.subsystem);
	result_put_count(r, image, "sections", d->image.section_count);
	result_put_count(r, image, "section_alignment", d->image.headers.section_alignment);
	result_put_count(r, image, "file_alignment", d->image.headers.file_alignment);
	if (!d->discovered)
		return;
	pin_report_put(&d->pins, r, image);
	name_report_put(&d->names, &d->named, r, image);
	pin_report_put_largest(&d->pins, &d->graph, r, image);
	put_hidden(d, r, image);
}

static void put_rich(const struct rich_header *rich, struct result *r, json_t *object)
{
	static const char *const tools[RICH_TOOL_COUNT] = {
		[RICH_UNMARKED] = "unmarked", [RICH_IMPORTS] = "imports", [RICH_C] = "c",
		[RICH_CPP] = "c++", [RICH_LTCG_C] = "c-ltcg", [RICH_LTCG_CPP] = "c++-ltcg",
		[RICH_POGO_C] = "c-pgo", [RICH_POGO_CPP] = "c++-pgo",
		[RICH_ASSEMBLER] = "assembler", [RICH_LINKER] = "linker",
		[RICH_RESOURCES] = "resources", [RICH_OTHER] = "other",
	};
	json_t *part, *rows;

	if (rich->count == 0) {
		result_put_null(r, object, "rich_header");
		return;
	}
	part = result_put_object(r, object, "rich_header");
	result_put_flag(r, part, "intact", rich->intact);
	rows = result_put_array(r, part, "rows");
	for (uint32_t i = 0; i < rich->count; i++) {
		json_t *row = result_add_object(r, rows);

		result_put_text(r, row, "tool",
				tools[rich_tool_of(rich->entries[i].product)]);
		result_put_count(r, row, "product", rich->entries[i].product);
		result_put_count(r, row, "build", rich->entries[i].build);
		result_put_count(r, row, "count", rich->entries[i].count);
	}
}

static void put_toolchain(const struct doctor *d, struct result *r)
{
	const struct toolchain *t = &d->toolchain;
	json_t *object = result_put_object(r, r->root, "toolchain"), *signs;
	char version[16];

	snprintf(version, sizeof(version), "%u.%02u", t->linker_major, t->linker_minor);
	result_put_text(r, object, "linker",
			t->linker == LINKER_UNKNOWN ? NULL : linker_name(t->linker));
	result_put_text(r, object, "linker_version", version);
	result_put_text(r, object, "linker_found", t->linker_found);
	result_put_text(r, object, "visual_studio",
			t->linker == LINKER_MICROSOFT
				? visual_studio_of(t->linker_major, t->linker_minor)
				: NULL);
	put_rich(&t->rich, r, object);
	signs = result_put_array(r, object, "signs");
	for (uint32_t i = 0; i < t->sign_count; i++) {
		json_t *sign = result_add_object(r, signs);

		result_put_text(r, sign, "name", t->signs[i].name);
		result_put_text(r, sign, "version",
				t->signs[i].version[0] ? t->signs[i].version : NULL);
		result_put_text(r, sign, "found", t->signs[i].found);
		result_put_flag(r, sign, "packer", t->signs[i].packer);
	}
	result_put_text(r, object, "opaque_section", t->opaque ? t->opaque->name : NULL);
}

/* Only discovery knows them. */
static void put_handlers(const struct doctor *d, struct result *r, json_t *contents)
{
	struct doctor_handlers handlers;
	json_t *object;

	if (!d->discovered) {
		result_put_null(r, contents, "handlers");
		return;
	}
	doctor_count_handlers(&d->graph, &handlers);
	object = result_put_object(r, contents, "handlers");
	for (unsigned i = 0; i < HANDLER_FORM_COUNT; i++)
		result_put_count(r, object, doctor_handler_key((enum handler_form)i),
				 handlers.users[i]);
}

static void put_guard(const struct load_config *config, struct result *r, json_t *contents)
{
	json_t *guard = result_put_object(r, contents, "guard"), *flags;
	const char *name;

	result_put_count(r, guard, "flags", config->guard_flags);
	flags = result_put_array(r, guard, "flag_names");
	for (unsigned i = 0; (name = doctor_guard_flag(config->guard_flags, i)); i++)
		result_add_text(r, flags, name);
	result_put_count(r, guard, "functions", config->functions.count);
	result_put_count(r, guard, "import_slots", config->address_taken_iat.count);
	result_put_count(r, guard, "long_jumps", config->long_jumps.count);
	result_put_count(r, guard, "eh_continuations", config->eh_continuations.count);
}

static void put_volatiles(const struct doctor_contents *c, struct result *r,
			  json_t *contents)
{
	json_t *object;

	if (c->volatiles.rva.v == 0) {
		result_put_null(r, contents, "volatile_metadata");
		return;
	}
	object = result_put_object(r, contents, "volatile_metadata");
	result_put_count(r, object, "accesses", c->volatiles.access_count);
	result_put_count(r, object, "ranges", c->volatiles.range_count);
}

static void put_dynamic(const struct doctor_contents *c, struct result *r,
			json_t *contents)
{
	json_t *array = result_put_array(r, contents, "dynamic_relocations");

	for (uint32_t i = 0; i < c->dynamic.group_count; i++) {
		const struct dynamic_group *group = &c->dynamic.groups[i];
		json_t *row = result_add_object(r, array);

		result_put_text(r, row, "what", doctor_dynamic_symbol(group->symbol));
		result_put_count(r, row, "count", group->count);
	}
}

static void put_debug(const struct doctor_contents *c, struct result *r, json_t *contents)
{
	if (c->codeview.pdb) {
		json_t *pdb = result_put_object(r, contents, "pdb");

		result_put_text(r, pdb, "path", c->codeview.pdb);
		result_put_text(r, pdb, "guid", c->codeview.guid);
		result_put_count(r, pdb, "age", c->codeview.age);
	} else {
		result_put_null(r, contents, "pdb");
	}
	result_put_count(r, contents, "coff_symbols", c->symbols.count);
	result_put_flag(r, contents, "dwarf", c->dwarf);
	result_put_flag(r, contents, "pogo", c->pogo);
	result_put_flag(r, contents, "reproducible", c->reproducible);
}

static void put_contents(const struct doctor *d, struct result *r)
{
	const struct doctor_contents *c = &d->contents;
	const struct data_directory *directories = d->image.directories;
	json_t *contents = result_put_object(r, r->root, "contents");

	result_put_count(r, contents, "unwind_rows", c->functions.count);
	result_put_count(r, contents, "chained_rows", c->chained);
	result_put_count(r, contents, "relocations", c->relocs.count);
	result_put_count(r, contents, "exports", c->exports.count);
	result_put_count(r, contents, "forwarders", c->forwarders);
	result_put_count(r, contents, "imports", d->image.import_count);
	result_put_count(r, contents, "imported_dlls", c->imported_dlls);
	result_put_count(r, contents, "delay_loaded_dlls", c->delay.count);
	result_put_count(r, contents, "tls_callbacks", c->tls.count);
	result_put_flag(r, contents, "bound_imports",
			directories[DIRECTORY_BOUND_IMPORT].rva.v != 0);
	result_put_flag(r, contents, "resources",
			directories[DIRECTORY_RESOURCE].size != 0);
	result_put_count(r, contents, "overlay_bytes", c->overlay);
	put_handlers(d, r, contents);
	put_guard(&c->config, r, contents);
	result_put_flag(r, contents, "cet_compatible", c->cet_compatible);
	result_put_flag(r, contents, "security_cookie", c->config.security_cookie.v != 0);
	result_put_count(r, contents, "load_config_bytes", c->config.size);
	put_volatiles(c, r, contents);
	put_dynamic(c, r, contents);
	put_debug(c, r, contents);
	result_put_count(r, contents, "signature_bytes", c->certificate);
}

static void put_verdict(const struct doctor_verdict *verdict, const char *key,
			struct result *r)
{
	json_t *object = result_put_object(r, r->root, key);
	bool possible = verdict->status == STATUS_OK;

	result_put_flag(r, object, "possible", possible);
	result_put_text(r, object, "reason",
			possible ? NULL : status_name(verdict->status));
	result_put_text(r, object, "message", possible ? NULL : verdict->diag.message);
}

static void put_advice(const struct doctor *d, struct result *r)
{
	json_t *array = result_put_array(r, r->root, "advice");
	const char *text = doctor_refusal_advice(d->reorder.status);

	if (text) {
		json_t *row = result_add_object(r, array);

		result_put_text(r, row, "about", status_name(d->reorder.status));
		result_put_text(r, row, "text", text);
	}
	for (unsigned i = 0; (text = doctor_remark(d, i)); i++) {
		json_t *row = result_add_object(r, array);

		result_put_null(r, row, "about");
		result_put_text(r, row, "text", text);
	}
	for (unsigned i = 0; d->discovered && i < PIN_REASON_COUNT; i++) {
		json_t *row;

		if (d->pins.reasons[i].functions == 0)
			continue;
		row = result_add_object(r, array);
		result_put_text(r, row, "about", pin_reason_name((enum pin_reason)i));
		result_put_text(r, row, "text", doctor_pin_advice((enum pin_reason)i));
	}
}

void doctor_put(const struct doctor *d)
{
	struct result *r = &d->tool->result;

	put_image(d, r);
	put_toolchain(d, r);
	put_contents(d, r);
	put_verdict(&d->instrument, "instrument", r);
	put_verdict(&d->reorder, "reorder", r);
	put_advice(d, r);
}
