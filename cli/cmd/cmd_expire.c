/*
 * cmd_expire.c - expire.
 */
#include "../cli.h"
#include "commands.h"

static const struct cli_option expire_options[] = {
    { "keep-last", 0, 1, "N", "keep the N newest commits of each branch (0: no rule)" },
    { "keep-daily", 0, 1, "N", "keep the newest commit of each day, for N days with commits" },
    { "keep-weekly", 0, 1, "N", "do the same for weeks, which begin on Monday" },
    { "keep-monthly", 0, 1, "N", "do the same for months" },
    { "dry-run", 0, 0, NULL, "only list what would expire" },
    CLI_OPTIONS_END
};

/* The names of BRC_KEPT_TIP and the bits after it, in order. */
static const char *const expire_reasons[] = { "branch", "tag",    "in use", "last",
                                              "daily",  "weekly", "monthly" };
enum { REASONS = sizeof(expire_reasons) / sizeof(expire_reasons[0]) };

static int put_expiry(struct cli *cli, struct cli_list *list, const brc_expired *one)
{
    const char *names[REASONS], *minute;
    struct cli_texts reasons = { names, 0 };
    char time[CLI_TIME_CAP];

    minute = cli_text(cli, "%.16sZ", cli_format_time(time, one->time_us));
    for (size_t i = 0; i < REASONS; i++)
        if (one->reasons >> i & 1)
            names[reasons.n++] = expire_reasons[i];
    return cli_list_put(
        cli, list,
        CLI_FIELDS({ NULL, CLI_WORD(one->reasons ? "keep  " : "expire"), .lead = "" },
                   { "id", CLI_OF(one->id), .lead = " " },
                   { "time", CLI_OF(one->time_us), CLI_AS_TIME },
                   { NULL, CLI_OF(minute), .lead = " " },
                   { "kept", CLI_OF(one->reasons != 0) },
                   { "reasons", CLI_OF(reasons), .lead = "  " }));
}

/* Says what a collection then makes of the file. */
static int say_space(struct cli *cli, uint64_t more)
{
    const brc_gc_opts opts = { sizeof(opts), BRC_GC_DRY_RUN, 0, "0" };
    brc_gc_report after = BRC_GC_REPORT_INIT;
    char size[CLI_SIZE_CAP];

    CLI_TRY(brc_gc(cli->repo, &opts, &after, &cli->err));
    after.file_bytes -= more < after.file_bytes ? more : after.file_bytes;
    cli_say(cli, "'breccia gc' frees the space as soon as the operation log does not name these "
                 "commits, and 'gc --keep 0' at once: the file %s about %s",
            more ? "would then have" : "then has", cli_format_size(size, after.file_bytes));
    return BRC_OK;
}

static int say_expired(struct cli *cli, const brc_expire_report *report, int dry)
{
    cli_say(cli, "%s %s, %llu %s", cli_count(cli, report->expired, "commit"),
            dry                    ? "would expire"
            : report->expired == 1 ? "has expired"
                                   : "have expired",
            (unsigned long long)report->kept,
            dry                 ? "would stay"
            : report->kept == 1 ? "stays"
                                : "stay");
    if (dry)
        cli_say(cli, "only the commits that would expire hold %s",
                cli_count(cli, report->bytes, "byte"));
    if (report->expired == 0 || cli->json || cli->quiet)
        return BRC_OK;
    return say_space(cli, dry ? report->bytes : 0);
}

static int put_expire(struct cli *cli, const brc_expire_report *report, int dry)
{
    struct cli_list list;
    const brc_expired *one;
    int rc = 0;

    cli_begin(cli, NULL, '{');
    cli_put_members(cli, CLI_FIELDS({ "kept", CLI_OF(report->kept) },
                                    { "expired", CLI_OF(report->expired) },
                                    { "dry_run", CLI_OF(dry) },
                                    { dry ? "bytes" : NULL, CLI_OF(report->bytes) }));
    cli_list_begin(cli, &list, "commits", 0);
    while ((cli->json || dry || cli->verbose) &&
           (rc = brc_next(cli->iter, &one, &cli->err)) == 1)
        CLI_TRY(put_expiry(cli, &list, one));
    CLI_TRY(cli_list_end(cli, &list, rc));
    cli_finish(cli, '{');
    return say_expired(cli, report, dry);
}

static int expire_rule(struct cli *cli, const char *name, uint32_t *out, int *any)
{
    uint64_t n = 0;

    CLI_TRY(cli_uint_option(cli, name, 0, UINT32_MAX, &n));
    *out = (uint32_t)n;
    *any |= n > 0;
    return BRC_OK;
}

static int run_expire(struct cli *cli)
{
    const int dry = cli_has(cli, "dry-run");
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    brc_expire_report report = BRC_EXPIRE_REPORT_INIT;
    int any = 0;

    CLI_TRY(expire_rule(cli, "keep-last", &opts.keep_last, &any));
    CLI_TRY(expire_rule(cli, "keep-daily", &opts.keep_daily, &any));
    CLI_TRY(expire_rule(cli, "keep-weekly", &opts.keep_weekly, &any));
    CLI_TRY(expire_rule(cli, "keep-monthly", &opts.keep_monthly, &any));
    if (!any)
        return cli_usage(cli, "give a rule for the commits that stay: --keep-last N, --keep-daily "
                              "N, --keep-weekly N or --keep-monthly N");
    opts.flags = dry ? BRC_EXPIRE_DRY_RUN : 0;
    CLI_TRY(cli_open(cli, dry ? BRC_OPEN_READONLY : 0));
    CLI_TRY(brc_expire(&report, &cli->iter, cli->repo, &opts, &cli->err));
    return put_expire(cli, &report, dry);
}

const struct cli_command cli_command_expire = {
    .name = "expire",
    .group = "Keeping",
    .summary = "thin history",
    .usage = "FILE [--keep-last N] [--keep-daily N] [--keep-weekly N] [--keep-monthly N] "
             "[--dry-run]",
    .details = "Branches, tags and the commits under uncommitted changes always stay, and so\n"
               "does what a rule keeps; all other commits expire. Each rule counts along the\n"
               "first parents of each branch, in UTC: the newest commit of a day, a week or a\n"
               "month counts, and a day without commits does not. A rule that is not used up\n"
               "keeps the oldest commit too.\n"
               "\n"
               "Commits that stay keep their ids. Where parents have expired, log, diff, blame\n"
               "and merge go on with the nearest commit that is kept. 'gc' frees the space, as\n"
               "soon as the window of the operation log has passed ('config FILE window');\n"
               "until then, the id of an expired commit still finds the commit.",
    .examples = "breccia expire climate.brc --keep-last 10 --keep-daily 14 --dry-run\n"
                "breccia expire climate.brc --keep-last 1 --keep-monthly 24",
    .options = expire_options,
    .min_operands = 1,
    .max_operands = 1,
    .flags = 0,
    .run = run_expire,
};
