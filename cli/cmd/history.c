/*
 * history.c - commits as JSON and text.
 */
#include "history.h"

#include "../cli.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_same_id(const brc_oid *a, const brc_oid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

int cli_refs_read(struct cli *cli, struct cli_refs *out)
{
    struct cli_ref *refs = NULL;
    size_t n = 0, cap = 0;
    const brc_ref *ref;
    int rc;

    out->n = 0;
    CLI_TRY(brc_refs(&cli->iter, cli->repo, &cli->err));
    while ((rc = brc_refs_next(cli->iter, &ref, &cli->err)) == 1) {
        refs = cli_grow(refs, n, &cap, sizeof(*refs));
        refs[n].name = cli_text(cli, "%s", ref->name);
        refs[n].message = cli_text(cli, "%s", ref->message ? ref->message : "");
        refs[n].is_tag = (ref->flags & BRC_REF_TAG) != 0;
        refs[n].is_current = (ref->flags & BRC_REF_CURRENT) != 0;
        refs[n].is_unborn = (ref->flags & BRC_REF_UNBORN) != 0;
        refs[n++].id = ref->id;
    }
    brc_iter_free(cli->iter);
    cli->iter = NULL;
    out->refs = cli_alloc(cli, n + 1, sizeof(*refs));
    if (n > 0)
        memcpy(out->refs, refs, n * sizeof(*refs));
    out->n = n;
    free(refs);
    return rc;
}

int cli_ref_find(struct cli *cli, const char *name, int is_tag, int *has, brc_oid *id)
{
    struct cli_refs refs;

    *has = 0;
    CLI_TRY(cli_refs_read(cli, &refs));
    for (size_t i = 0; i < refs.n && !*has; i++) {
        const struct cli_ref *ref = &refs.refs[i];

        *has = !ref->is_tag == !is_tag && !ref->is_unborn && strcmp(ref->name, name) == 0;
        *id = ref->id;
    }
    return BRC_OK;
}

int cli_refs_unborn(const struct cli_refs *refs)
{
    for (size_t i = 0; i < refs->n; i++)
        if (refs->refs[i].is_current)
            return refs->refs[i].is_unborn;
    return 0;
}

/* ---- JSON --------------------------------------------------------------------------- */

static void put_ref_names(struct cli *cli, const char *key, const struct cli_refs *refs,
                          const brc_oid *id, int is_tag)
{
    cli_json_key(cli, key);
    cli_json_open_line(cli, '[');
    for (size_t i = 0; i < refs->n; i++)
        if (!refs->refs[i].is_tag == !is_tag && !refs->refs[i].is_unborn &&
            cli_same_id(&refs->refs[i].id, id))
            cli_json_string(cli, refs->refs[i].name);
    cli_json_close(cli, '[');
}

void cli_commit_members(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs)
{
    char time[CLI_TIME_CAP];
    const char *meta = commit->meta_json && commit->meta_json[0] ? commit->meta_json : "{}";

    cli_json_key(cli, "id");
    cli_json_id(cli, &commit->id);
    cli_json_key(cli, "parents");
    cli_json_open_line(cli, '[');
    for (size_t i = 0; i < commit->nparents; i++)
        cli_json_id(cli, &commit->parents[i]);
    cli_json_close(cli, '[');
    if (commit->flags & BRC_PAST_EXPIRED)
        cli_json_member_bool(cli, "parents_expired", 1);
    cli_json_member(cli, "author", commit->author);
    cli_json_member(cli, "time", cli_format_time(time, commit->time_us));
    cli_json_member(cli, "message", commit->message);
    put_ref_names(cli, "branches", refs, &commit->id, 0);
    put_ref_names(cli, "tags", refs, &commit->id, 1);
    cli_json_key(cli, "meta");
    cli_json_raw(cli, meta, strlen(meta));
}

/* ---- text --------------------------------------------------------------------------- */

