/* Runs converters and commands, for imports and exports. */
#include "foreign.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../base/alloc.h"
#include "../../base/file.h"
#include "../../work/session.h"
#include "../../zarr/doc/meta.h"
#include "../../zarr/transfer.h"
#include "../dest.h"
#include "../stream/stream_out.h"
#include "../xfer.h"
#include "child.h"
#include "protocol.h"

/* A program that was started, for an import or an export. */

typedef struct brc_foreign_run {
    brc_child *child;
    char *program, *label;
} brc_foreign_run;

static int foreign_ended(const brc_foreign_run *run, const brc_foreign *what, int status,
                         brc_error *err);
static int foreign_start(brc_foreign_run *run, const brc_foreign *what, const char *const *args,
                         int feeds, brc_error *err);
static void foreign_stop(brc_foreign_run *run);

/* ==== foreign out ================================ */

typedef struct foreign_out {
    brc_foreign_run run;
    int gone; /* it no longer reads, and reports the reason itself */
} foreign_out;

/* The write function of brc_tar_sink. */
static int feed_child(void *ctx, const uint8_t *from, size_t len, brc_error *err)
{
    foreign_out *out = ctx;
    BRC_TRY(brc_child_write(out->run.child, from, len, &out->gone, err));
    return out->gone ? brc_fail(err, BRC_EIO, "%s ended too early", out->run.label) : BRC_OK;
}

/* The arguments are: export [--netcdf] --path PATH FILE. */
static int start_export(foreign_out *out, const brc_foreign *what, const char *path,
                        const char *temp, int netcdf, brc_error *err)
{
    const char *args[6] = { "export" };
    size_t n = 1;
    if (netcdf)
        args[n++] = "--netcdf";
    args[n++] = "--path";
    args[n++] = path;
    args[n] = temp;
    return foreign_start(&out->run, what, args, 1, err);
}

static int feed_stream(foreign_out *out, const brc_foreign *what, const char *path, brc_error *err)
{
    brc_tar_sink sink = { out, feed_child };
    brc_tar_out *tar;
    BRC_TRY(brc_tar_out_open(&tar, &sink, what->file, err));
    const int is_hdf5 = strcmp(what->converter, "hdf5") == 0; /* it takes chunks with its filters */
    const brc_stream_out_opts opts = {
        .transport = is_hdf5 ? BRC_PLAIN_DEFLATED : BRC_PLAIN_DECODED
    };
    int rc = brc_stream_export(what->session, path, tar, &opts, err);
    brc_tar_out_free(tar);
    return rc;
}

/* If the program ended before its stream did, the program knows the reason. */
static int settle_export(foreign_out *out, const brc_foreign *what, int rc, brc_error *err)
{
    int status;
    if (rc < 0 && !out->gone)
        return rc;
    BRC_TRY(brc_child_end(out->run.child, 0, &status, err));
    return status != 0 ? foreign_ended(&out->run, what, status, err) : rc;
}

static int run_exporter(const brc_foreign *what, const char *path, const char *temp, int netcdf,
                        brc_error *err)
{
    foreign_out out;
    memset(&out, 0, sizeof(out));
    int rc = start_export(&out, what, path, temp, netcdf, err);
    if (rc == BRC_OK)
        rc = settle_export(&out, what, feed_stream(&out, what, path, err), err);
    foreign_stop(&out.run);
    return rc;
}

/* Replaces the temporary name in a message, which is the only name that the converter and its
 * library know, by the caller's. */
static void name_asked_for(brc_error *err, const brc_dest *dest)
{
    size_t shown = strlen(dest->path), len = strlen(dest->temp);
    char *at = err->message;
    while ((at = strstr(at, dest->temp)) != NULL) {
        at += shown;
        memmove(at, at + len - shown, strlen(at + len - shown) + 1);
    }
}

