/*
 * print_array.c - elements as JSON, CSV and raw bytes, run by run, so that
 * memory stays bounded whatever the selection.
 */
#include "print_array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../cli.h"
#include "../decode.h"
#include "../scalar.h"

/* ==== stream array ================================ */

enum { CHECKED_EVERY = 1024 };

/* The shape of the result, without the axes that were indexed by an integer. */
struct seen_shape {
    int ndim;
    uint64_t dims[BRC_MAX_NDIM];
};

struct streamed {
    struct cli *cli;
    const brc_array_info *info;
    int (*each)(struct streamed *out, const uint8_t *element);
    struct seen_shape shape;
    uint64_t next; /* the number of the next element                          */
    brc_buf text;  /* of an element                                           */
};

/* Sets *out to the text of an element, decoded with --decode, which lasts until the next call. */
static int decoded_text(struct cli *cli, const uint8_t *element, int form, brc_buf *text,
                        char decoded[CLI_MOMENT_CAP], const char **out, size_t *len)
{
    if (cli->decoder) {
        CLI_TRY(cli_decode_text(cli, cli->decoder, element, form, decoded));
        *out = decoded;
        *len = strlen(decoded);
        return BRC_OK;
    }
    text->len = 0;
    CLI_TRY(brc_element_format(text, cli->array, element, form, &cli->err));
    *out = (const char *)text->data;
    *len = text->len;
    return BRC_OK;
}

/* Fails with an error about `what` on a machine whose elements in memory are not canonical
 * bytes. */
static int cli_check_raw(struct cli *cli, const char *what)
{
    const uint16_t probe = 1;

    if (*(const uint8_t *)&probe != 1)
        return cli_fail(cli, BRC_EUNSUPPORTED, "%s needs a little-endian machine", what);
    return BRC_OK;
}

/* Returns the data type of the elements that are shown. */
static const char *shown_dtype(struct cli *cli)
{
    return cli->decoder ? cli_decoder_dtype(cli->decoder) : brc_array_describe(cli->array)->dtype;
}

static struct seen_shape shape_seen(const brc_sel *sel)
{
    struct seen_shape shape = { 0, { 0 } };

    for (int i = 0; i < sel->ndim; i++)
        if (!(sel->drop >> i & 1))
            shape.dims[shape.ndim++] = sel->count[i];
    return shape;
}

/* Text takes long to make, so the function checks now and then whether the output still works. */
static int put_text_run(void *ctx, const void *data, size_t len)
{
    struct streamed *out = ctx;
    const uint8_t *at = data, *end = at + len;

    for (; at < end; at += cli_element_len(out->info, at)) {
        if (out->next % CHECKED_EVERY == 0)
            CLI_TRY(cli_out_check(out->cli));
        CLI_TRY(out->each(out, at));
    }
    return cli_out_check(out->cli);
}

/* Calls `each` for one element after the other. */
static int stream_text(struct cli *cli, const brc_sel *sel,
                       int (*each)(struct streamed *out, const uint8_t *element))
{
    struct streamed out = { cli, brc_array_describe(cli->array), each, shape_seen(sel), 0,
                            BRC_BUF_INIT };
    brc_error err = BRC_ERROR_INIT;
    int rc = brc_array_stream(cli->array, sel, 0, put_text_run, &out, &err);

    brc_buf_dispose(&out.text);
    return cli_called(cli, rc, &err);
}

/* ---- raw, npy -------------------------------- */

/* Writes the elements of a run as they are, or decoded. */
static int put_raw_run(void *ctx, const void *data, size_t len)
{
    struct cli *cli = ctx;
    const uint8_t *at = data, *end = at + len;
    uint8_t decoded[16];

    if (!cli->decoder)
        cli_put(cli, data, len);
    for (; cli->decoder && at < end; at += cli->decoder->item) {
        int n = cli_decode_bytes(cli, cli->decoder, at, decoded);

        if (n < 0)
            return n;
        cli_put(cli, (const char *)decoded, (size_t)n);
    }
    return cli_out_check(cli);
}

/* The library writes a regular file by several threads. A pipe may block, where a signal must end
 * the command. */
