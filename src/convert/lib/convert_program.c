/* Runs a converter: arguments, limits, and the calls that drivers make. */
#include "convert_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../base/alloc.h"
#include "../../base/node_path.h"
#include "../../base/pattern.h"
#include "../../nd/dtype.h"
#include "../../nd/dtype_text.h"
#include "../../xfer/foreign/protocol.h"
#include "sandbox.h"

/* ==== convert asks ================================ */

const brc_registry *brc_convert_registry(const brc_convert *c)
{
    return c->registry;
}

const char *brc_convert_file(const brc_convert *c)
{
    return c->file;
}

/* Where chunks stay in the file, a reference saves their bytes in the repository, for about 80. */
uint64_t brc_convert_refers_from(const brc_convert *c)
{
    return c->is_external ? 256 : 4096;
}

const char *brc_convert_plugins(const brc_convert *c)
{
    return c->plugins ? c->plugins : "";
}

int brc_convert_real_path(char **out, const brc_convert *c, brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    int rc;
    if (!*c->door.real)
        return brc_dup(out, c->file, err);
    BRC_GO(brc_buf_text(&path, c->door.real, err));
    BRC_GO(brc_buf_text(&path, c->door.file + strlen(c->door.folder), err));
    rc = brc_buf_take_text(&path, out, err);
done:
    brc_buf_dispose(&path);
    return rc;
}

int brc_convert_reach(const brc_convert *c, const char *path, uint64_t *size)
{
    struct stat st;
    int fd = c->has_door ? brc_door_ask(path, O_RDONLY) : brc_door_open(&c->door, path);
    if (fd < 0)
        return fd;
    int code = fstat(fd, &st) < 0 ? -errno : 0;
    *size = code == 0 ? (uint64_t)st.st_size : 0;
    close(fd);
    return code;
}

int brc_convert_phase(const brc_convert *c)
{
    return c->phase;
}

void brc_convert_use_names(brc_convert *c, int names)
{
    c->names = names;
}

int brc_convert_node_path(char **out, const brc_convert *c, const char *path, const char *name,
                          brc_error *err)
{
    brc_buf own = BRC_BUF_INIT;
    int rc;
    *out = NULL;
    BRC_GO(brc_name_escape(&own, name, strlen(name), c->names, err));
    BRC_GO(brc_buf_terminate(&own, err));
    rc = brc_node_join(out, path, (const char *)own.data, err);
done:
    brc_buf_dispose(&own);
    return rc;
}

int brc_convert_place_check(const char *label, const char *node, brc_error *err)
{
    size_t names = 0;
    for (const char *at = node; *at; at++)
        names += *at == '/';
    if (names > BRC_DEPTH_MAX)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL, "%.200s is more than %d names deep", label,
                               BRC_DEPTH_MAX);
    if (strlen(node) > BRC_PATH_MAX)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                               "the path %.200s... has more than %d bytes", label, BRC_PATH_MAX);
    return BRC_OK;
}

const char *brc_convert_path(const brc_convert *c, const char *label)
{
    return label + strlen(c->file) + strlen(": ");
}

/* ---- what stays out ------------------------------------------------------------------ */

/* Reports that a pattern of --exclude has matched; once, however often it matches. */
static int meet_exclude(brc_convert *c, size_t i)
{
    if (!c->excluded[i])
        (void)fprintf(stderr, BRC_SAYS_EXCLUDED "%zu\n", i);
    c->excluded[i] = 1;
    return 1;
}

int brc_convert_is_excluded(brc_convert *c, const char *path)
{
    int is = c->phase == BRC_CONVERT_CHUNKS && brc_parts_have(&c->parts, path);
    for (size_t i = 0; i < c->nexclude; i++)
        if (brc_pattern_has_node(c->exclude[i], path, strlen(path)))
            is = meet_exclude(c, i);
    return is;
}

int brc_convert_lacks_attribute(brc_convert *c, const char *path, const char *name)
{
    int does = 0;
    for (size_t i = 0; i < c->nexclude; i++)
        if (brc_pattern_has_attribute(c->exclude[i], path, strlen(path), name))
            does = meet_exclude(c, i);
    return does;
}

/* ---- what cannot be kept ------------------------------------------------------------- */

