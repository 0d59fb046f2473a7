/* Imports elements from an input into an array, in their order. */
#include "elements.h"

#include <stdlib.h>
#include <string.h>

#include "../nd/shape.h"
#include "../work/session.h"
#include "../zarr/transfer.h"
#include "in_place.h"

void brc_elements_free(brc_elements *e)
{
    brc_dtype_free(e->type);
    e->type = NULL;
}

int brc_elements_measure(brc_elements *e, const brc_input *in, brc_error *err)
{
    uint64_t end;
    if (!brc_shape_bytes(e->ndim, e->shape, e->type->item_size, &e->bytes) ||
        e->bytes > INT64_MAX || !brc_add_u64(e->bytes, in->taken, &end))
        return brc_fail(err, BRC_ELIMIT, "%s: its shape has more bytes than 63 bits can count",
                        in->name);
    if (in->size != BRC_LEN_VARIES && in->size != end)
        return brc_fail(err, BRC_EINVAL, "%s is %llu bytes long; by its header it should be %llu",
                        in->name, (unsigned long long)in->size, (unsigned long long)end);
    return BRC_OK;
}

static int next_bytes(void *ctx, uint8_t *dst, size_t len, brc_error *err)
{
    return brc_input_exact(ctx, dst, len, err);
}

int brc_elements_write(brc_array *a, const brc_sel *sel, const brc_elements *e, brc_input *in,
                       brc_error *err)
{
    brc_element_source source = {in, e->fortran, e->big, next_bytes};
    breccia *repo = brc_session_repo(brc_array_session(a));
    uint64_t bytes;
    if (!brc_shape_bytes(sel->ndim, sel->count, e->type->item_size, &bytes))
        bytes = 0;
    brc_task task = brc_task_begin(repo, "import", bytes);
    in->repo = repo;
    int rc = brc_array_write_stream(a, sel, &source, err);
    brc_task_end(repo, &task, rc);
    return rc;
}

static int create_for(brc_array **out, brc_session *s, const char *path, const brc_elements *e,
                      const brc_xfer_opts *opts, brc_error *err)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    uint64_t chunk[BRC_MAX_NDIM];
    if (brc_is_external(opts)) {
        brc_range_chunks(e->ndim, e->shape, e->type->item_size, e->fortran, 1, chunk);
        spec.chunk = chunk;
    }
    spec.ndim = e->ndim;
    spec.shape = e->shape;
    spec.dtype = e->type->json[0] == '{' ? e->type->json : e->type->name;
    if (opts && opts->chunk) {
        if (opts->nchunk != e->ndim)
            return brc_fail(err, BRC_EINVAL, "%s has %d axes, the chunk shape %d", path, e->ndim,
                            opts->nchunk);
        spec.chunk = opts->chunk;
    }
    spec.codecs_json = opts ? opts->codecs_json : NULL;
    return brc_array_create(out, s, path, &spec, err);
}

/* Leaves the elements in the file where chunks are ranges of it; a compressed file has no such. */
static int take_lying(brc_array *a, const brc_elements *e, brc_input *in, brc_error *err)
{
    brc_stream_file file = { .name = in->name };
    brc_external_elements from = { .file = &file, .fortran = e->fortran, .big = e->big };
    brc_stream_range all;
    from.range = (brc_tar_range){ .at = in->taken, .len = e->bytes, .pieces = 1 };
    BRC_TRY(brc_stream_range_open(&all, &file, &from.range, err));
    const int rc = brc_external_take(a, &from, err);
    brc_stream_file_close(&file);
    return rc;
}

static int write_all_elements(brc_array *a, const brc_elements *e, brc_input *in, brc_error *err)
{
    brc_sel all = BRC_SEL_INIT;
    BRC_TRY(brc_sel_parse(&all, a, NULL, err));
    BRC_TRY(brc_elements_write(a, &all, e, in, err));
    return brc_input_end(in, err);
}

/* Imports without a payload as far as possible, and says what is stored nevertheless. */
static int leave_elements(brc_array *a, const brc_elements *e, brc_input *in,
                          const brc_xfer_opts *opts, brc_error *err)
{
    brc_import_notes notes = { 0 };
    int rc = in->is_plain ? take_lying(a, e, in, err) : write_all_elements(a, e, in, err);
    if (rc == BRC_OK)
        rc = brc_external_note(&notes, a, err);
    if (rc == BRC_OK)
        rc = brc_import_notes_write(&notes, in->name, opts->warnings, err);
    brc_import_notes_dispose(&notes);
    return rc;
}

int brc_elements_import(brc_session *s, const char *path, const brc_elements *e, brc_input *in,
                        const brc_xfer_opts *opts, brc_error *err)
{
    brc_array *a;
    BRC_TRY(create_for(&a, s, path, e, opts, err));
    const int rc = brc_is_external(opts) ? leave_elements(a, e, in, opts, err)
                                         : write_all_elements(a, e, in, err);
    brc_array_free(a);
    return rc;
}

int brc_elements_import_file(brc_session *s, const char *file, brc_elements_open_fn open,
                             const char *path, const brc_xfer_opts *opts, brc_error *err)
{
    brc_elements e = { 0 };
    brc_input *in = NULL;
    int rc;

    BRC_GO(brc_input_open(&in, file, err));
    BRC_GO(open(&e, in, brc_session_registry(s), err));
    BRC_GO(brc_elements_import(s, path, &e, in, opts, err));
done:
    brc_elements_free(&e);
    brc_input_free(in);
    return rc;
}

int brc_elements_file_bytes(uint64_t *bytes, const brc_session *s, const char *file,
                            brc_elements_open_fn open, brc_error *err)
{
    brc_elements e = { 0 };
    brc_input *in = NULL;
    int rc;

    BRC_GO(brc_input_open(&in, file, err));
    BRC_GO(open(&e, in, brc_session_registry(s), err));
    *bytes = e.bytes;
done:
    brc_elements_free(&e);
    brc_input_free(in);
    return rc;
}

int brc_array_dtype_open(brc_dtype **out, const brc_registry *reg, const brc_array_info *info,
                         brc_error *err)
{
    brc_json *json = NULL;
    brc_buf quoted = BRC_BUF_INIT;
    const char *text = info->dtype;
    int rc;

    *out = NULL;
    if (text[0] != '{' && text[0] != '"') {
        BRC_GO(brc_json_quote(&quoted, text, strlen(text), err));
        BRC_GO(brc_buf_terminate(&quoted, err));
        text = (const char *)quoted.data;
    }
    BRC_GO(brc_json_parse(&json, text, strlen(text), 0, err));
    BRC_GO(brc_dtype_open(out, reg, json, NULL, err));
done:
    brc_json_free(json);
    brc_buf_dispose(&quoted);
    return rc;
}