static int stream_runs(struct cli *cli, const brc_sel *sel, uint32_t flags)
{
    brc_error err = BRC_ERROR_INIT;
    struct stat status;

    if (!cli->decoder && !cli->out.hold && fstat(cli->out.fd, &status) == 0 &&
        S_ISREG(status.st_mode)) {
        CLI_TRY(cli_out_flush(cli));
        return cli_called(cli, brc_array_save(cli->array, sel, flags, cli->out.fd, cli->out.name,
                                              &err),
                          &err);
    }
    return cli_called(cli, brc_array_stream(cli->array, sel, flags, put_raw_run, cli, &err), &err);
}

int cli_stream_raw(struct cli *cli, const brc_sel *sel)
{
    CLI_TRY(cli_check_raw(cli, "--format raw"));
    return stream_runs(cli, sel, 0);
}

/* Writes the header of a .npy file of decoded elements. */
static void put_npy_header(struct cli *cli, const brc_sel *sel)
{
    enum { BEFORE = 10, ALIGNED = 64 };
    struct seen_shape shape = shape_seen(sel);
    const char *dims = cli_dims_text(cli, shape.dims, shape.ndim);
    const char *dict = cli_text(cli, "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }",
                                cli_decoder_descr(cli->decoder), dims,
                                shape.ndim == 1 ? "," : "");
    size_t len = (strlen(dict) + 1 + BEFORE + ALIGNED - 1) / ALIGNED * ALIGNED - BEFORE;
    const char version[] = { 1, 0, (char)(len & 255), (char)(len >> 8) };

    cli_puts(cli, "\x93NUMPY");
    cli_put(cli, version, sizeof(version));
    cli_printf(cli, "%-*s\n", (int)len - 1, dict);
}

int cli_stream_npy(struct cli *cli, const brc_sel *sel)
{
    if (!cli->decoder)
        return stream_runs(cli, sel, BRC_STREAM_NPY);
    CLI_TRY(cli_check_raw(cli, "--decode --format npy"));
    put_npy_header(cli, sel);
    return stream_runs(cli, sel, 0);
}

/* ---- CSV -------------------------------- */

void cli_put_csv_field(struct cli *cli, const char *text, size_t len)
{
    if (len == 0)
        return;
    if (cli->out.terminal && cli_has_steering(text, len)) {
        text = cli_escaped_bytes(cli, text, len);
        len = strlen(text);
    }
    if (!memchr(text, ',', len) && !memchr(text, '"', len) && !memchr(text, '\n', len) &&
        !memchr(text, '\r', len)) {
        cli_put(cli, text, len);
        return;
    }
    cli_puts(cli, "\"");
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"')
            cli_puts(cli, "\"");
        cli_put(cli, text + i, 1);
    }
    cli_puts(cli, "\"");
}

static int put_csv_element(struct streamed *out, const uint8_t *element)
{
    struct cli *cli = out->cli;
    uint64_t line = out->shape.ndim ? out->shape.dims[out->shape.ndim - 1] : 1;
    char decoded[CLI_MOMENT_CAP];
    const char *text;
    size_t len;

    CLI_TRY(decoded_text(cli, element, BRC_ELEMENT_TEXT, &out->text, decoded, &text, &len));
    cli_put_csv_field(cli, text, len);
    cli_put(cli, ++out->next % line == 0 ? "\n" : ",", 1);
    return BRC_OK;
}

int cli_stream_csv(struct cli *cli, const brc_sel *sel)
{
    return stream_text(cli, sel, put_csv_element);
}

/* ---- JSON -------------------------------- */

/* Returns how many lists begin, or end, before element number `at`. */
static int lists_at(const struct seen_shape *shape, uint64_t at)
{
    uint64_t block = 1;
    int lists = 0;

    for (int i = shape->ndim - 1; i >= 0; i--) {
        block *= shape->dims[i];
        if (at % block != 0)
            break;
        lists++;
    }
    return lists;
}

static int put_json_element(struct streamed *out, const uint8_t *element)
{
    struct cli *cli = out->cli;
    char decoded[CLI_MOMENT_CAP];
    const char *text;
    size_t len;

    for (int lists = lists_at(&out->shape, out->next); lists > 0; lists--)
        cli_json_open_line(cli, '[');
    CLI_TRY(decoded_text(cli, element, BRC_ELEMENT_JSON, &out->text, decoded, &text, &len));
    cli_json_token(cli, text, len);
    for (int lists = lists_at(&out->shape, ++out->next); lists > 0; lists--)
        cli_json_close(cli, '[');
    return BRC_OK;
}