int brc_foreign_export(const brc_foreign *what, const char *path, int netcdf, brc_error *err)
{
    brc_dest dest;
    BRC_TRY(brc_dest_open(&dest, what->session, what->file, 0, err));
    int rc = run_exporter(what, path, dest.temp, netcdf, err);
    if (rc < 0 && err)
        name_asked_for(err, &dest);
    if (rc == BRC_OK)
        rc = brc_dest_finish(&dest, 0, err);
    brc_dest_close(&dest);
    return rc;
}

/* ==== foreign ================================ */

/* Runs a program that writes a stream, and imports the stream. */

/* Generous: a library may take minutes for one chunk of a file on a slow disk, and a --with command
 * may compute between two chunks. */
#define CONVERTER_SILENCE_MS (10 * 60 * 1000)
#define COMMAND_SILENCE_MS (60 * 60 * 1000)

/* The time in which a program whose stream was cut short may report the reason. */
#define LAST_WORDS_MS (5 * 1000)

struct brc_foreign_in {
    brc_foreign what;
    brc_foreign_run run;
    brc_tar_in *tar;
    brc_stream *stream;
    brc_stream_opts opts;
    int ended; /* it has closed its end of the stream */
};

/* ---- the program --------------------------------------------------------------------- */

static int check_session(void *ctx, brc_error *err)
{
    return brc_task_step(ctx, 0, err);
}

/* Lets others write while no bytes come. */
static int rest_session(void *ctx, brc_error *err)
{
    return brc_store_rest(((breccia *)ctx)->store, 1, err);
}

static int find_converter(brc_foreign_run *run, const brc_foreign *what, brc_error *err)
{
    const breccia *repo = brc_session_repo(what->session);
    const char *folder = repo->libexec ? repo->libexec : brc_libexec_default();
    BRC_TRY(brc_path_join(&run->program, folder, what->converter, err));
    if (access(run->program, X_OK) == 0)
        return BRC_OK;
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%s: the converter for such files is missing, %s: install all of breccia, or "
                    "name the folder of its converters when you open the repository",
                    what->file, run->program);
}

/* `args` is needed only during the start. */
static int foreign_start(brc_foreign_run *run, const brc_foreign *what, const char *const *args,
                         int feeds, brc_error *err)
{
    brc_buf label = BRC_BUF_INIT;
    int rc = BRC_OK;

    if (what->converter)
        BRC_GO(find_converter(run, what, err));
    if (what->converter)
        BRC_GO(brc_buf_printf(&label, err, "the %s converter", what->converter));
    else
        BRC_GO(brc_buf_printf(&label, err, "the command '%.200s'", what->command));
    BRC_GO(brc_buf_take_text(&label, &run->label, err));
    brc_child_spec spec = {
        .command = what->converter ? run->program : what->command,
        .is_shell = what->converter == NULL,
        .args = args,
        .label = run->label,
        .feeds = feeds,
        .silence_ms = what->converter ? CONVERTER_SILENCE_MS : COMMAND_SILENCE_MS,
        .check = check_session,
        .rest = rest_session,
        .ctx = brc_session_repo(what->session),
    };
    rc = brc_child_start(&run->child, &spec, err);
done:
    brc_buf_dispose(&label);
    return rc;
}

/* Ends the program if it runs, and forgets it. */
static void foreign_stop(brc_foreign_run *run)
{
    brc_child_free(run->child);
    free(run->program);
    free(run->label);
    memset(run, 0, sizeof(*run));
}

/* ---- the program's end -------------------------------------------------------------------- */

static const char *words_for_signal(int sig)
{
    switch (sig) {
    case SIGSEGV:
        return "crashed (SIGSEGV)";
    case SIGBUS:
        return "crashed (SIGBUS)";
    case SIGABRT:
        return "crashed (SIGABRT)";
    case SIGFPE:
        return "crashed (SIGFPE)";
    case SIGILL:
        return "crashed (SIGILL)";
    case SIGSYS:
        return "made a system call that its sandbox forbids (SIGSYS)";
    case SIGXCPU:
        return "used more processor time than it may (SIGXCPU)";
    case SIGXFSZ:
        return "wrote a larger file than it may (SIGXFSZ)";
    case SIGKILL:
        return "was killed, perhaps because memory ran out (SIGKILL)";
    default:
        return NULL;
    }
}

