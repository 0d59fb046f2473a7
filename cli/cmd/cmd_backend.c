/*
 * cmd_backend.c - backend: where chunks lie, and where an array's new chunks go.
 */
#include "../cli.h"
#include "backend_value.h"
#include "commands.h"

#include <string.h>

static const struct cli_option backend_options[] = {
    { "list", 0, 0, NULL, "list the backends of this build" },
    { "rebase", 0, 1, "OLD", "the files beneath OLD, in which chunks lie, are beneath NEW now" },
    { "check", 0, 0, NULL, "read one object in each place; status 4 if one cannot be read" },
    { "at", 0, 1, "REV", "when printing: read this version instead of the current branch" },
    CLI_OPTIONS_END
};

int cli_backend_argument(struct cli *cli, const char *what, const char *text, const char **out)
{
    *out = text;
    return strchr("@{[\"", text[strspn(text, " \t\r\n")]) != NULL
               ? cli_json_text_argument(cli, what, text, 0, out)
               : BRC_OK;
}

static void print_backend(struct cli *cli)
{
    const char *backend = brc_array_describe(cli->array)->backend_json;

    cli_json_document(cli, backend, strlen(backend));
}

static int list_backends(struct cli *cli)
{
    struct cli_list list;
    const brc_backend_info *info;
    int rc;

    CLI_TRY(cli_load_plugins(cli));
    CLI_TRY(brc_registry_list(&cli->iter, cli->registry, BRC_LIST_BACKENDS, &cli->err));
    cli_list_begin(cli, &list, NULL, CLI_ON_LINE);
    while ((rc = brc_next(cli->iter, &info, &cli->err)) == 1)
        CLI_TRY(cli_list_put(
            cli, &list,
            CLI_FIELDS({ "name", CLI_OF(info->name), .lead = "", .width = 30 },
                       { "writable", CLI_OF(!(info->flags & BRC_BACKEND_INFO_READ_ONLY)),
                         .lead = "", .none = "can only be read", .width = 18 },
                       { "owner", CLI_OF(info->owner), .lead = "from " })));
    return cli_list_end(cli, &list, rc);
}

/* The files of others in which chunks lie have moved. */
static int rebase_files(struct cli *cli)
{
    const char *from = cli_value(cli, "rebase"), *to = cli_operand(cli, 1);
    uint64_t places, compared;

    if (!to || cli_operand(cli, 2))
        return cli_usage(cli, "--rebase needs FILE, OLD and NEW");
    CLI_TRY(cli_open(cli, 0));
    CLI_TRY(brc_rebase_files(cli->repo, from, to, &places, &compared, &cli->err));
    cli_answer(cli,
               CLI_FIELDS({ "files", CLI_OF(places) }, { "compared", CLI_OF(compared) }),
               "%s: %llu file%s moved; %llu chunk%s compared", cli_escaped(cli, cli->file),
               (unsigned long long)places, places == 1 ? " has" : "s have",
               (unsigned long long)compared, compared == 1 ? " was" : "s were");
    return BRC_OK;
}

/* ---- what lies where ---------------------------------------------------------------- */

enum { PLACE_FAULT = 4 }; /* the exit status of damage, as in fsck */

static int put_faults(struct cli *cli, const brc_backend_facts *facts)
{
    struct cli_list list;

    cli_list_begin(cli, &list, "faults", 0);
    for (size_t i = 0; i < facts->nfaults; i++) {
        const brc_place_fault *one = &facts->faults[i];
        const int missing = one->code == BRC_ENOTFOUND;
        const char *lead = one->place[0] ? " " : NULL;

        CLI_TRY(cli_list_put(
            cli, &list,
            CLI_FIELDS({ NULL, CLI_WORD(missing ? "missing" : "unreadable"), .lead = "  ",
                         .color = CLI_RED },
                       { "place", CLI_OF(one->place), .lead = lead },
                       { "missing", CLI_OF(missing) }, { "why", CLI_OF(one->why), .lead = ": " },
                       { "objects", CLI_OF(one->objects), .lead = " (", .noun = "object" },
                       { "bytes", CLI_OF(one->bytes), .lead = ", ", .tail = ")",
                         .noun = "byte" })));
    }
    return cli_list_end(cli, &list, BRC_OK);
}

/* Promises of a backend, as they are told. */
struct promises {
    struct cli *cli;
    struct cli_list list;
    size_t broken;
};

static int put_promise(void *ctx, const char *promise, int holds, const char *seen, brc_error *err)
{
    struct promises *told = ctx;

    (void)err;
    told->broken += !holds;
    return cli_list_put(
        told->cli, &told->list,
        CLI_FIELDS({ NULL, CLI_WORD(holds ? "holds" : "broken"), .lead = "  ",
                     .color = holds ? CLI_GREEN : CLI_RED },
                   { "promise", CLI_OF(promise), .lead = ": " }, { "holds", CLI_OF(holds) },
                   { "seen", CLI_OF(seen), .lead = seen[0] ? ": " : "" }));
}

/* Lets a backend try what it relies on. Sets *broken to how many promises do not hold. */
static int put_promises(struct cli *cli, const char *backend, size_t *broken)
{
    struct promises told = { .cli = cli };

    cli_list_begin(cli, &told.list, "promises", 0);
    const int rc = brc_prove_backend(cli->repo, backend, put_promise, &told, &cli->err);
    *broken += told.broken;
    return cli_list_end(cli, &told.list, rc);
}