/* Writes lists without elements: [], [[], []]. */
static void put_empty_lists(struct cli *cli, const struct seen_shape *shape, int axis)
{
    cli_json_open_line(cli, '[');
    if (axis + 1 < shape->ndim)
        for (uint64_t i = 0; i < shape->dims[axis] && !cli->out.failure && !cli_signal(); i++)
            put_empty_lists(cli, shape, axis + 1);
    cli_json_close(cli, '[');
}

int cli_stream_json(struct cli *cli, const brc_sel *sel)
{
    const char *dtype = shown_dtype(cli);
    const char *calendar = cli->decoder ? cli_decoder_calendar(cli->decoder) : NULL;
    struct seen_shape shape = shape_seen(sel);

    cli_json_open(cli, '{');
    if (cli->json && cli->out.fd == STDOUT_FILENO)
        cli_json_schema(cli);
    cli_json_key(cli, "shape");
    cli_json_dims(cli, shape.dims, shape.ndim);
    cli_json_key(cli, "data_type");
    cli_json_dtype(cli, dtype);
    if (calendar) {
        cli_json_key(cli, "calendar");
        cli_json_string(cli, calendar);
    }
    cli_json_key(cli, "data");
    if (brc_sel_count(sel) == 0)
        put_empty_lists(cli, &shape, 0);
    else
        CLI_TRY(stream_text(cli, sel, put_json_element));
    cli_json_close(cli, '{');
    return cli_out_check(cli);
}

/* ==== raw elements from standard input =================== */

enum { BUFFER = 64 << 10, COUNTED_BEYOND = 64 << 20 };

struct input {
    struct cli *cli;
    uint64_t want, done; /* bytes of the selection (0: not known), and bytes so far */
    char *buffer;        /* for requests that are smaller than the buffer */
    size_t at, filled;
};

/* Reads `len` bytes, or fewer if the input ends. */
static int read_input(struct cli *cli, char *data, size_t len, size_t *got)
{
    *got = 0;
    while (*got < len) {
        ssize_t n = read(STDIN_FILENO, data + *got, len - *got);

        if (n == 0)
            break;
        if (n < 0 && errno == EINTR && !cli_signal())
            continue;
        if (n < 0)
            return cli_fail_errno(cli, errno, "standard input");
        *got += (size_t)n;
        cli_progress_read(cli, (size_t)n);
    }
    return BRC_OK;
}

/* The library asks for elements of variable length one at a time, hence the buffer. */
static int read_buffered(struct input *in, char *dst, size_t len, size_t *got)
{
    size_t n;

    if (in->at == in->filled && len >= BUFFER)
        return read_input(in->cli, dst, len, got);
    for (*got = 0; *got < len; *got += n) {
        if (in->at == in->filled) {
            in->at = 0;
            CLI_TRY(read_input(in->cli, in->buffer, BUFFER, &in->filled));
        }
        n = in->filled - in->at < len - *got ? in->filled - in->at : len - *got;
        if (n == 0)
            break;
        memcpy(dst + *got, in->buffer + in->at, n);
        in->at += n;
    }
    return BRC_OK;
}

static int fail_input_size(struct cli *cli, const char *at_least, uint64_t got, uint64_t want)
{
    return cli_fail(cli, BRC_EINVAL,
                    "--from -: standard input has %s%llu bytes but the selection takes %llu",
                    at_least, (unsigned long long)got, (unsigned long long)want);
}

/* Fails if the input does not end here. */
static int expect_input_end(struct input *in)
{
    char waste[65536];
    uint64_t over = in->filled - in->at;
    size_t got = 1;

    while (got > 0 && over < COUNTED_BEYOND) {
        CLI_TRY(read_input(in->cli, waste, sizeof(waste), &got));
        over += got;
    }
    if (over == 0)
        return BRC_OK;
    return fail_input_size(in->cli, got > 0 ? "more than " : "", in->want + over - (got > 0),
                           in->want);
}

/* Refuses a file of the wrong length before any work is done. */
static int check_input_length(struct cli *cli, uint64_t want)
{
    struct stat status;
    off_t at;

    if (fstat(STDIN_FILENO, &status) != 0 || !S_ISREG(status.st_mode))
        return BRC_OK;
    at = lseek(STDIN_FILENO, 0, SEEK_CUR);
    if (at < 0 || (uint64_t)(status.st_size - at) == want)
        return BRC_OK;
    return fail_input_size(cli, "", (uint64_t)(status.st_size - at), want);
}