/* " (HEAD -> main, tag: v1)" */
static void put_decoration(struct cli *cli, const struct cli_refs *refs, const brc_oid *id)
{
    const char *open = " (";

    for (size_t i = 0; i < refs->n; i++) {
        const struct cli_ref *ref = &refs->refs[i];

        if (ref->is_unborn || !cli_same_id(&ref->id, id))
            continue;
        cli_puts(cli, open);
        cli_color(cli, ref->is_tag ? CLI_YELLOW : CLI_GREEN);
        cli_printf(cli, "%s%s", ref->is_tag ? "tag: " : ref->is_current ? "HEAD -> " : "",
                   cli_escaped(cli, ref->name));
        cli_color_end(cli);
        open = ", ";
    }
    if (strcmp(open, ", ") == 0)
        cli_puts(cli, ")");
}

const char *cli_subject(struct cli *cli, const char *message)
{
    return cli_escaped(cli, cli_text(cli, "%.*s", (int)strcspn(message, "\n"), message));
}

void cli_commit_line(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                     const char *first)
{
    cli_puts(cli, first);
    cli_color(cli, CLI_YELLOW);
    cli_puts(cli, cli_short_id(cli, &commit->id));
    cli_color_end(cli);
    put_decoration(cli, refs, &commit->id);
    cli_printf(cli, " %s\n", cli_subject(cli, commit->message));
}

/* A line without text does not end with blanks either. */
static void put_message_line(struct cli *cli, const char *prefix, const char *line)
{
    const char *text = cli_subject(cli, line);
    int len = (int)strlen(prefix);

    while (!text[0] && len > 0 && prefix[len - 1] == ' ')
        len--;
    cli_printf(cli, "%.*s%s%s\n", len, prefix, text[0] ? "    " : "", text);
}

void cli_commit_text(struct cli *cli, const brc_commit *commit, const struct cli_refs *refs,
                     const char *path, const char *first, const char *prefix)
{
    char time[CLI_TIME_CAP];
    const char *line = commit->message;

    cli_puts(cli, first);
    cli_color(cli, CLI_YELLOW);
    cli_printf(cli, "commit %s", cli_long_id(cli, &commit->id));
    cli_color_end(cli);
    put_decoration(cli, refs, &commit->id);
    cli_puts(cli, "\n");
    if (commit->nparents > 1) {
        cli_printf(cli, "%sMerge: ", prefix);
        for (size_t i = 0; i < commit->nparents; i++)
            cli_printf(cli, " %s", cli_short_id(cli, &commit->parents[i]));
        cli_puts(cli, "\n");
    }
    if (commit->flags & BRC_PAST_EXPIRED)
        cli_printf(cli, "%sPast:   commits before this one have expired\n", prefix);
    cli_printf(cli, "%sAuthor: %s\n", prefix, cli_escaped(cli, commit->author));
    cli_printf(cli, "%sDate:   %s\n", prefix, cli_format_time(time, commit->time_us));
    if (commit->meta_json && strcmp(commit->meta_json, "{}") != 0 && commit->meta_json[0])
        cli_printf(cli, "%sMeta:   %s\n", prefix, cli_escaped(cli, commit->meta_json));
    if (path)
        cli_printf(cli, "%sPath:   %s\n", prefix, cli_escaped(cli, path));
    put_message_line(cli, prefix, "");
    while (*line) {
        size_t len = strcspn(line, "\n");

        put_message_line(cli, prefix, line);
        line += len + (line[len] == '\n');
    }
}

const char *cli_default_author(struct cli *cli)
{
    const char *author = getenv("BRECCIA_AUTHOR"), *user;
    const struct passwd *entry;
    char host[256] = "localhost";

    if (author && author[0])
        return author;
    entry = getpwuid(geteuid());
    user = entry ? entry->pw_name : getenv("USER");
    user = user && user[0] ? user : "unknown";
    if (gethostname(host, sizeof(host)) == 0)
        host[sizeof(host) - 1] = '\0';
    return cli_text(cli, "%s <%s@%s>", user, user, host);
}
