/*
 * cmd_fsck.c - fsck.
 */
#include "../cli.h"
#include "../credentials.h"
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DAMAGE_FOUND = 4 };

static const struct cli_option fsck_options[] = {
    { "no-decode", 0, 0, NULL, "do not decode chunks, only check their stored bytes" },
    { "repair", 0, 0, NULL, "repair objects where possible, and drop unreadable ones" },
    { "from", 0, 1, "OTHER", "with --repair: take good copies from this file or Zarr directory" },
    { "yes", 0, 0, NULL, "with --repair: drop without asking" },
    CLI_OPTIONS_END
};

struct finding {
    const char *id, *kind, *message;
    struct cli_texts used_by;
    int missing, in_place;
    size_t together; /* how many objects text names at once, this one first; 0: none */
};

/* The part of a branch or tag that is still whole. */
struct standing {
    const char *name;
    brc_oid newest;
    struct cli_texts lost;
    uint64_t commits, whole;
    int is_tag, tip_stands;
};

struct findings {
    struct cli *cli;
    struct finding *list;
    size_t n, cap;
    struct standing *refs;
    size_t nrefs, refs_cap;
};

static struct cli_texts copied_texts(struct cli *cli, const char *const *texts, size_t n)
{
    const char **copies = cli_alloc(cli, n + 1, sizeof(*copies));

    for (size_t i = 0; i < n; i++)
        copies[i] = cli_text(cli, "%s", texts[i]);
    return (struct cli_texts){ copies, n };
}

static int keep_standing(void *ctx, const brc_standing *one)
{
    struct findings *found = ctx;
    struct cli *cli = found->cli;

    found->refs = cli_grow(found->refs, found->nrefs, &found->refs_cap, sizeof(*found->refs));
    found->refs[found->nrefs++] = (struct standing){
        .name = cli_text(cli, "%s", one->name),
        .newest = one->newest,
        .lost = copied_texts(cli, one->lost, one->nlost),
        .commits = one->commits,
        .whole = one->whole,
        .is_tag = (one->flags & BRC_STANDS_TAG) != 0,
        .tip_stands = (one->flags & BRC_STANDS_TIP) != 0,
    };
    return cli_signal() ? 1 : 0;
}

static int keep_finding(void *ctx, const brc_damage *damage)
{
    struct findings *found = ctx;
    struct cli *cli = found->cli;

    found->list = cli_grow(found->list, found->n, &found->cap, sizeof(*found->list));
    found->list[found->n++] = (struct finding){
        .id = cli_long_id(cli, &damage->id),
        .kind = cli_text(cli, "%s", damage->kind),
        .message = cli_text(cli, "%s", damage->message ? damage->message : ""),
        .used_by = copied_texts(cli, damage->used_by, damage->nused_by),
        .missing = (damage->flags & BRC_DAMAGE_MISSING) != 0,
        .in_place = (damage->flags & BRC_DAMAGE_PLACE) != 0,
        .together = 1,
    };
    return cli_signal() ? 1 : 0;
}

static int put_finding(struct cli *cli, struct cli_list *list, const struct finding *one)
{
    const char *short_id = cli_text(cli, "%.8s", one->id);

    return cli_list_put(
        cli, list,
        CLI_FIELDS({ NULL, CLI_WORD(one->missing ? "missing" : "damaged"), .lead = "",
                     .color = CLI_RED },
                   { NULL, CLI_OF(one->kind), .lead = " " },
                   { NULL, CLI_OF(short_id), .lead = " " },
                   { "id", CLI_OF(one->id) },
                   { "kind", CLI_OF(one->kind) },
                   { "used_by", CLI_OF(one->used_by), CLI_AS_LINES },
                   { "message", CLI_OF(one->message), .lead = ": ", .none = "" },
                   { NULL, CLI_OF(one->used_by), CLI_AS_LINES, .lead = "\n    used by " }));
}

static int by_message(const void *a, const void *b)
{
    const struct finding *const *x = a, *const *y = b;
    const int order = strcmp((*x)->message, (*y)->message);
    return order != 0 ? order : (*x > *y) - (*x < *y);
}

/* Puts together the objects of each place that cannot be read. */
static void gather_places(struct cli *cli, struct findings *found)
{
    struct finding **all = cli_alloc(cli, found->n + 1, sizeof(*all)), *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < found->n; i++)
        if (found->list[i].in_place)
            all[n++] = &found->list[i];
    qsort(all, n, sizeof(*all), by_message);
    for (size_t i = 0; i < n; i++) {
        if (first && strcmp(first->message, all[i]->message) == 0) {
            first->together++;
            all[i]->together = 0;
        } else {
            first = all[i];
        }
    }
}