static void say_part(const brc_convert *c, size_t listed)
{
    const brc_parts *parts = &c->parts;
    if (parts->listed > listed)
        (void)fprintf(stderr, BRC_SAYS_LEFT_OUT "%.*s\n", (int)(parts->json.len - parts->last),
                      (const char *)parts->json.data + parts->last);
}

/* Reports on standard error how many parts were not listed there. */
static void convert_tell_more(const brc_convert *c)
{
    if (c->parts.n > c->parts.listed)
        (void)fprintf(stderr, BRC_SAYS_LEFT_OUT "%llu\n",
                      (unsigned long long)(c->parts.n - c->parts.listed));
}

/* In the second round attributes fail as in the first. A node whose document is written cannot be
 * left out any more: then the import fails, unless it fails anyway. */
int brc_convert_settle(brc_convert *c, int rc, const char *path, const char *attribute,
                       brc_error *err)
{
    size_t listed = c->parts.listed;
    int is_late = c->phase == BRC_CONVERT_CHUNKS;

    if (rc != BRC_EUNSUPPORTED || (is_late && !attribute && c->skips))
        return rc;
    if (!is_late || !attribute)
        BRC_TRY(brc_parts_add(&c->parts, path, attribute, err, err));
    say_part(c, listed);
    return 1;
}

size_t brc_convert_nodes(const brc_convert *c)
{
    return c->nnodes;
}

const brc_node_out *brc_convert_node(const brc_convert *c, size_t i)
{
    return &c->nodes[i];
}

/* ==== convert attr ================================ */

/*
 * Converts attributes between JSON and the typed lists that NetCDF and HDF5 have.
 *
 * A list has one kind: texts, booleans or numbers. Numbers are integers if all of them are,
 * otherwise doubles. Any other value is kept as JSON text.
 */

/* ---- to JSON -------------------------------- */

static brc_json *literal(const char *text)
{
    brc_json *out;
    return brc_json_parse(&out, text, strlen(text), 0, NULL) < 0 ? NULL : out;
}

brc_json *brc_attr_int(int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    return literal(text);
}

brc_json *brc_attr_uint(uint64_t value)
{
    return brc_json_new_uint(value);
}

brc_json *brc_attr_float(double value)
{
    char text[BRC_FLOAT_TEXT];
    uint64_t bits;
    uint8_t element[8];

    memcpy(&bits, &value, sizeof(bits));
    brc_put_u64le(element, bits);
    brc_float_text(text, element, sizeof(element));
    return brc_json_new_number(text);
}

/* Reads the bytes as Latin-1: each byte is a code point, which takes one or two bytes of UTF-8. */
static int append_latin1(brc_buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint8_t c = (uint8_t)text[i];
        if (c >= 0x80)
            BRC_TRY(brc_buf_byte(out, (uint8_t)(0xC0 | c >> 6), NULL));
        BRC_TRY(brc_buf_byte(out, c < 0x80 ? c : (uint8_t)(0x80 | (c & 0x3F)), NULL));
    }
    return BRC_OK;
}

brc_json *brc_attr_text(const char *text, size_t len)
{
    brc_buf utf8 = BRC_BUF_INIT;
    brc_json *out = NULL;
    int rc;

    len = strnlen(text, len);
    if (brc_utf8_valid(text, len))
        rc = brc_buf_append(&utf8, text, len, NULL);
    else
        rc = append_latin1(&utf8, text, len);
    if (rc == BRC_OK && brc_buf_terminate(&utf8, NULL) == BRC_OK)
        out = brc_json_new_string((const char *)utf8.data);
    brc_buf_dispose(&utf8);
    return out;
}

int brc_attr_fill_is_packed(const char *dtype)
{
    return dtype && (strcmp(dtype, "float16") == 0 || strcmp(dtype, "float32") == 0 ||
                     strcmp(dtype, "float64") == 0);
}

brc_json *brc_attr_fill(double value)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *out = NULL;
    uint64_t bits;
    uint8_t le[8];

    memcpy(&bits, &value, sizeof(bits));
    brc_put_u64le(le, bits);
    if (brc_base64_write(&text, le, sizeof(le), NULL) == BRC_OK &&
        brc_buf_terminate(&text, NULL) == BRC_OK)
        out = brc_json_new_string((const char *)text.data);
    brc_buf_dispose(&text);
    return out;
}

