/* The codecs that new arrays get by the repository's setting where their maker names none, and what
 * stands in front of compressors. */
#include <stddef.h>
#include <string.h>

#include "../base/sized.h"
#include "array.h"
#include "transfer.h"

/* Types of which one at least must fit what is to be the default. */
static const char *const probes[] = {"int32", "float32", "float64", "string"};

/* Whether an array of this type can have these codecs: BRC_OK, or why not. */
static int try_codecs(const brc_registry *reg, const char *dtype, const char *codecs,
                      brc_error *err)
{
    const uint64_t shape = 64;
    brc_json *doc;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = 1;
    spec.shape = spec.chunk = &shape;
    spec.dtype = dtype;
    spec.codecs_json = codecs;
    const int rc = brc_meta_new_array(&doc, reg, &spec, err);
    brc_json_free(doc);
    return rc;
}

/* The list behind what turns an array of this type into bytes: for lists that only change bytes. */
static int behind_plain(brc_buf *out, const brc_registry *reg, const char *dtype,
                        const char *codecs, brc_error *err)
{
    brc_json *name = NULL;
    brc_dtype *type = NULL;
    int rc;
    const char *rest = codecs + strspn(codecs, " \t\r\n");
    if (*rest != '[')
        return brc_fail(err, BRC_EINVAL, "the codecs are not a list");
    BRC_GO(brc_meta_dtype_json(&name, dtype, err));
    BRC_GO(brc_dtype_open(&type, reg, name, err));
    BRC_GO(brc_meta_plain_codecs(out, type, err));
    rest += 1 + strspn(rest + 1, " \t\r\n");
    out->len--; /* its bracket */
    if (*rest != ']')
        BRC_GO(brc_buf_text(out, ",", err));
    BRC_GO(brc_buf_text(out, rest, err));
    rc = brc_buf_terminate(out, err);
done:
    brc_dtype_free(type);
    brc_json_free(name);
    return rc;
}

/* Appends the list as arrays of this type have it: as it is, or behind what makes bytes of them. */
static int fit_codecs(brc_buf *out, const brc_registry *reg, const char *dtype, const char *codecs,
                      brc_error *err)
{
    brc_buf longer = BRC_BUF_INIT;
    int rc = try_codecs(reg, dtype, codecs, err);
    if (rc == BRC_OK)
        return brc_buf_text(out, codecs, err);
    if (behind_plain(&longer, reg, dtype, codecs, NULL) == BRC_OK &&
        try_codecs(reg, dtype, (const char *)longer.data, NULL) == BRC_OK)
        rc = brc_buf_append(out, longer.data, longer.len, err);
    brc_buf_dispose(&longer);
    return rc;
}

static int must_fit_some(const brc_registry *reg, const char *codecs, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = fit_codecs(&text, reg, probes[0], codecs, err);
    for (size_t i = 1; i < sizeof(probes) / sizeof(probes[0]) && rc < 0; i++)
        if (fit_codecs(&text, reg, probes[i], codecs, NULL) == BRC_OK)
            rc = BRC_OK;
    brc_buf_dispose(&text);
    return rc;
}

int brc_default_codecs_set(breccia *repo, const char *codecs, brc_error *err)
{
    brc_json *list = NULL;
    brc_buf text = BRC_BUF_INIT;
    int rc = BRC_OK;
    if (codecs != NULL) {
        BRC_TRY(must_fit_some(repo->registry, codecs, err));
        BRC_TRY(brc_json_parse(&list, codecs, strlen(codecs), err));
        BRC_GO(brc_json_write(&text, list, err));
        BRC_GO(brc_buf_terminate(&text, err));
    }
    BRC_GO(brc_store_begin(repo->store, err));
    rc = brc_setting_put(repo->store, BRC_SETTING_CODECS,
                         codecs != NULL ? (const char *)text.data : NULL, err);
    const int end = brc_store_end(repo->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
done:
    brc_json_free(list);
    brc_buf_dispose(&text);
    return rc;
}

int brc_session_default_codecs(brc_buf *out, brc_session *s, const char *dtype, brc_error *err)
{
    const breccia *repo = s->repo;
    brc_buf text = BRC_BUF_INIT;
    const size_t before = out->len;
    BRC_TRY(brc_store_begin_read(repo->store, err));
    int rc = brc_setting_find(repo->store, BRC_SETTING_CODECS, &text, err);
    brc_store_end_read(repo->store);
    if (rc > 0 && fit_codecs(out, repo->registry, dtype, (const char *)text.data, NULL) < 0)
        out->len = before;
    brc_buf_dispose(&text);
    return rc < 0 ? rc : out->len > before ? brc_buf_terminate(out, err) : BRC_OK;
}

static int behind_compressors(brc_buf *out, brc_session *s, const brc_array_spec *spec,
                              brc_error *err)
{
    if (spec->codecs_json != NULL || spec->metadata_json != NULL || spec->dtype == NULL)
        return brc_fail(err, BRC_EINVAL, "compressors go with a data type, and without codecs or a "
                                         "zarr.json: leave one out");
    return behind_plain(out, s->repo->registry, spec->dtype, spec->compressors_json, err);
}

int brc_new_array_doc(brc_json **out, brc_session *s, const brc_array_spec *given, brc_error *err)
{
    brc_array_spec spec;
    brc_buf codecs = BRC_BUF_INIT;
    *out = NULL;
    BRC_TRY(brc_sized_in(&spec, sizeof(spec), offsetof(brc_array_spec, chunk), given,
                         "brc_array_spec", err));
    int rc = BRC_OK;
    if (spec.compressors_json != NULL)
        rc = behind_compressors(&codecs, s, &spec, err);
    else if (spec.codecs_json == NULL && spec.metadata_json == NULL && spec.dtype != NULL)
        rc = brc_session_default_codecs(&codecs, s, spec.dtype, err);
    if (codecs.len > 0)
        spec.codecs_json = (const char *)codecs.data;
    if (rc == BRC_OK)
        rc = brc_meta_new_array(out, s->repo->registry, &spec, err);
    brc_buf_dispose(&codecs);
    return rc;
}
