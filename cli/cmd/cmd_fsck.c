/*
 * cmd_fsck.c - fsck.
 */
#include "../cli.h"
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DAMAGE_FOUND = 4 };

static const struct cli_option fsck_options[] = {
    { "no-decode", 0, 0, NULL, "do not decode chunks, only check their stored bytes" },
    { "repair", 0, 0, NULL, "make good what can be, and drop what cannot be read" },
    { "from", 0, 1, "OTHER", "with --repair: take good copies from this file or Zarr directory" },
    { "yes", 0, 0, NULL, "with --repair: drop without asking" },
    CLI_OPTIONS_END
};

struct finding {
    const char *id, *kind, *message;
    const char **used_by;
    size_t nused_by;
    int missing;
};

/* What of a branch or tag still stands. */
struct standing {
    const char *name, *newest;
    const char **lost;
    size_t nlost;
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

static int keep_standing(void *ctx, const brc_standing *one)
{
    struct findings *found = ctx;
    struct cli *cli = found->cli;
    struct standing *ref;

    found->refs = cli_grow(found->refs, found->nrefs, &found->refs_cap, sizeof(*found->refs));
    ref = &found->refs[found->nrefs++];
    ref->name = cli_text(cli, "%s", one->name);
    ref->newest = one->whole > 0 ? cli_long_id(cli, &one->newest) : NULL;
    ref->commits = one->commits;
    ref->whole = one->whole;
    ref->is_tag = (one->flags & BRC_STANDS_TAG) != 0;
    ref->tip_stands = (one->flags & BRC_STANDS_TIP) != 0;
    ref->nlost = one->nlost;
    ref->lost = cli_alloc(cli, one->nlost + 1, sizeof(*ref->lost));
    for (size_t i = 0; i < one->nlost; i++)
        ref->lost[i] = cli_text(cli, "%s", one->lost[i]);
    return cli_signal() ? 1 : 0;
}

static int keep_finding(void *ctx, const brc_damage *damage)
{
    struct findings *found = ctx;
    struct cli *cli = found->cli;
    struct finding *finding;

    found->list = cli_grow(found->list, found->n, &found->cap, sizeof(*found->list));
    finding = &found->list[found->n++];
    finding->id = cli_long_id(cli, &damage->id);
    finding->kind = cli_text(cli, "%s", damage->kind);
    finding->message = cli_text(cli, "%s", damage->message ? damage->message : "");
    finding->missing = (damage->flags & BRC_DAMAGE_MISSING) != 0;
    finding->nused_by = damage->nused_by;
    finding->used_by = cli_alloc(cli, damage->nused_by + 1, sizeof(*finding->used_by));
    for (size_t i = 0; i < damage->nused_by; i++)
        finding->used_by[i] = cli_text(cli, "%s", damage->used_by[i]);
    return cli_signal() ? 1 : 0;
}

static void put_findings_json(struct cli *cli, const char *key, const struct findings *found,
                              int missing)
{
    cli_json_key(cli, key);
    cli_json_open(cli, '[');
    for (size_t i = 0; i < found->n; i++) {
        const struct finding *finding = &found->list[i];

        if (!finding->missing != !missing)
            continue;
        cli_json_open(cli, '{');
        cli_json_member(cli, "id", finding->id);
        cli_json_member(cli, "kind", finding->kind);
        cli_json_key(cli, "used_by");
        cli_json_open(cli, '[');
        for (size_t k = 0; k < finding->nused_by; k++)
            cli_json_string(cli, finding->used_by[k]);
        cli_json_close(cli, '[');
        cli_json_member(cli, "message", finding->message);
        cli_json_close(cli, '{');
    }
    cli_json_close(cli, '[');
}

static void put_standing_json(struct cli *cli, const struct findings *found)
{
    cli_json_key(cli, "refs");
    cli_json_open(cli, '[');
    for (size_t i = 0; i < found->nrefs; i++) {
        const struct standing *ref = &found->refs[i];

        cli_json_open(cli, '{');
        cli_json_member(cli, "name", ref->name);
        cli_json_member_bool(cli, "tag", ref->is_tag);
        cli_json_member_bool(cli, "whole", ref->tip_stands);
        cli_json_member_uint(cli, "commits", ref->commits);
        cli_json_member_uint(cli, "commits_whole", ref->whole);
        if (ref->newest)
            cli_json_member(cli, "newest_whole", ref->newest);
        cli_json_key(cli, "lost");
        cli_json_open(cli, '[');
        for (size_t k = 0; k < ref->nlost; k++)
            cli_json_string(cli, ref->lost[k]);
        cli_json_close(cli, '[');
        cli_json_close(cli, '{');
    }
    cli_json_close(cli, '[');
}

static void put_standing_text(struct cli *cli, const struct findings *found)
{
    for (size_t i = 0; i < found->nrefs; i++) {
        const struct standing *ref = &found->refs[i];

        cli_printf(cli, "%s %s: ", ref->is_tag ? "tag" : "branch", cli_escaped(cli, ref->name));
        if (ref->tip_stands)
            cli_puts(cli, "its version is whole");
        else
            cli_puts(cli, ref->nlost ? "damaged in" : "its version cannot be read");
        for (size_t k = 0; k < ref->nlost; k++)
            cli_printf(cli, "%s %s", k ? "," : "", cli_escaped(cli, ref->lost[k]));
        cli_printf(cli, "; %llu of %llu commits are whole", (unsigned long long)ref->whole,
                   (unsigned long long)ref->commits);
        if (ref->newest && !ref->tip_stands)
            cli_printf(cli, ", the newest is %.8s", ref->newest);
        cli_puts(cli, "\n");
    }
}

static void put_findings_text(struct cli *cli, const struct findings *found)
{
    for (size_t i = 0; i < found->n; i++) {
        const struct finding *finding = &found->list[i];

        cli_color(cli, CLI_RED);
        cli_puts(cli, finding->missing ? "missing" : "damaged");
        cli_color_end(cli);
        cli_printf(cli, " %s %.8s: %s\n", finding->kind, finding->id,
                   cli_escaped(cli, finding->message));
        for (size_t k = 0; k < finding->nused_by; k++)
            cli_printf(cli, "    used by %s\n", cli_escaped(cli, finding->used_by[k]));
    }
}

static void put_fsck(struct cli *cli, const struct findings *found, uint64_t checked,
                     const brc_repair_report *report)
{
    size_t missing = 0;

    for (size_t i = 0; i < found->n; i++)
        missing += found->list[i].missing != 0;
    if (cli->json) {
        cli_json_open(cli, '{');
        cli_json_member_bool(cli, "ok", found->n == 0);
        cli_json_member_uint(cli, "objects_checked", checked);
        put_findings_json(cli, "damaged", found, 0);
        put_findings_json(cli, "missing", found, 1);
        if (found->nrefs > 0)
            put_standing_json(cli, found);
        if (cli_has(cli, "repair")) {
            cli_json_member_uint(cli, "replaced", report->replaced);
            cli_json_member_uint(cli, "dropped", report->dropped);
        }
        cli_json_close(cli, '{');
        return;
    }
    put_findings_text(cli, found);
    put_standing_text(cli, found);
    if (found->n == 0)
        cli_say(cli, "%s checked, all is well", cli_count(cli, checked, "object"));
    else
        cli_say(cli, "%s checked: %zu damaged, %zu missing", cli_count(cli, checked, "object"),
                found->n - missing, missing);
}

/* ---- repairing ------------------------------------------------------------------- */

/* Where good copies may be. A Zarr directory is imported into a file that goes again. */
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
        return cli_fail(cli, BRC_EIO, "no folder for copies can be made: set TMPDIR to one");
    }
    snprintf(from->file, sizeof(from->file), "%s/copies.brc", from->dir);
    opts.flags = BRC_OPEN_CREATE;
    opts.pool = cli->pool;
    opts.registry = cli->registry;
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
            "%s cannot be read. Drop what is damaged, so that it can be stored again? [y/N] ",
            cli_count(cli, n, "object"));
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* The sum of both calls is in *report. */
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
    if (!cli->json)
        cli_say(cli, "%s replaced by a good copy, %llu dropped",
                cli_count(cli, report->replaced, "object"), (unsigned long long)report->dropped);
    if (!cli->json && report->damaged > 0)
        cli_say(cli, "what cannot be read is still there: 'fsck --repair --yes' drops it");
    return BRC_OK;
}

