/*
 * context.c - the open repository of one run.
 */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "credentials.h"
#include "select.h"

/* ---- the operand FILE -------------------------------- */

int cli_needs_file(const struct cli *cli)
{
    int flags = cli->command->flags;

    return !(flags & CLI_NO_FILE) && !(flags & CLI_LIST && cli_has(cli, "list")) &&
           !(flags & CLI_USER && cli_has(cli, "user")) &&
           !(flags & CLI_ROOT && cli_has(cli, "root"));
}

static int file_exists(const char *name)
{
    struct stat status;

    return stat(name, &status) == 0;
}

/* Returns the REV of FILE@REV: what is behind the last "@" that has the name of a file before it.
 * Returns NULL if the whole is the name of a file, or no part is. */
static const char *version_in(struct cli *cli, const char *file)
{
    if (file_exists(file))
        return NULL;
    for (const char *at = file + strlen(file); at > file; at--)
        if (*at == '@' && file_exists(cli_text(cli, "%.*s", (int)(at - file), file)))
            return at + 1;
    return NULL;
}

static int has_option(const struct cli_command *command, const char *name)
{
    for (const struct cli_option *o = command->options; o && o->name; o++)
        if (strcmp(o->name, name) == 0)
            return 1;
    return 0;
}

/* Splits FILE@REV. */
static int place_version(struct cli *cli)
{
    const char *file = cli_operand(cli, 0), *rev = version_in(cli, file);

    if (!rev)
        return BRC_OK;
    cli->args.operands[0] = cli_text(cli, "%.*s", (int)(rev - 1 - file), file);
    if (rev[0] == '\0')
        return cli_usage(cli, "a version is missing behind %s", file);
    if (cli->command->flags & CLI_REV) {
        cli_args_insert(cli, 1, rev);
        return BRC_OK;
    }
    if (!has_option(cli->command, "at"))
        return cli_usage(cli, "%s does not read a version: leave out @%s", cli->command->name, rev);
    if (cli_has(cli, "at"))
        return cli_usage(cli, "--at and %s both name a version", file);
    cli_args_add(cli, "at", rev);
    return BRC_OK;
}

/* Returns whether both are names of one file. */
static int is_same_file(const char *a, const char *b)
{
    struct stat one, other;

    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* Puts the file of BRECCIA_FILE before the operands, unless they begin with that very file: a
 * script that names its file works under `bisect run` too. */
static void insert_from_environment(struct cli *cli)
{
    const char *file = getenv("BRECCIA_FILE"), *first = cli_operand(cli, 0);

    if (file && file[0] && !(first && is_same_file(first, file)))
        cli_args_insert(cli, 0, file);
    cli->file_is_set = file && file[0];
}

int cli_place_file(struct cli *cli)
{
    const char *file = cli_value(cli, "file");

    if (!cli_needs_file(cli))
        return BRC_OK;
    if (file && file[0])
        cli_args_insert(cli, 0, file);
    else if (!file)
        insert_from_environment(cli);
    return cli->args.noperands > 0 ? place_version(cli) : BRC_OK;
}

/* ---- the repository -------------------------------- */

static int pin_implementation(struct cli *cli, const char *text)
{
    const char *equals = strchr(text, '=');

    if (!equals || equals == text || equals[1] == '\0')
        return cli_usage(cli, "--implementation '%s' is not CODEC=NAME, as zstd=libzstd", text);
    return brc_registry_pin(cli->registry, cli_text(cli, "%.*s", (int)(equals - text), text),
                            equals + 1, &cli->err);
}

/* If the library cannot be used, the list of codecs says why. */
static int add_nvcomp(struct cli *cli)
{
    brc_error why = BRC_ERROR_INIT;
    const int rc = brc_registry_use_nvcomp(cli->registry, cli_value(cli, "nvcomp"), &why);

    if (rc == BRC_OK || rc == BRC_EUNSUPPORTED)
        return BRC_OK;
    cli->err = why;
    return rc;
}

int cli_load_plugins(struct cli *cli)
{
    const char *text;

    if (cli->registry || (!cli_has(cli, "plugin") && !cli_has(cli, "implementation") &&
                          !cli_has(cli, "nvcomp")))
        return BRC_OK;
    CLI_TRY(brc_registry_new(&cli->registry, &cli->err));
    for (size_t i = 0; (text = cli_nth_value(cli, "plugin", i)) != NULL; i++)
        CLI_TRY(brc_registry_load(cli->registry, text, &cli->err));
    if (cli_has(cli, "nvcomp"))
        CLI_TRY(add_nvcomp(cli));
    for (size_t i = 0; (text = cli_nth_value(cli, "implementation", i)) != NULL; i++)
        CLI_TRY(pin_implementation(cli, text));
    return BRC_OK;
}

/* Refuses "breccia log x.brc >> x.brc", which would overwrite the repository. */
static int check_output_elsewhere(struct cli *cli)
{
    struct stat file, output;

    if (stat(cli->file, &file) != 0)
        return BRC_OK;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &output) == 0 && output.st_dev == file.st_dev &&
            output.st_ino == file.st_ino) {
            cli->out.hold = 1; /* so that no output appears */
            if (fd == STDOUT_FILENO)
                cli->out.failure = EINVAL; /* not even the document of an error */
            if (fd == STDERR_FILENO && !freopen("/dev/null", "w", stderr))
                _exit(1);
            return cli_fail(cli, BRC_EINVAL,
                            "standard %s goes to %s, the repository: send it elsewhere",
                            fd == STDOUT_FILENO ? "output" : "error", cli->file);
        }
    return BRC_OK;
}