int brc_attr_fill_value(const brc_json *value, double *out)
{
    const char *text;
    brc_buf bytes = BRC_BUF_INIT;
    int found = brc_json_text(value, &text) && strlen(text) == 12 && text[11] == '=' &&
                brc_base64_read(&bytes, text, NULL) == BRC_OK && bytes.len == sizeof(*out);
    if (found) {
        uint64_t bits = brc_get_u64le(bytes.data);
        memcpy(out, &bits, sizeof(bits));
    }
    brc_buf_dispose(&bytes);
    return found;
}

/* ---- from JSON -------------------------------- */

/* Returns the kind of a single value; BRC_ATTR_JSON if a file cannot hold the value. */
static int kind_of(const brc_json *value)
{
    const char *text;
    int64_t i;
    uint64_t u;

    switch (brc_json_kind(value)) {
    case BRC_JSON_STRING:
        return brc_json_text(value, &text) ? BRC_ATTR_TEXT : BRC_ATTR_JSON;
    case BRC_JSON_BOOL:
        return BRC_ATTR_BOOL;
    case BRC_JSON_NUMBER:
        if (brc_json_int(value, INT64_MIN, INT64_MAX, &i))
            return BRC_ATTR_INT;
        return brc_json_uint(value, UINT64_MAX, &u) ? BRC_ATTR_UINT : BRC_ATTR_FLOAT;
    default:
        return BRC_ATTR_JSON;
    }
}

static int is_number(int kind)
{
    return kind == BRC_ATTR_INT || kind == BRC_ATTR_UINT || kind == BRC_ATTR_FLOAT;
}

/* Returns the kind that holds values of both kinds. Negative integers and integers above INT64_MAX
 * have only doubles in common, which round: JSON text is exact. */
static int joined_kind(int a, int b, int negative)
{
    if (a == b)
        return a;
    if (!is_number(a) || !is_number(b))
        return BRC_ATTR_JSON;
    if (a == BRC_ATTR_FLOAT || b == BRC_ATTR_FLOAT)
        return BRC_ATTR_FLOAT;
    return negative ? BRC_ATTR_JSON : BRC_ATTR_UINT;
}

static int list_kind(const brc_json *list)
{
    const brc_json *item = brc_json_first(list);
    int64_t below;
    int negative = 0;

    if (!item)
        return BRC_ATTR_JSON;
    int kind = kind_of(item);
    for (; item; item = brc_json_next(item))
        negative |= brc_json_int(item, INT64_MIN, -1, &below);
    for (item = brc_json_first(list); item; item = brc_json_next(item))
        kind = joined_kind(kind, kind_of(item), negative);
    return kind;
}

/* Takes the value's JSON text as the attribute's only text. */
static int take_json(brc_attr *out, const brc_json *value, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_json_write(&text, value, 0, err));
    BRC_GO(brc_buf_take_text(&text, &out->texts[0], err));
done:
    brc_buf_dispose(&text);
    return rc;
}

static int take_value(brc_attr *out, size_t i, const brc_json *value, brc_error *err)
{
    const char *text;
    int truth = 0;
    switch (out->kind) {
    case BRC_ATTR_TEXT:
        if (!brc_json_text(value, &text))
            return brc_fail(err, BRC_EINTERNAL, "an attribute with U+0000 taken for a text");
        return brc_dup(&out->texts[i], text, err);
    case BRC_ATTR_BOOL:
        brc_json_bool(value, &truth);
        out->ints[i] = truth;
        return BRC_OK;
    case BRC_ATTR_INT:
        brc_json_int(value, INT64_MIN, INT64_MAX, &out->ints[i]);
        return BRC_OK;
    case BRC_ATTR_UINT:
        brc_json_uint(value, UINT64_MAX, &out->uints[i]);
        return BRC_OK;
    case BRC_ATTR_FLOAT:
        brc_json_double(value, &out->floats[i]);
        return BRC_OK;
    default:
        return take_json(out, value, err);
    }
}

static int make_room(brc_attr *out, brc_error *err)
{
    if (out->kind == BRC_ATTR_TEXT || out->kind == BRC_ATTR_JSON)
        return brc_new_array((void **)&out->texts, out->n, sizeof(*out->texts), err);
    if (out->kind == BRC_ATTR_UINT)
        return brc_new_array((void **)&out->uints, out->n, sizeof(*out->uints), err);
    if (out->kind == BRC_ATTR_FLOAT)
        return brc_new_array((void **)&out->floats, out->n, sizeof(*out->floats), err);
    return brc_new_array((void **)&out->ints, out->n, sizeof(*out->ints), err);
}