/* One line for all objects of a place. */
static int put_together(struct cli *cli, struct cli_list *list, const struct finding *one)
{
    const char *first = one->used_by.n > 0 ? one->used_by.texts[0] : one->id;

    return cli_list_put(
        cli, list,
        CLI_FIELDS({ NULL, CLI_WORD(one->missing ? "missing" : "damaged"), .lead = "",
                     .color = CLI_RED },
                   { NULL, CLI_OF(cli_count(cli, one->together, "object")), .lead = " " },
                   { NULL, CLI_OF(one->message), .lead = ": " },
                   { NULL, CLI_OF(first), .lead = "\n    the first is used by " }));
}

/* Prints the damaged or the missing objects; text has both in the order in which they were
 * found, and all objects of a place in one line. */
static int put_findings(struct cli *cli, const char *key, const struct findings *found, int missing)
{
    struct cli_list list;

    cli_list_begin(cli, &list, key, 0);
    for (size_t i = 0; i < found->n; i++)
        if (cli->json ? found->list[i].missing == missing
                      : !missing && found->list[i].together > 0)
            CLI_TRY(!cli->json && found->list[i].together > 1
                        ? put_together(cli, &list, &found->list[i])
                        : put_finding(cli, &list, &found->list[i]));
    return cli_list_end(cli, &list, BRC_OK);
}

static int put_ref_standing(struct cli *cli, struct cli_list *list, const struct standing *ref)
{
    const char *damage = ref->tip_stands    ? "its version is whole"
                         : ref->lost.n > 0 ? "damaged in"
                                           : "its version cannot be read";

    return cli_list_put(
        cli, list,
        CLI_FIELDS({ NULL, CLI_WORD(ref->is_tag ? "tag" : "branch"), .lead = "" },
                   { "name", CLI_OF(ref->name), .lead = " " },
                   { "tag", CLI_OF(ref->is_tag) },
                   { "whole", CLI_OF(ref->tip_stands) },
                   { NULL, CLI_OF(damage), .lead = ": " },
                   { NULL, CLI_OF(ref->lost), .lead = " " },
                   { NULL, CLI_OF(ref->whole), .lead = "; " },
                   { "commits", CLI_OF(ref->commits), .lead = " of ",
                     .tail = " commits are whole" },
                   { "commits_whole", CLI_OF(ref->whole) },
                   { "newest_whole", CLI_OF(ref->newest), .optional = 1,
                     .lead = ref->tip_stands ? NULL : ", the newest is " },
                   { "lost", CLI_OF(ref->lost), CLI_AS_LINES }));
}

static int put_standing(struct cli *cli, const struct findings *found)
{
    struct cli_list list;

    if (found->nrefs == 0)
        return BRC_OK;
    cli_list_begin(cli, &list, "refs", 0);
    for (size_t i = 0; i < found->nrefs; i++)
        CLI_TRY(put_ref_standing(cli, &list, &found->refs[i]));
    return cli_list_end(cli, &list, BRC_OK);
}

static int put_fsck(struct cli *cli, struct findings *found, uint64_t checked,
                    const brc_repair_report *report)
{
    size_t missing = 0;

    for (size_t i = 0; i < found->n; i++)
        missing += found->list[i].missing != 0;
    gather_places(cli, found);
    cli_begin(cli, NULL, '{');
    cli_put_members(cli, CLI_FIELDS({ "ok", CLI_OF(found->n == 0) },
                                    { "objects_checked", CLI_OF(checked) }));
    CLI_TRY(put_findings(cli, "damaged", found, 0));
    CLI_TRY(put_findings(cli, "missing", found, 1));
    CLI_TRY(put_standing(cli, found));
    if (cli_has(cli, "repair"))
        cli_put_members(cli, CLI_FIELDS({ "replaced", CLI_OF(report->replaced) },
                                        { "dropped", CLI_OF(report->dropped) }));
    cli_finish(cli, '{');
    if (found->n == 0)
        cli_say(cli, "%s checked, all is well", cli_count(cli, checked, "object"));
    else
        cli_say(cli, "%s checked: %zu damaged, %zu missing", cli_count(cli, checked, "object"),
                found->n - missing, missing);
    return found->n > 0 ? DAMAGE_FOUND : 0;
}

/* ---- repairing ------------------------------------------------------------------- */

/* The source of good copies. A Zarr directory is imported into a temporary file. */
struct repair_source {
    breccia *repo;
    char dir[256], file[272];
};

static int import_source(struct cli *cli, struct repair_source *from, const char *other)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_session *session;
    const char *tmp = getenv("TMPDIR");
    int rc;

    snprintf(from->dir, sizeof(from->dir), "%.200s/breccia-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(from->dir)) {
        from->dir[0] = '\0';
        return cli_fail(cli, BRC_EIO, "cannot make a folder for copies: set TMPDIR to "
                                       "a folder that can be written");
    }
    snprintf(from->file, sizeof(from->file), "%s/copies.brc", from->dir);
    opts.flags = BRC_OPEN_CREATE;
    opts.pool = cli->pool;
    opts.registry = cli->registry;
    opts.credentials = cli_credentials;
    CLI_TRY(brc_open(&from->repo, from->file, &opts, &cli->err));
    CLI_TRY(brc_session_open(&session, from->repo, NULL, BRC_SESSION_WRITE, &cli->err));
    rc = brc_import(session, other, NULL, NULL, &cli->err);
    brc_session_free(session);
    return rc;
}