static int prove_array(struct cli *cli, const char *path)
{
    size_t broken = 0;

    CLI_TRY(cli_open_view(cli));
    CLI_TRY(cli_open_array(cli, path));
    const char *backend = brc_array_describe(cli->array)->backend_json;
    cli_begin(cli, NULL, '{');
    cli_put_members(cli, CLI_FIELDS({ "backend", CLI_OF(backend), CLI_AS_JSON, .lead = "" }));
    CLI_TRY(put_promises(cli, backend, &broken));
    cli_finish(cli, '{');
    return broken > 0 ? PLACE_FAULT : BRC_OK;
}

static int put_place(struct cli *cli, const brc_backend_facts *facts, size_t *broken)
{
    const char *places = facts->places > 0
                             ? cli_text(cli, " in %s", cli_count(cli, facts->places, "place"))
                             : NULL;

    cli_begin(cli, NULL, '{');
    cli_put_members(
        cli, CLI_FIELDS({ "backend", CLI_OF(facts->backend_json), CLI_AS_JSON, .lead = "",
                          .tail = ": " },
                        { "objects", CLI_OF(facts->objects), .lead = "", .noun = "object" },
                        { "bytes", CLI_OF(facts->bytes), CLI_AS_BYTES, .lead = ", " },
                        { NULL, CLI_OF(places), .lead = "" },
                        { "places", CLI_OF(facts->places) }));
    CLI_TRY(put_faults(cli, facts));
    if (cli_has(cli, "check"))
        CLI_TRY(put_promises(cli, facts->backend_json, broken));
    cli_finish(cli, '{');
    return BRC_OK;
}

/* Lists the backends of the repository. */
static int put_places(struct cli *cli)
{
    const brc_backend_facts *facts;
    size_t faults = 0, broken = 0;
    int rc;

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    CLI_TRY(brc_backends(&cli->iter, cli->repo, cli_has(cli, "check") ? BRC_BACKENDS_CHECK : 0,
                         &cli->err));
    cli_begin(cli, NULL, '{');
    cli_begin(cli, "backends", '[');
    while ((rc = brc_next(cli->iter, &facts, &cli->err)) == 1) {
        CLI_TRY(put_place(cli, facts, &broken));
        faults += facts->nfaults;
    }
    CLI_TRY(rc);
    cli_finish(cli, '[');
    cli_finish(cli, '{');
    if (faults > 0)
        cli_say(cli, "put back what is missing; once all can be read, 'breccia repack FILE "
                     "--backend inline' takes everything into FILE");
    return (faults > 0 && cli_has(cli, "check")) || broken > 0 ? PLACE_FAULT : BRC_OK;
}

static int run_backend(struct cli *cli)
{
    const char *path = cli_operand(cli, 1), *json = cli_operand(cli, 2);

    if (cli_has(cli, "list"))
        return list_backends(cli);
    if (!cli_operand(cli, 0))
        return cli_usage(cli, "backend needs FILE, or --list");
    if (cli_has(cli, "rebase"))
        return rebase_files(cli);
    if (!path && cli_has(cli, "at"))
        return cli_usage(cli, "--at needs PATH");
    if (!path)
        return put_places(cli);
    path = cli_path(cli, path);
    if (cli_has(cli, "check") && json)
        return cli_usage(cli, "--check is for FILE, or for an array as it is");
    if (cli_has(cli, "check"))
        return prove_array(cli, path);
    if (!json) {
        CLI_TRY(cli_open_view(cli));
        CLI_TRY(cli_open_array(cli, path));
        print_backend(cli);
        return BRC_OK;
    }
    if (cli_has(cli, "at"))
        return cli_usage(cli, "--at is only for printing: a committed version cannot be changed");
    CLI_TRY(cli_backend_argument(cli, "the backend", json, &json));
    CLI_TRY(cli_open_edit(cli));
    CLI_TRY(cli_open_array(cli, path));
    CLI_TRY(brc_array_set_backend(cli->array, json, &cli->err));
    cli_say(cli, "changed the backend of %s", cli_escaped(cli, path));
    if (cli->json)
        print_backend(cli);
    return BRC_OK;
}

const struct cli_command cli_command_backend = {
    .name = "backend",
    .group = "Making and filling",
    .summary = "show where chunks lie, and where an array's new chunks go",
    .usage = "FILE [--check]\n"
             "FILE PATH [--at REV | --check]\n"
             "FILE PATH JSON\n"
             "FILE --rebase OLD NEW\n"
             "--list",
    .details = "With FILE alone, lists the backends in which objects of FILE lie: how many,\n"
               "their bytes as they are stored, in how many places (packs, files), and which\n"
               "places are missing. --check reads one object in each place, and tries what a\n"
               "server promises: that it gives back what it got, reads ranges and lists. With\n"
               "PATH it tries the backend of that array, before anything lies there.\n"
               "\n"
               "JSON is the name of a backend, or an object with a name and a configuration;\n"
               "'inline' is FILE itself. Stored chunks stay where they are and stay readable;\n"
               "new chunks go to the new place. No value changes. A plug-in may add backends\n"
               "(--plugin). --rebase is for a tree of files that moved after an import with\n"
               "--external: each must be at the same place beneath NEW, with the same size. If\n"
               "its time differs, as after a copy, the bytes of its chunks are compared.",
    .examples = "breccia backend climate.brc --check\n"
                "breccia backend climate.brc /t2m\n"
                "breccia backend climate.brc /t2m inline\n"
                "breccia backend climate.brc --rebase archive/2020 disk2/2020\n"
                "breccia backend climate.brc /t2m org.example.dir --plugin ./dirstore.so",
    .options = backend_options,
    .min_operands = 0,
    .max_operands = 3,
    .flags = CLI_LIST | CLI_PATH,
    .run = run_backend,
};