int brc_attr_open(brc_attr *out, const brc_json *value, brc_error *err)
{
    int is_list = brc_json_kind(value) == BRC_JSON_ARRAY, rc;

    memset(out, 0, sizeof(*out));
    out->kind = is_list ? list_kind(value) : kind_of(value);
    out->list = is_list && out->kind != BRC_ATTR_JSON;
    out->n = out->list ? brc_json_count(value) : 1;
    BRC_GO(make_room(out, err));
    if (!out->list)
        BRC_GO(take_value(out, 0, value, err));
    const brc_json *item = out->list ? brc_json_first(value) : NULL;
    for (size_t i = 0; item; item = brc_json_next(item), i++)
        BRC_GO(take_value(out, i, item, err));
done:
    if (rc < 0)
        brc_attr_close(out);
    return rc;
}

int brc_attr_check_count(uint64_t n, const char *label, brc_error *err)
{
    if (n <= BRC_ATTR_MOST)
        return BRC_OK;
    return brc_part_refuse(err, BRC_PART_SIZE, "make an array of them",
                           "%s has %llu attributes, and at most %d can be imported", label,
                           (unsigned long long)n, BRC_ATTR_MOST);
}

void brc_attr_close(brc_attr *attr)
{
    for (size_t i = 0; attr->texts && i < attr->n; i++)
        free(attr->texts[i]);
    free(attr->texts);
    free(attr->ints);
    free(attr->uints);
    free(attr->floats);
    memset(attr, 0, sizeof(*attr));
}

/* ---- notes -------------------------------- */

int brc_note_numbers(brc_json *note, const char *member, const uint64_t *numbers, int n,
                     brc_error *err)
{
    brc_json *list = brc_json_new_array();
    int rc = list ? BRC_OK : brc_nomem(err);
    for (int i = 0; i < n && rc == BRC_OK; i++)
        rc = brc_json_push(
            list, numbers[i] == UINT64_MAX ? brc_json_new_null() : brc_json_new_uint(numbers[i]),
            err);
    if (rc == BRC_OK)
        return brc_json_set(note, member, list, err);
    brc_json_free(list);
    return rc;
}

int brc_note_texts(brc_json *note, const char *member, char *const *texts, int n, brc_error *err)
{
    brc_json *list = brc_json_new_array();
    int rc = list ? BRC_OK : brc_nomem(err);
    for (int i = 0; i < n && rc == BRC_OK; i++)
        rc = brc_json_push(list, texts[i] ? brc_json_new_string(texts[i]) : brc_json_new_null(),
                           err);
    if (rc == BRC_OK)
        return brc_json_set(note, member, list, err);
    brc_json_free(list);
    return rc;
}

/* ==== convert program ================================ */

/* The program of a converter: its arguments and its exit status. */

#define STREAM_NAME "the stream" /* for messages */
#define PLUGIN_FOLDER "/usr/local/hdf5/lib/plugin" /* where libhdf5 looks by default */

typedef struct program_args {
    int is_export, netcdf;
    int ended; /* exit status of the process in the sandbox, as from waitpid() */
} program_args;

/* ---- arguments -------------------------------- */

static int wrong_arguments(const brc_driver *driver, brc_error *err)
{
    return brc_fail(err, BRC_EINVAL,
                    "this converts %s: call it with import [--exclude PATTERN]... "
                    "[--skip-unsupported] [--external] [--hdf5-plugins FOLDERS] FILE, or with "
                    "export %s[--path PATH] FILE",
                    driver->format, driver->netcdf ? "[--netcdf] " : "");
}