/* Does everything that precedes the opening of FILE. */
static int prepare_open(struct cli *cli)
{
    CLI_TRY(cli_load_plugins(cli)); /* first: their errors do not name FILE */
    cli->file = cli_operand(cli, 0);
    if (cli->file[0] == '\0')
        return cli_usage(cli, "FILE is empty: give the name of the repository");
    CLI_TRY(check_output_elsewhere(cli));
    if ((cli->command->flags & CLI_POOL) || cli_has(cli, "stats"))
        CLI_TRY(brc_pool_new(&cli->pool, cli->threads, &cli->err));
    cli_progress_begin(cli);
    return BRC_OK;
}

static int open_with_cache(struct cli *cli, brc_open_opts *opts)
{
    const char *bytes;

    CLI_TRY(cli_setting(cli, "cache", &opts->cache, NULL));
    CLI_TRY(cli_setting(cli, "cache-bytes", &bytes, NULL));
    return bytes ? cli_cache_bytes(cli, bytes, &opts->cache_bytes) : BRC_OK;
}

static int open_with_readback(struct cli *cli, brc_open_opts *opts)
{
    static const char *const names[] = { "", "all", "sampled", "none" };
    const char *name = "";

    CLI_TRY(cli_choice_option(cli, "readback", "all|sampled|none", &name));
    while (strcmp(names[opts->readback], name) != 0)
        opts->readback++;
    return BRC_OK;
}

static int open_given_file(struct cli *cli, uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_pipeline_opts how = BRC_PIPELINE_OPTS_INIT;
    int rc;

    if (cli_has(cli, "no-recover"))
        flags |= BRC_OPEN_NO_RECOVER;
    if ((flags & BRC_OPEN_CREATE) && (flags & BRC_OPEN_NO_RECOVER))
        return cli_usage(cli, "--no-recover needs a file that exists");
    cli->changes = !(flags & BRC_OPEN_READONLY);
    opts.flags = flags;
    opts.wait_ms = cli->wait_ms;
    opts.max_nodes = cli->max_nodes;
    opts.pool = cli->pool;
    opts.registry = cli->registry;
    opts.libexec = cli_libexec(cli);
    opts.credentials = cli_credentials;
    if (cli_has(cli, "pipeline")) {
        how.pipeline = cli_value(cli, "pipeline");
        opts.pipeline = &how;
    }
    CLI_TRY(open_with_cache(cli, &opts));
    CLI_TRY(open_with_readback(cli, &opts));
    if (cli->progress.enabled) { /* otherwise the library need not report progress */
        opts.progress = cli_progress_step;
        opts.progress_ctx = cli;
    }
    if (flags & BRC_OPEN_CREATE)
        cli_signal_hold();
    rc = brc_open(&cli->repo, cli->file, &opts, &cli->err);
    cli_signal_target(cli->repo);
    return rc;
}