/* Makes an error of the exit status, which is not 0, and of the program's last line. */
static int foreign_ended(const brc_foreign_run *run, const brc_foreign *what, int status,
                         brc_error *err)
{
    const char *said = brc_child_last_line(run->child);
    const char *words = status > 128 && status < 128 + 65 ? words_for_signal(status - 128) : NULL;
    int code = what->converter ? brc_code_of_status(status) : 0;

    if (code < 0 && *said)
        return brc_fail(err, code, "%s", said);
    if (words)
        return brc_fail(err, BRC_EINVAL, "%s: %s %s%s", what->file, run->label, words,
                        what->converter ? ": the file may be damaged" : "");
    return brc_fail(err, BRC_EINVAL, "%s: %s failed with exit status %d%s%s", what->file,
                    run->label, status, *said ? ": " : "", said);
}

/* ---- an import ----------------------------------------------------------------------- */

static int read_stream(void *ctx, uint8_t *to, size_t cap, size_t *n, brc_error *err)
{
    brc_foreign_in *in = ctx;
    BRC_TRY(brc_child_read(in->run.child, to, cap, n, err));
    in->ended = *n == 0;
    return BRC_OK;
}

/* The arguments are: import [--exclude PATTERN]... [--skip-unsupported] [--external]
 * [--hdf5-plugins FOLDERS] FILE; a command gets only FILE. */
static int start_import(brc_foreign_in *in, brc_error *err)
{
    const brc_foreign *what = &in->what;
    const char **args;
    size_t n = 0;
    BRC_TRY(brc_new_array((void **)&args, 7 + 2 * what->opts->nexclude, sizeof(*args), err));
    if (what->converter) {
        args[n++] = "import";
        for (size_t i = 0; i < what->opts->nexclude; i++) {
            args[n++] = "--exclude";
            args[n++] = what->opts->exclude[i];
        }
        if (what->opts->flags & BRC_XFER_SKIP_UNSUPPORTED)
            args[n++] = "--skip-unsupported";
        if (what->opts->flags & BRC_XFER_EXTERNAL)
            args[n++] = "--external";
        if (what->opts->hdf5_plugins) {
            args[n++] = "--hdf5-plugins";
            args[n++] = what->opts->hdf5_plugins;
        }
    }
    args[n] = what->file;
    int rc = foreign_start(&in->run, what, args, 0, err);
    free(args);
    return rc;
}

/* Ends the program at once. */
static void foreign_free(brc_foreign_in *in)
{
    if (!in)
        return;
    brc_stream_free(in->stream);
    brc_tar_in_free(in->tar);
    foreign_stop(&in->run);
    free(in);
}

static int open_import(brc_foreign_in *in, brc_error *err)
{
    brc_tar_source source = { in, read_stream };
    in->opts = (brc_stream_opts){ .xfer = in->what.opts,
                                  .file = in->what.converter ? in->what.file : NULL,
                                  .parts = in->what.parts,
                                  .name = in->what.file };
    BRC_TRY(start_import(in, err));
    BRC_TRY(brc_tar_in_open(&in->tar, &source, in->what.file, err));
    return brc_stream_open(&in->stream, in->what.session, in->tar, &in->opts, err);
}

int brc_foreign_open(brc_foreign_in **out, const brc_foreign *what, brc_error *err)
{
    brc_foreign_in *in;
    *out = NULL;
    BRC_TRY(brc_new((void **)&in, sizeof(*in), err));
    in->what = *what;
    int rc = open_import(in, err);
    if (rc < 0) {
        foreign_free(in);
        return rc;
    }
    *out = in;
    return BRC_OK;
}