static int read_arguments(brc_convert *c, program_args *args, int argc, char **argv,
                          const brc_driver *driver, brc_error *err)
{
    if (argc < 3)
        return wrong_arguments(driver, err);
    args->is_export = strcmp(argv[1], "export") == 0;
    if (!args->is_export && strcmp(argv[1], "import") != 0)
        return wrong_arguments(driver, err);
    BRC_TRY(brc_new_array((void **)&c->exclude, (size_t)argc, sizeof(*c->exclude), err));
    BRC_TRY(brc_new_array((void **)&c->excluded, (size_t)argc, 1, err));
    for (int i = 2; i < argc - 1; i++) {
        int has_value = i + 1 < argc - 1;
        if (!args->is_export && has_value && strcmp(argv[i], "--exclude") == 0)
            c->exclude[c->nexclude++] = argv[++i];
        else if (!args->is_export && strcmp(argv[i], "--skip-unsupported") == 0)
            c->skips = 1;
        else if (!args->is_export && strcmp(argv[i], "--external") == 0)
            c->is_external = 1;
        else if (!args->is_export && has_value && strcmp(argv[i], "--hdf5-plugins") == 0)
            c->plugins = argv[++i];
        else if (args->is_export && has_value && strcmp(argv[i], "--path") == 0)
            c->path = argv[++i];
        else if (args->is_export && driver->netcdf && strcmp(argv[i], "--netcdf") == 0)
            args->netcdf = 1;
        else
            return wrong_arguments(driver, err);
    }
    c->file = argv[argc - 1];
    return BRC_OK;
}

/* ---- one run -------------------------------- */

/* Opens the stream. This must happen before the process enters the sandbox. */
static int open_run(brc_convert *c, const program_args *args, brc_error *err)
{
    BRC_TRY(brc_registry_new(&c->registry, err));
    BRC_TRY(brc_scratch_new(&c->scratch, err));
    if (args->is_export && brc_spool_open(&c->spool, c->file, NULL) < 0)
        c->spool.fd = -1; /* a format that needs the spool reports this */
    if (args->is_export)
        return brc_tar_in_open_fd(&c->in, STDIN_FILENO, STREAM_NAME, err);
    return brc_tar_out_open_fd(&c->out, STDOUT_FILENO, STREAM_NAME, err);
}

static void close_run(brc_convert *c)
{
    brc_convert_nodes_free(c);
    brc_tar_in_free(c->in);
    brc_spool_close(&c->spool);
    brc_tar_out_free(c->out);
    brc_scratch_free(c->scratch);
    brc_registry_free(c->registry);
    free(c->exclude);
    free(c->excluded);
    brc_parts_dispose(&c->parts);
}

/* Returns 1 in the process that only opened files for the process in the sandbox. */
static int run_converter(brc_convert *c, program_args *args, const brc_driver *driver,
                         brc_error *err)
{
    BRC_TRY(brc_door_init(&c->door, c->file, args->is_export, err));
    c->has_door = brc_sandbox_has_door();
    if (c->has_door) {
        int rc = brc_door_keep(&c->door, &args->ended, err);
        if (rc != 0)
            return rc;
    }
    BRC_TRY(open_run(c, args, err));
    if (driver->prepare)
        BRC_TRY(driver->prepare(c->plugins, err));
    BRC_TRY(brc_watch_start(&c->watch, c->file, BRC_WATCH_SECONDS, err));
    BRC_TRY(brc_sandbox_enter(c->file, args->is_export, err));
    return args->is_export ? brc_convert_export(c, driver, args->netcdf, err)
                           : brc_convert_import(c, driver, err);
}

/* Returns the exit status of the other process, or ends by the same signal. */
static int end_as(int ended)
{
    if (!WIFSIGNALED(ended))
        return WEXITSTATUS(ended);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    (void)signal(WTERMSIG(ended), SIG_DFL);
    (void)kill(getpid(), WTERMSIG(ended));
    return 128 + WTERMSIG(ended);
}

int brc_convert_main(int argc, char **argv, const brc_driver *driver)
{
    brc_convert c = { .path = "/", .names = driver->names, .parts = BRC_PARTS_INIT,
                      .spool = BRC_SPOOL_INIT };
    brc_error err = BRC_ERROR_INIT;

    program_args args = { 0 };
    c.plugins = getenv("HDF5_PLUGIN_PATH");
    if (!c.plugins || !*c.plugins)
        c.plugins = PLUGIN_FOLDER;
    int rc = read_arguments(&c, &args, argc, argv, driver, &err);
    if (rc == BRC_OK)
        rc = run_converter(&c, &args, driver, &err);
    convert_tell_more(&c);
    close_run(&c);
    if (rc == 1)
        return end_as(args.ended);
    if (rc < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return brc_status_of_code(rc);
    }
    return BRC_STATUS_GOOD;
}