int cli_open(struct cli *cli, uint32_t flags)
{
    CLI_TRY(prepare_open(cli));
    return open_given_file(cli, flags);
}

static int open_session(struct cli *cli)
{
    const char *at = cli_value(cli, "at");

    return brc_session_open(&cli->session, cli->repo, at, at ? BRC_SESSION_AT : BRC_SESSION_VIEW,
                            &cli->err);
}

int cli_open_silently(struct cli *cli)
{
    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    return open_session(cli);
}

int cli_open_keeping(struct cli *cli)
{
    int rc;

    CLI_TRY(prepare_open(cli));
    rc = open_given_file(cli, 0);
    if (rc == BRC_EREADONLY || rc == BRC_EBUSY)
        rc = open_given_file(cli, BRC_OPEN_READONLY);
    cli->changes = 0;
    CLI_TRY(rc);
    return open_session(cli);
}

/* Sets *id to the shared draft of `branch` if the branch has moved since the draft began, else to
 * 0. An open merge does not count. */
static int find_stale_draft(struct cli *cli, const char *branch, int64_t *id)
{
    const uint32_t flags = BRC_DRAFT_OWNED | BRC_DRAFT_MERGING | BRC_DRAFT_STALE;
    brc_iter *it;
    const brc_draft *draft;
    int rc;

    *id = 0;
    CLI_TRY(brc_drafts(&it, cli->repo, &cli->err));
    while ((rc = brc_next(it, &draft, &cli->err)) > 0)
        if ((draft->flags & flags) == BRC_DRAFT_STALE && strcmp(draft->branch, branch) == 0)
            *id = draft->id;
    brc_iter_free(it);
    return rc;
}

int cli_find_moved(struct cli *cli, const char **branch)
{
    brc_session_info info = BRC_SESSION_INFO_INIT;
    int64_t draft = 0;

    if (cli->session)
        CLI_TRY(brc_session_stat(&info, cli->session, &cli->err));
    CLI_TRY(cli_branch(cli, branch));
    if (!cli->session || (info.mode == BRC_SESSION_VIEW && info.draft != 0))
        CLI_TRY(find_stale_draft(cli, *branch, &draft));
    cli->moved = draft != 0;
    return BRC_OK;
}

const char *cli_moved_words(struct cli *cli, const char *branch)
{
    branch = cli_escaped(cli, branch);
    return cli_text(cli, "%s has moved since its uncommitted changes began, and its new version is "
                         "not shown: '--at %s' shows it, 'breccia commit' merges the changes "
                         "onto it",
                    branch, branch);
}

int cli_open_view(struct cli *cli)
{
    const char *branch;

    CLI_TRY(cli_open_silently(cli));
    CLI_TRY(cli_find_moved(cli, &branch));
    if (cli->moved)
        cli_note(cli, cli_moved_words(cli, branch));
    return BRC_OK;
}

int cli_open_branch(struct cli *cli)
{
    CLI_TRY(cli_open(cli, 0));
    return brc_session_open(&cli->session, cli->repo, NULL, BRC_SESSION_WRITE, &cli->err);
}

/* The longest text of an operation that brc_session_log() takes. */
enum { OPERATION_MOST = 200 };

int cli_log_edit(struct cli *cli)
{
    char text[OPERATION_MOST + 1];
    size_t len = (size_t)snprintf(text, sizeof(text), "%s", cli->command->name);

    for (size_t i = 1; i < cli->args.noperands && len < sizeof(text); i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, " %s", cli_operand(cli, i));
    if (len >= sizeof(text)) { /* no part of a character at the end */
        for (len = OPERATION_MOST; len > 0 && ((unsigned char)text[len - 1] & 0xC0) == 0x80;)
            len--;
        text[len > 0 ? len - 1 : 0] = '\0';
    }
    if (brc_session_log(cli->session, text, NULL) == BRC_OK)
        return BRC_OK;
    return brc_session_log(cli->session, cli->command->name, &cli->err); /* no UTF-8 */
}