/* The library asks for as many bytes as the selection takes, then for one more. */
static int get_elements(void *ctx, void *dst, size_t len, size_t *got)
{
    struct input *in = ctx;

    CLI_TRY(read_buffered(in, dst, len, got));
    in->done += *got;
    if (in->want == 0)
        return BRC_OK;
    if (*got < len && in->done < in->want)
        return fail_input_size(in->cli, "", in->done, in->want);
    return in->done == in->want && *got > 0 ? expect_input_end(in) : BRC_OK;
}

static int load_input(struct cli *cli, const brc_sel *sel, uint64_t want)
{
    struct input in = { .cli = cli, .want = want };
    brc_error err = BRC_ERROR_INIT;

    in.buffer = cli_regrow(NULL, BUFFER, 1);
    int rc = cli_called(cli, brc_array_load_stream(cli->array, sel, get_elements, &in, &err), &err);
    free(in.buffer);
    return rc;
}

int cli_stream_input(struct cli *cli, const brc_sel *sel)
{
    const brc_array_info *info = brc_array_describe(cli->array);
    uint64_t count = brc_sel_count(sel), want;
    int rc;

    CLI_TRY(cli_check_raw(cli, "--from -"));
    CLI_TRY(brc_check_file(cli->file, "/dev/stdin", &cli->err));
    if (info->item_size == 0)
        return load_input(cli, sel, 0);
    if (__builtin_mul_overflow(count, (uint64_t)info->item_size, &want) || want > INT64_MAX)
        return cli_fail(cli, BRC_ELIMIT, "--from -: the selection is larger than 8 EiB");
    CLI_TRY(check_input_length(cli, want));
    if (want == 0)
        return expect_input_end(&(struct input){ .cli = cli });
    cli_progress_total(cli, sel);
    rc = load_input(cli, sel, want);
    brc_progress_end(cli->repo, rc);
    return rc;
}

/* ---- append -------------------------------- */

enum { APPEND_BYTES = 16 << 20 };

/* Returns the bytes of one step along the axis, or 0 if these are too many or none. */
static uint64_t step_bytes(const brc_array_info *info, int axis)
{
    uint64_t bytes = info->item_size;

    for (int i = 0; i < info->ndim; i++)
        if (i != axis && __builtin_mul_overflow(bytes, info->shape[i], &bytes))
            return 0;
    return bytes > INT32_MAX ? 0 : bytes;
}

/* Returns how many steps to read next: up to the end of a chunk, and as many chunks as fit into
 * APPEND_BYTES. */
static uint64_t next_steps(const brc_array_info *info, int axis, uint64_t step)
{
    uint64_t chunk = info->shard ? info->shard[axis] : info->chunk[axis];
    uint64_t rest = chunk - info->shape[axis] % chunk, most = APPEND_BYTES / step;

    if (rest >= most)
        return most > 0 ? most : 1;
    return rest + (most - rest) / chunk * chunk;
}

struct memory {
    const char *data;
    size_t left;
};

static int get_from_memory(void *ctx, void *dst, size_t len, size_t *got)
{
    struct memory *from = ctx;

    *got = len < from->left ? len : from->left;
    memcpy(dst, from->data, *got);
    from->data += *got;
    from->left -= *got;
    return BRC_OK;
}

/* Grows the axis by `count` and writes the bytes to the new elements. */
static int append_steps(struct cli *cli, int axis, uint64_t count, const char *data, size_t len)
{
    const brc_array_info *info = brc_array_describe(cli->array);
    uint64_t shape[BRC_MAX_NDIM], before = info->shape[axis];
    struct memory from = { data, len };
    brc_sel sel = BRC_SEL_INIT;

    memcpy(shape, info->shape, (size_t)info->ndim * sizeof(shape[0]));
    shape[axis] = before + count;
    CLI_TRY(brc_array_resize(cli->array, shape, &cli->err));
    CLI_TRY(cli_select(cli, NULL, &sel));
    sel.start[axis] = before;
    sel.count[axis] = count;
    return brc_array_load_stream(cli->array, &sel, get_from_memory, &from, &cli->err);
}