static int run_fsck(struct cli *cli)
{
    struct findings found = { .cli = cli };
    brc_repair_report report = BRC_REPAIR_REPORT_INIT;
    uint64_t checked = 0;
    int rc;

    if (!cli_has(cli, "repair") && (cli_has(cli, "from") || cli_has(cli, "yes")))
        return cli_usage(cli, "--from and --yes go with --repair");
    CLI_TRY(cli_has(cli, "repair") ? run_repair(cli, &report) : cli_open(cli, BRC_OPEN_READONLY));
    rc = brc_fsck_standing(cli->repo, cli_has(cli, "no-decode") ? BRC_FSCK_NO_DECODE : 0,
                           keep_finding, keep_standing, &found, &checked, &cli->err);
    if (rc >= 0) {
        put_fsck(cli, &found, checked, &report);
        rc = found.n > 0 ? DAMAGE_FOUND : 0;
    }
    free(found.list);
    free(found.refs);
    return rc;
}

const struct cli_command cli_command_fsck = {
    .name = "fsck",
    .group = "Keeping",
    .summary = "check everything that is stored",
    .usage = "FILE [--no-decode] [--repair [--from OTHER] [--yes]]",
    .details = "Hashes every object again, decodes every chunk and follows every commit to\n"
               "its chunks. The exit status is 4 if something is damaged or missing; then it\n"
               "also says what of each branch and tag is lost, and what still stands.\n"
               "\n"
               "--repair makes derived rows anew. With --from it takes good copies of what is\n"
               "damaged or missing from OTHER, another breccia file, or a Zarr directory or\n"
               ".zip: what has the same content, whatever its codecs. What cannot be read\n"
               "then, it drops, after it has asked; where nobody can answer, only with --yes.\n"
               "Such objects are missing afterwards, and are there again as soon as the same\n"
               "content is stored. No commit changes. What is said at the end is what is left.",
    .examples = "breccia fsck climate.brc\n"
                "breccia fsck climate.brc --json\n"
                "breccia fsck climate.brc --repair --from backup.brc",
    .options = fsck_options,
    .min_operands = 1,
    .max_operands = 1,
    .flags = CLI_POOL,
    .run = run_fsck,
};