int cli_open_edit(struct cli *cli)
{
    CLI_TRY(cli_open_branch(cli));
    return cli_log_edit(cli);
}

int cli_open_array(struct cli *cli, const char *path)
{
    brc_array_free(cli->array);
    return brc_array_open(&cli->array, cli->session, path, &cli->err);
}

int cli_open_sliced(struct cli *cli, const char **path, const char **slice)
{
    if (!*slice)
        CLI_TRY(cli_split_slice(cli, path, slice));
    return cli_open_array(cli, *path);
}

int cli_select(struct cli *cli, const char *slice, brc_sel *out)
{
    return cli_select_in(cli, cli->session, cli->array, slice, out);
}

int cli_node_kind(struct cli *cli, const char *path, int *kind)
{
    CLI_TRY(brc_node_kind(kind, cli->session, path, &cli->err));
    if (*kind == 0)
        return cli_fail(cli, BRC_ENOTFOUND, "there is no node %s", path);
    return BRC_OK;
}

int cli_branch(struct cli *cli, const char **out)
{
    CLI_TRY(brc_head(out, cli->repo, &cli->err));
    *out = cli_text(cli, "%s", *out);
    return BRC_OK;
}

/* ---- names that are there -------------------------------- */

enum { NAMES_MOST = 10000 };

/* Names that a mistyped one may have meant. */
struct near {
    const char **names;
    size_t n, cap;
};

static void add_near(struct near *near, const char *name)
{
    if (near->n >= NAMES_MOST)
        return;
    near->names = cli_grow(near->names, near->n, &near->cap, sizeof(*near->names));
    near->names[near->n++] = name;
}

/* Returns "; did you mean A or B?", or "". `prefix` comes before each name. */
static const char *near_words(struct cli *cli, struct near *near, const char *word,
                              const char *prefix)
{
    char similar[300];

    cli_similar(similar, sizeof(similar), word, prefix, near->names, near->n);
    free(near->names);
    return similar[0] ? cli_text(cli, "; did you mean %s?", cli_escaped(cli, similar)) : "";
}