static int append_all_input(struct cli *cli, int axis, uint64_t step)
{
    char *data = NULL;
    size_t len, got = 1;
    int rc = BRC_OK;

    while (rc >= 0 && got > 0) {
        len = (size_t)(next_steps(brc_array_describe(cli->array), axis, step) * step);
        data = cli_regrow(data, len, 1);
        rc = read_input(cli, data, len, &got);
        if (rc >= 0 && got % step != 0)
            rc = cli_fail(cli, BRC_EINVAL,
                          "--from -: standard input ends within a step of axis %d, which takes "
                          "%llu bytes", axis, (unsigned long long)step);
        if (rc >= 0 && got > 0)
            rc = append_steps(cli, axis, got / step, data, got);
    }
    free(data);
    return rc;
}

int cli_append_input(struct cli *cli, int axis)
{
    const brc_array_info *info = brc_array_describe(cli->array);
    uint64_t step = step_bytes(info, axis);
    int rc;

    CLI_TRY(cli_check_raw(cli, "--from -"));
    CLI_TRY(brc_check_file(cli->file, "/dev/stdin", &cli->err));
    if (info->item_size == 0)
        return cli_fail(cli, BRC_EUNSUPPORTED,
                        "--from -: elements of variable length are appended from a .npy file");
    if (step == 0)
        return cli_fail(cli, BRC_EINVAL,
                        "--from -: a step of axis %d has no elements, or more than 2 GiB", axis);
    CLI_TRY(brc_bulk_begin(cli->session, &cli->err));
    rc = append_all_input(cli, axis, step);
    return cli_end_bulk(cli, rc);
}

/* ==== arrays as NumPy prints them ======================== */

/*
 * More than THRESHOLD elements are summarised: of each axis longer than 2 * EDGE
 * only EDGE elements at both ends are read and shown, with "..." between them.
 * Floating-point numbers are aligned at their decimal point, all else to the
 * right; texts are quoted, to show where each ends, and not aligned. Lines break at
 * the width of the terminal, or at LINE_WIDTH.
 */

enum { THRESHOLD = 1000, EDGE = 3, LINE_WIDTH = 75 };

struct printed {
    struct cli *cli;
    int ndim;                    /* shown axes                                */
    uint64_t count[BRC_MAX_NDIM]; /* elements that were read along each        */
    int cut[BRC_MAX_NDIM];       /* the axis has "..." in the middle          */
    const char **texts;          /* of all elements, C order                  */
    size_t before, after;        /* widest text before the point, and after it */
    int by_point;                /* aligned at the decimal point              */
    int ragged;                  /* not aligned                               */
    size_t next;                 /* element to print                          */
    size_t column, line_width;
};

/* ---- reading the corners -------------------------------- */

/* Sets the shape to read: whole axes, or only the edges of long ones. */
static void edge_counts(const brc_sel *sel, int summarise, uint64_t count[BRC_MAX_NDIM],
                        int cut[BRC_MAX_NDIM])
{
    for (int i = 0; i < sel->ndim; i++) {
        cut[i] = summarise && sel->count[i] > 2 * EDGE;
        count[i] = cut[i] ? 2 * EDGE : sel->count[i];
    }
}

/* Makes box number `corner`, whose bit k says which end of the k-th cut axis. *offset is where the
 * first element of the box is in the block of all shown elements. */
static void corner_box(const brc_sel *sel, const int cut[BRC_MAX_NDIM],
                       const size_t strides[BRC_MAX_NDIM], size_t corner, brc_sel *box,
                       size_t *offset)
{
    *box = *sel;
    *offset = 0;
    for (int i = 0; i < sel->ndim; i++) {
        if (!cut[i])
            continue;
        box->count[i] = EDGE;
        if (corner & 1) {
            box->start[i] += (sel->count[i] - EDGE) * sel->step[i];
            *offset += EDGE * strides[i];
        }
        corner >>= 1;
    }
}

/* Steps `index` through a box, and *number, the number of the element in the block, with it. */
static void next_in_box(const brc_sel *box, const size_t strides[BRC_MAX_NDIM],
                        uint64_t index[BRC_MAX_NDIM], size_t *number)
{
    for (int i = box->ndim - 1; i >= 0; i--) {
        *number += strides[i];
        if (++index[i] < box->count[i])
            return;
        *number -= strides[i] * (size_t)box->count[i];
        index[i] = 0;
    }
}