static int open_other(struct cli *cli, struct repair_source *from, const char *other)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    struct stat st;
    size_t len;

    if (!other)
        return BRC_OK;
    len = strlen(other);
    if ((stat(other, &st) == 0 && S_ISDIR(st.st_mode)) ||
        (len > 4 && strcmp(other + len - 4, ".zip") == 0))
        return import_source(cli, from, other);
    opts.flags = BRC_OPEN_READONLY;
    opts.pool = cli->pool;
    opts.registry = cli->registry;
    opts.credentials = cli_credentials;
    return brc_open(&from->repo, other, &opts, &cli->err);
}

static void close_source(struct repair_source *from)
{
    brc_free(from->repo);
    if (from->file[0])
        unlink(from->file);
    if (from->dir[0])
        rmdir(from->dir);
}

static int may_drop(struct cli *cli, uint64_t n)
{
    char answer[16];

    if (cli_has(cli, "yes"))
        return 1;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return 0;
    fprintf(stderr,
            "%s cannot be read. Drop the damaged objects, so that they can be stored again? [y/N] ",
            cli_count(cli, n, "object"));
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* Replaces damaged objects, then drops the rest if the user agrees. *report has the sums. */
static int repair_file(struct cli *cli, breccia *from, brc_repair_report *report)
{
    brc_repair_report dropped = BRC_REPAIR_REPORT_INIT;

    CLI_TRY(brc_repair(report, cli->repo, from, 0, &cli->err));
    if (report->damaged == 0 || !may_drop(cli, report->damaged))
        return BRC_OK;
    CLI_TRY(brc_repair(&dropped, cli->repo, from, BRC_REPAIR_DROP, &cli->err));
    dropped.replaced += report->replaced;
    *report = dropped;
    return BRC_OK;
}

static int run_repair(struct cli *cli, brc_repair_report *report)
{
    struct repair_source from = { NULL, "", "" };
    int rc;

    CLI_TRY(cli_open(cli, 0));
    rc = open_other(cli, &from, cli_value(cli, "from"));
    if (rc >= 0)
        rc = repair_file(cli, from.repo, report);
    close_source(&from);
    CLI_TRY(rc);
    cli_done(cli);
    cli_say(cli, "%s replaced by a good copy, %llu dropped",
            cli_count(cli, report->replaced, "object"), (unsigned long long)report->dropped);
    if (report->damaged > 0)
        cli_say(cli, "objects that cannot be read are still there: 'fsck --repair --yes' drops "
                     "them");
    return BRC_OK;
}

static int run_fsck(struct cli *cli)
{
    struct findings found = { .cli = cli };
    brc_repair_report report = BRC_REPAIR_REPORT_INIT;
    uint64_t checked = 0;
    int rc;

    if (!cli_has(cli, "repair") && (cli_has(cli, "from") || cli_has(cli, "yes")))
        return cli_usage(cli, "--from and --yes need --repair");
    CLI_TRY(cli_has(cli, "repair") ? run_repair(cli, &report) : cli_open(cli, BRC_OPEN_READONLY));
    rc = brc_fsck(cli->repo, cli_has(cli, "no-decode") ? BRC_FSCK_NO_DECODE : 0, keep_finding,
                  keep_standing, &found, &checked, &cli->err);
    if (rc >= 0)
        rc = put_fsck(cli, &found, checked, &report);
    free(found.list);
    free(found.refs);
    return rc;
}

const struct cli_command cli_command_fsck = {
    .name = "fsck",
    .group = "Keeping",
    .summary = "check everything that is stored",
    .usage = "FILE [--no-decode] [--repair [--from OTHER] [--yes]]",
    .details = "Hashes every object again, decodes every chunk and follows every commit to its\n"
               "chunks. The exit status is 4 if something is damaged or missing; then the\n"
               "command also lists what each branch and tag has lost, and what is still whole.\n"
               "\n"
               "--repair makes derived rows anew. With --from, it takes good copies of damaged\n"
               "or missing objects from OTHER: another breccia file, or a Zarr directory or\n"
               ".zip. A copy is good if its content is the same, whatever its codecs. Then\n"
               "--repair drops the objects that still cannot be read, after it has asked; where\n"
               "nobody can answer, only with --yes. A dropped object is missing afterwards,\n"
               "until the same content is stored again. No commit changes. The report at the\n"
               "end is about the repaired file.",
    .examples = "breccia fsck climate.brc\n"
                "breccia fsck climate.brc --json\n"
                "breccia fsck climate.brc --repair --from backup.brc",
    .options = fsck_options,
    .min_operands = 1,
    .max_operands = 1,
    .flags = CLI_POOL,
    .run = run_fsck,
};