static const char *near_last_name(const char *path)
{
    return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

/* Lists the nodes of a group, or of the whole hierarchy, as paths. */
static void list_near(struct cli *cli, struct near *near, const char *group, uint32_t flags)
{
    const brc_node *node;
    brc_iter *it;

    if (brc_list(&it, cli->session, group, flags, NULL) < 0)
        return;
    while (near->n < NAMES_MOST && brc_next(it, &node, NULL) == 1)
        add_near(near, cli_text(cli, "%s", node->path));
    brc_iter_free(it);
}

/* Keeps the paths that end with this name. */
static void near_keep_named(struct near *near, const char *name)
{
    size_t kept = 0;

    for (size_t i = 0; i < near->n; i++)
        if (strcmp(near_last_name(near->names[i]), name) == 0)
            near->names[kept++] = near->names[i];
    near->n = kept < 3 ? kept : 3;
}

/* Suggests a sibling with a name like that of the path; else a node of that very name elsewhere. */
static const char *near_node(struct cli *cli, const char *path)
{
    struct near near = { NULL, 0, 0 };
    const char *slash = strrchr(path, '/'), *words;
    const char *group = slash ? cli_text(cli, "%.*s", (int)(slash - path + 1), path) : "/";

    list_near(cli, &near, cli_path(cli, group), 0);
    for (size_t i = 0; i < near.n; i++)
        near.names[i] = near_last_name(near.names[i]);
    if ((words = near_words(cli, &near, near_last_name(path), group))[0])
        return words;
    near = (struct near){ NULL, 0, 0 };
    list_near(cli, &near, "/", BRC_LIST_RECURSE);
    near_keep_named(&near, near_last_name(path));
    words = "";
    for (size_t i = 0; i < near.n; i++)
        words = cli_text(cli, "%s%s%s", words, i ? " or " : "; did you mean ",
                         cli_escaped(cli, near.names[i]));
    free(near.names);
    return words[0] ? cli_text(cli, "%s?", words) : "";
}

/* Suggests branches, tags, or all names of versions. */
static const char *near_ref(struct cli *cli, const char *name, const char *kind)
{
    const int tags = strcmp(kind, "branch") != 0, branches = strcmp(kind, "tag") != 0;
    struct near near = { NULL, 0, 0 };
    const brc_ref *ref;
    brc_iter *it;

    if (brc_refs(&it, cli->repo, NULL) < 0)
        return "";
    if (tags && branches)
        add_near(&near, "HEAD");
    while (brc_next(it, &ref, NULL) == 1)
        if (ref->flags & BRC_REF_TAG ? tags : branches)
            add_near(&near, cli_text(cli, "%s", ref->name));
    brc_iter_free(it);
    return near_words(cli, &near, name, "");
}

/* Says that PATH follows '--' if the word that was read as a version is a node. */
static const char *near_path(struct cli *cli, const char *word)
{
    int kind = 0;

    if (!strstr(cli->command->usage, "-- PATH") ||
        (!cli->session &&
         brc_session_open(&cli->session, cli->repo, NULL, BRC_SESSION_VIEW, NULL) < 0) ||
        brc_node_kind(&kind, cli->session, cli_path(cli, word), NULL) < 0 || !kind)
        return "";
    return "; PATH comes after --";
}

/* Returns the word behind `before` in the message, up to a character of `ends`; or NULL. */
static const char *word_behind(struct cli *cli, const char *message, const char *before,
                               const char *ends)
{
    const char *at = strstr(message, before);

    if (!at)
        return NULL;
    at += strlen(before);
    return cli_text(cli, "%.*s", (int)strcspn(at, ends), at);
}

static int is_command(const struct cli *cli, const char *name)
{
    return cli->command && strcmp(cli->command->name, name) == 0;
}

const char *cli_suggestion(struct cli *cli, const char *message)
{
    const char *word, *near;

    /* CSV is of two commands, not of the library. */
    if (is_command(cli, "import") && strstr(message, " is not in a known format; "))
        return ", and tables in .csv files";
    if (is_command(cli, "append") && strstr(message, " does not begin like a .npy file"))
        return "; files of other formats are appended to a group";
    if (strstr(message, ": no format has the ending ") || strstr(message, "there is no format "))
        return "; an array can also become a .csv file";
    if (!cli->repo || cli->err.code != BRC_ENOTFOUND || cli_signal())
        return "";
    if ((word = word_behind(cli, message, "there is no branch, tag or commit '", "'~^@")))
        return *(near = near_path(cli, word)) ? near : near_ref(cli, word, "version");
    if ((word = word_behind(cli, message, "there is no branch '", "'")))
        return near_ref(cli, word, "branch");
    if ((word = word_behind(cli, message, "there is no tag '", "'")))
        return near_ref(cli, word, "tag");
    if (cli->session && (word = word_behind(cli, message, "there is no node ", ",;:")))
        return near_node(cli, word);
    return "";
}

void cli_done(struct cli *cli)
{
    cli->done = 1;
    cli->out.answers = 1;
    cli_signal_hold();
}

int cli_end(struct cli *cli, int rc)
{
    int ended = brc_end(cli->repo, rc >= 0 ? BRC_END_KEEP : 0, rc >= 0 ? &cli->err : NULL);

    return rc < 0 ? rc : ended;
}

int cli_end_bulk(struct cli *cli, int rc)
{
    int ended = brc_bulk_end(cli->session, rc >= 0 ? BRC_END_KEEP : 0, rc >= 0 ? &cli->err : NULL);

    return rc < 0 ? rc : ended;
}

void cli_close(struct cli *cli)
{
    brc_iter_free(cli->iter);
    brc_array_free(cli->array);
    brc_session_free(cli->session);
    cli_signal_hold(); /* closing may still write, and frees the signal's target */
    brc_free(cli->repo);
    brc_pool_free(cli->pool);
    brc_registry_free(cli->registry);
    brc_json_free(cli->settings);
    cli->settings = NULL;
    cli->iter = NULL;
    cli->array = NULL;
    cli->session = NULL;
    cli->repo = NULL;
    cli->pool = NULL;
    cli->registry = NULL;
    cli_args_dispose(&cli->args);
    cli_out_dispose(&cli->out);
    cli_memory_release(cli, NULL);
}