brc_stream *brc_foreign_stream(const brc_foreign_in *in)
{
    return in->stream;
}

/* Returns the text after the word on the line; NULL: the line does not begin with the word. */
static const char *behind(const char *line, const char *word)
{
    size_t len = strlen(word);
    return strncmp(line, word, len) == 0 ? line + len : NULL;
}

static int note_line(const brc_foreign_in *in, const char *line, size_t len, brc_error *err)
{
    const brc_xfer_opts *opts = in->what.opts;
    const char *excluded = behind(line, BRC_SAYS_EXCLUDED), *part = behind(line, BRC_SAYS_LEFT_OUT);
    char *end;
    if (excluded && *excluded >= '0' && *excluded <= '9') {
        unsigned long long i = strtoull(excluded, &end, 10);
        if (*end == '\n' && i < opts->nexclude && opts->excluded)
            opts->excluded[i] = 1;
    } else if (part && in->what.parts && *part == '{') {
        return brc_parts_add_json(in->what.parts, part, len - (size_t)(part - line), err);
    } else if (part && in->what.parts && *part >= '0' && *part <= '9') {
        brc_parts_add_more(in->what.parts, strtoull(part, &end, 10));
    }
    return BRC_OK;
}

/* Reads a converter's lines about the file, before the last one: see protocol.h. */
static int note_lines(const brc_foreign_in *in, brc_error *err)
{
    const char *line = brc_child_said(in->run.child);
    while (in->what.converter && *line) {
        size_t len = strcspn(line, "\n");
        if (line[len] == '\n')
            BRC_TRY(note_line(in, line, len, err));
        line += len + (line[len] == '\n');
    }
    return BRC_OK;
}

/* If the program or its stream has ended, the exit status counts: the program's message is better
 * than "truncated". */
static int settle_import(brc_foreign_in *in, int rc, brc_error *err)
{
    int status;
    if (rc < 0 && !in->ended)
        return rc;
    brc_error own = BRC_ERROR_INIT;
    int ended = brc_child_end(in->run.child, rc < 0 ? LAST_WORDS_MS : 0, &status, &own);
    if (ended < 0 && rc < 0)
        return rc;
    if (ended == BRC_OK)
        ended = note_lines(in, &own);
    if (ended == BRC_OK && status != 0)
        ended = foreign_ended(&in->run, &in->what, status, &own);
    if (ended < 0 && err)
        brc_error_copy(err, &own);
    return ended < 0 ? ended : rc;
}

int brc_foreign_close(brc_foreign_in *in, int rc, brc_error *err)
{
    rc = settle_import(in, rc, err);
    foreign_free(in);
    return rc;
}

int brc_foreign_import(const brc_foreign *what, const char *path, brc_error *err)
{
    brc_foreign_in *in;
    BRC_TRY(brc_foreign_open(&in, what, err));
    int rc = brc_stream_import(in->stream, path, err);
    rc = brc_foreign_close(in, rc, err);
    if (rc == BRC_ECORRUPT && what->converter) { /* the file's chunks, which are decoded here */
        if (err)
            brc_error_recode(err, BRC_EINVAL);
        return BRC_EINVAL;
    }
    return rc;
}

int brc_foreign_bytes(uint64_t *bytes, const brc_foreign *what, brc_error *err)
{
    brc_foreign_in *in;
    BRC_TRY(brc_foreign_open(&in, what, err));
    int rc = brc_stream_bytes(bytes, in->stream, err);
    if (rc < 0)
        rc = brc_foreign_close(in, rc, err);
    else
        foreign_free(in);
    return rc;
}

int brc_foreign_is_group(int *is, brc_session *s, const brc_source *source, brc_error *err)
{
    (void)s;
    (void)source;
    (void)err;
    *is = 1;
    return BRC_OK;
}