/* Returns whether `write --value` makes this element from the text. */
static int is_read_back(struct cli *cli, const char *text, const uint8_t *element, size_t len)
{
    brc_buf again = BRC_BUF_INIT;
    int rc = brc_element_parse(&again, cli->array, text, NULL);
    int is = rc == BRC_OK && again.len == len && memcmp(again.data, element, len) == 0;

    brc_buf_dispose(&again);
    return is;
}

/* Shows a single text without quotes, unless it would be read back as another text. */
static int format_element(struct printed *p, const uint8_t *element, size_t len, brc_buf *text,
                          const char **out)
{
    struct cli *cli = p->cli;
    int form = p->ndim > 0 ? BRC_ELEMENT_QUOTED : BRC_ELEMENT_TEXT;
    char decoded[CLI_MOMENT_CAP];
    const char *shown;
    size_t n;

    for (;; form = BRC_ELEMENT_QUOTED) {
        CLI_TRY(decoded_text(cli, element, form, text, decoded, &shown, &n));
        *out = cli_escaped_bytes(cli, shown, n);
        if (form == BRC_ELEMENT_QUOTED || cli->decoder || is_read_back(cli, *out, element, len))
            return BRC_OK;
    }
}

static int format_corner(struct printed *p, const brc_sel *box, size_t number,
                         const size_t strides[BRC_MAX_NDIM], const brc_buf *data)
{
    struct cli *cli = p->cli;
    const brc_array_info *info = brc_array_describe(cli->array);
    uint64_t index[BRC_MAX_NDIM] = { 0 };
    brc_buf text = BRC_BUF_INIT;
    const uint8_t *at = data->data;
    int rc = BRC_OK;

    for (uint64_t n = brc_sel_count(box); rc >= 0 && n > 0; n--) {
        size_t len = cli_element_len(info, at);

        rc = format_element(p, at, len, &text, &p->texts[number]);
        if (rc >= 0 && n % CHECKED_EVERY == 0)
            rc = cli_out_check(cli);
        at += len;
        next_in_box(box, strides, index, &number);
    }
    brc_buf_dispose(&text);
    return rc;
}

/* Reads the corners of the selection and turns their n elements into text. */
static int format_corners(struct printed *p, const brc_sel *sel, const uint64_t count[BRC_MAX_NDIM],
                          const int cut[BRC_MAX_NDIM], size_t n)
{
    size_t strides[BRC_MAX_NDIM], offset, stride = 1, corners = 1;
    brc_buf data = BRC_BUF_INIT;
    brc_sel box = BRC_SEL_INIT;
    brc_io io = BRC_IO_INIT;
    int rc = BRC_OK;

    io.array = p->cli->array;
    io.sel = &box;
    io.out = &data;
    p->texts = cli_alloc(p->cli, n + 1, sizeof(*p->texts));
    for (int i = sel->ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= (size_t)count[i];
        corners <<= cut[i] != 0;
    }
    for (size_t corner = 0; rc >= 0 && corner < corners; corner++) {
        corner_box(sel, cut, strides, corner, &box, &offset);
        data.len = 0;
        rc = brc_read(&io, 1, &p->cli->err);
        if (rc >= 0)
            rc = format_corner(p, &box, offset, strides, &data);
    }
    brc_buf_dispose(&data);
    return rc;
}

static int is_quoted(const char *text)
{
    text += text[0] == 'b';
    return *text == '\'' || *text == '"';
}

/* ---- widths -------------------------------- */

/* Returns the columns before the decimal point, if texts are aligned there. */
static size_t width_before(const struct printed *p, const char *text)
{
    return p->by_point && strchr(text, '.') ? strcspn(text, ".") : 0;
}

static void measure_texts(struct printed *p, size_t n, const char *dtype)
{
    if (p->ragged)
        return;
    p->by_point = strstr(dtype, "float") != NULL;
    for (size_t i = 0; i < n && p->by_point; i++)
        p->by_point = !strpbrk(p->texts[i], "eE");
    for (size_t i = 0; i < n; i++) {
        size_t before = width_before(p, p->texts[i]);
        size_t after = before ? cli_text_width(p->texts[i]) - before : 0;

        p->before = before > p->before ? before : p->before;
        p->after = after > p->after ? after : p->after;
    }
    for (size_t i = 0; i < n; i++) { /* "nan" and others without a point */
        size_t width = cli_text_width(p->texts[i]);

        if (width > p->before + p->after)
            p->before = width - p->after;
    }
}

/* ---- printing -------------------------------- */

static void put_element(struct printed *p)
{
    const char *text = p->texts[p->next++];
    size_t width = cli_text_width(text), before = width_before(p, text);
    size_t left = before ? p->before - before : p->before + p->after - width;

    if (p->ragged) {
        cli_puts(p->cli, text);
        p->column += width;
        return;
    }
    cli_printf(p->cli, "%*s%s%*s", (int)left, "", text,
               (int)(p->before + p->after - left - width), "");
    p->column += p->before + p->after;
}

/* Writes a space, or a new line if `width` more columns and the brackets do not fit. */
static void put_separator(struct printed *p, size_t width)
{
    if (p->column + 1 + width + (size_t)p->ndim > p->line_width) {
        cli_printf(p->cli, "\n%*s", p->ndim, "");
        p->column = (size_t)p->ndim;
    } else {
        cli_puts(p->cli, " ");
        p->column++;
    }
}

static void print_row(struct printed *p)
{
    int axis = p->ndim - 1;

    for (uint64_t i = 0; i < p->count[axis]; i++) {
        size_t width = p->ragged ? cli_text_width(p->texts[p->next]) : p->before + p->after;

        if (i > 0)
            put_separator(p, width);
        if (p->cut[axis] && i == EDGE) {
            cli_puts(p->cli, "...");
            p->column += 3;
            put_separator(p, width);
        }
        put_element(p);
    }
}

/* Writes the gap between two blocks of `axis`: one new line for each axis after it. */
static void put_block_break(struct printed *p, int axis)
{
    for (int i = axis; i < p->ndim - 1; i++)
        cli_puts(p->cli, "\n");
    cli_printf(p->cli, "%*s", axis + 1, "");
    p->column = (size_t)axis + 1;
}

static void print_axis(struct printed *p, int axis)
{
    cli_puts(p->cli, "[");
    p->column++;
    if (axis == p->ndim - 1)
        print_row(p);
    for (uint64_t i = 0; axis < p->ndim - 1 && i < p->count[axis] && !cli_signal(); i++) {
        if (i > 0)
            put_block_break(p, axis);
        if (p->cut[axis] && i == EDGE) {
            cli_puts(p->cli, "...");
            put_block_break(p, axis);
        }
        print_axis(p, axis + 1);
    }
    cli_puts(p->cli, "]");
    p->column++;
}

/* Leaves out an axis that was indexed by an integer. */
static void keep_shown_axes(struct printed *p, const brc_sel *sel,
                            const uint64_t count[BRC_MAX_NDIM], const int cut[BRC_MAX_NDIM])
{
    for (int i = 0; i < sel->ndim; i++) {
        if ((sel->drop >> i & 1))
            continue;
        p->count[p->ndim] = count[i];
        p->cut[p->ndim++] = cut[i];
    }
}

int cli_print_array(struct cli *cli, const brc_sel *sel)
{
    const brc_array_info *info = brc_array_describe(cli->array);
    struct printed p = { .cli = cli,
                         .line_width = cli->out.columns ? cli->out.columns : LINE_WIDTH };
    uint64_t count[BRC_MAX_NDIM], n = 1;
    int cut[BRC_MAX_NDIM];

    if (brc_sel_count(sel) == 0) {
        cli_puts(cli, "[]\n");
        return BRC_OK;
    }
    edge_counts(sel, brc_sel_count(sel) > THRESHOLD, count, cut);
    for (int i = 0; i < sel->ndim; i++)
        if (__builtin_mul_overflow(n, count[i], &n) || n > UINT32_MAX)
            return cli_fail(cli, BRC_ELIMIT,
                            "%s has too many dimensions to be shown as text: use --format json",
                            info->path);
    keep_shown_axes(&p, sel, count, cut);
    CLI_TRY(format_corners(&p, sel, count, cut, (size_t)n));
    p.ragged = p.ndim > 0 && is_quoted(p.texts[0]);
    measure_texts(&p, (size_t)n, shown_dtype(cli));
    if (p.ndim == 0)
        put_element(&p);
    else
        print_axis(&p, 0);
    cli_puts(cli, "\n");
    return cli_out_check(cli);
}
