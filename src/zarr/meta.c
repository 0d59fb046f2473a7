/* Reading zarr.json. Strict where the specification is, lenient where files exist. */
#include "meta.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../nd/named.h"
#include "../nd/shape.h"

static int meta_bad(brc_error *err, const char *pointer, const char *why)
{
    return brc_fail(err, BRC_EINVAL, "%s: %s", pointer, why);
}

int brc_meta_kind(const brc_json *doc, int *kind, brc_error *err)
{
    if (brc_json_kind(doc) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "it is not a JSON object");
    const brc_json *type = brc_json_member(doc, "node_type");
    if (brc_json_is(type, "group"))
        *kind = BRC_GROUP;
    else if (brc_json_is(type, "array"))
        *kind = BRC_ARRAY;
    else
        return meta_bad(err, "/node_type", "must be \"array\" or \"group\"");
    return BRC_OK;
}

/* ---- members that both kinds have --------------------------------------------------- */

static int meta_is_listed(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return 0;
}

/* "/a~1b: text", for a name that a stranger chose. */
static int meta_bad_member(brc_error *err, const char *before, const char *name, const char *why)
{
    brc_buf pointer = BRC_BUF_INIT;
    int rc = brc_json_pointer_step(&pointer, name, err);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&pointer, err);
    if (rc == BRC_OK)
        rc = brc_fail(err, BRC_EINVAL, "%s%.120s%s", before, (const char *)pointer.data, why);
    brc_buf_dispose(&pointer);
    return rc;
}

/* An unknown member must be an object that says that it may be ignored, or the document
 * is refused. */
static int meta_unknown_members(const brc_json *doc, const char *const *names, size_t n,
                                brc_error *err)
{
    for (const brc_json *v = brc_json_first(doc); v != NULL; v = brc_json_next(v)) {
        const char *name = brc_json_own_name(v);
        int must = 1;
        if (meta_is_listed(name, names, n))
            continue;
        const brc_json *says = brc_json_member(v, "must_understand");
        if (brc_json_kind(v) != BRC_JSON_OBJECT || !brc_json_bool(says, &must) || must)
            return meta_bad_member(err, "", name,
                                   ": an unknown member must be an object with "
                                   "\"must_understand\": false");
    }
    return BRC_OK;
}

static int meta_attributes(const brc_json *doc, brc_error *err)
{
    int kind = brc_json_kind(brc_json_member(doc, "attributes"));
    if (kind == BRC_JSON_ABSENT || kind == BRC_JSON_NULL || kind == BRC_JSON_OBJECT)
        return BRC_OK;
    return meta_bad(err, "/attributes", "must be an object");
}

static int meta_format(const brc_json *doc, int want, brc_error *err)
{
    int kind;
    int64_t format;
    if (brc_json_kind(doc) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "it is not a JSON object");
    if (!brc_json_int(brc_json_member(doc, "zarr_format"), 3, 3, &format))
        return meta_bad(err, "/zarr_format", "must be the integer 3");
    BRC_TRY(brc_meta_kind(doc, &kind, err));
    if (kind != want)
        return meta_bad(err, "/node_type", want == BRC_ARRAY ? "must be \"array\" here"
                                                             : "must be \"group\" here");
    return BRC_OK;
}

static int meta_consolidated(const brc_json *doc, brc_error *err)
{
    const brc_json *c = brc_json_member(doc, "consolidated_metadata");
    int must = 0;
    if (brc_json_kind(c) == BRC_JSON_ABSENT || brc_json_kind(c) == BRC_JSON_NULL)
        return BRC_OK;
    if (brc_json_kind(c) != BRC_JSON_OBJECT)
        return meta_bad(err, "/consolidated_metadata", "must be an object");
    if (!brc_json_is(brc_json_member(c, "kind"), "inline"))
        return meta_bad(err, "/consolidated_metadata/kind", "must be \"inline\"");
    if (!brc_json_bool(brc_json_member(c, "must_understand"), &must) || must)
        return meta_bad(err, "/consolidated_metadata/must_understand", "must be false");
    const brc_json *nodes = brc_json_member(c, "metadata");
    if (brc_json_kind(nodes) != BRC_JSON_OBJECT)
        return meta_bad(err, "/consolidated_metadata/metadata", "must be an object");
    for (const brc_json *v = brc_json_first(nodes); v != NULL; v = brc_json_next(v))
        if (brc_json_kind(brc_json_member(v, "node_type")) != BRC_JSON_STRING)
            return meta_bad_member(err, "/consolidated_metadata/metadata", brc_json_own_name(v),
                                   "/node_type: must be there and be a string");
    return BRC_OK;
}

int brc_meta_check_group(const brc_json *doc, brc_error *err)
{
    static const char *const members[] = {"zarr_format", "node_type", "attributes",
                                          "consolidated_metadata"};
    BRC_TRY(meta_format(doc, BRC_GROUP, err));
    BRC_TRY(meta_unknown_members(doc, members, sizeof(members) / sizeof(members[0]), err));
    BRC_TRY(meta_attributes(doc, err));
    return meta_consolidated(doc, err);
}

/* ---- arrays ------------------------------------------------------------------------ */

static int meta_shape(const brc_json *list, const char *pointer, uint64_t min, int *ndim,
                      uint64_t *shape, brc_error *err)
{
    int n = 0;
    if (brc_json_kind(list) != BRC_JSON_ARRAY)
        return meta_bad(err, pointer, "must be a list of integers");
    if (brc_json_count(list) > BRC_MAX_NDIM)
        return brc_fail(err, BRC_ELIMIT, "%s: more than %d dimensions", pointer, BRC_MAX_NDIM);
    for (const brc_json *v = brc_json_first(list); v != NULL; v = brc_json_next(v), n++) {
        if (!brc_json_uint(v, INT64_MAX, &shape[n]) || shape[n] < min)
            return brc_fail(err, BRC_EINVAL, "%s/%d: must be an integer from %" PRIu64 " to 2^63-1",
                            pointer, n, min);
    }
    *ndim = n;
    return BRC_OK;
}

/* The name and configuration of an extension that must be understood. */
static int meta_extension(const brc_json *doc, const char *member, const char *pointer,
                          brc_named *out, brc_error *err)
{
    int rc = brc_named_read(out, brc_json_member(doc, member), err);
    if (rc < 0) {
        brc_context(err, "%s", pointer);
        return rc;
    }
    if (out->may_ignore)
        return meta_bad(err, pointer, "\"must_understand\": false is not allowed here");
    return BRC_OK;
}

static int meta_keys(brc_meta *m, const brc_json *doc, brc_error *err)
{
    static const char *const members[] = {"separator"}, *const separators[] = {".", "/"};
    brc_named keys;
    BRC_TRY(meta_extension(doc, "chunk_key_encoding", "/chunk_key_encoding", &keys, err));
    m->v2_keys = strcmp(keys.name, "v2") == 0;
    if (!m->v2_keys && strcmp(keys.name, "default") != 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "/chunk_key_encoding: \"%.60s\" is not known; \"default\" and \"v2\" are",
                        keys.name);
    if (brc_json_allow(keys.config, members, 1, err) < 0) {
        brc_context(err, "/chunk_key_encoding/configuration");
        return BRC_EINVAL;
    }
    const brc_json *separator = brc_json_member(keys.config, "separator");
    m->separator = m->v2_keys ? '.' : '/';
    if (separator == NULL)
        return BRC_OK;
    int which = brc_json_choice(separator, separators, 2);
    if (which < 0)
        return meta_bad(err, "/chunk_key_encoding/configuration/separator",
                        "must be \".\" or \"/\"");
    m->separator = separators[which][0];
    return BRC_OK;
}

static int meta_dimension_names(const brc_meta *m, const brc_json *doc, brc_error *err)
{
    const brc_json *names = brc_json_member(doc, "dimension_names");
    int kind = brc_json_kind(names);
    if (kind == BRC_JSON_ABSENT || kind == BRC_JSON_NULL)
        return BRC_OK;
    if (kind != BRC_JSON_ARRAY)
        return meta_bad(err, "/dimension_names", "must be a list");
    if (brc_json_count(names) != (size_t)m->ndim)
        return meta_bad(err, "/dimension_names", "must have one item per dimension");
    size_t i = 0;
    for (const brc_json *v = brc_json_first(names); v != NULL; v = brc_json_next(v), i++)
        if (brc_json_kind(v) != BRC_JSON_STRING && brc_json_kind(v) != BRC_JSON_NULL)
            return brc_fail(err, BRC_EINVAL, "/dimension_names/%zu: must be a string or null", i);
    return BRC_OK;
}

static int meta_transformers(const brc_json *doc, brc_error *err)
{
    const brc_json *list = brc_json_member(doc, "storage_transformers");
    int kind = brc_json_kind(list);
    if (kind == BRC_JSON_ABSENT || kind == BRC_JSON_NULL)
        return BRC_OK;
    if (kind != BRC_JSON_ARRAY)
        return meta_bad(err, "/storage_transformers", "must be a list");
    size_t i = 0;
    for (const brc_json *v = brc_json_first(list); v != NULL; v = brc_json_next(v), i++) {
        brc_named t;
        int rc = brc_named_read(&t, v, err);
        if (rc < 0) {
            brc_context(err, "/storage_transformers/%zu", i);
            return rc;
        }
        if (!t.may_ignore)
            return brc_fail(err, BRC_EUNSUPPORTED,
                            "/storage_transformers/%zu: \"%.60s\" is not known to this build, so "
                            "nothing says where the chunks are",
                            i, t.name);
    }
    return BRC_OK;
}

int brc_meta_lacks_fill(const brc_json *doc)
{
    const brc_json *note = brc_json_member(doc, BRC_ZARR2_NOTE);
    return brc_json_kind(brc_json_member(note, "fill_value")) == BRC_JSON_NULL;
}

static int meta_fill(brc_meta *m, const brc_json *doc, brc_error *err)
{
    const brc_json *fill = brc_json_member(doc, "fill_value");
    int rc = m->type->ops->parse(m->type, fill, &m->fill, err);
    m->keeps_fill = brc_meta_lacks_fill(doc);
    if (rc < 0)
        brc_context(err, "/fill_value");
    return rc;
}

static int meta_texts(brc_meta *m, const brc_json *doc, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_json_write(&text, brc_json_member(doc, "codecs"), err));
    BRC_GO(brc_buf_take_text(&text, &m->codecs_json, err));
    const brc_json *type = brc_json_member(doc, "data_type");
    const char *name;
    if (brc_json_text(type, &name))
        BRC_GO(brc_buf_text(&text, name, err));
    else
        BRC_GO(brc_json_write(&text, type, err));
    BRC_GO(brc_buf_take_text(&text, &m->dtype, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

/* Type, fill value and codecs: what this build may lack. */
static int meta_meaning(brc_meta *m, const brc_json *doc, brc_error *err)
{
    const brc_json *type = brc_json_member(doc, "data_type");
    int rc = brc_dtype_open(&m->type, m->registry, type, err);
    if (rc < 0) {
        brc_context(err, "/data_type");
        return rc;
    }
    BRC_TRY(meta_fill(m, doc, err));
    return brc_meta_read_codecs(m, brc_json_member(doc, "codecs"), err);
}

/* Also of an opaque array the codecs must have the form of a list. */
static int meta_check_list(const brc_json *codecs, brc_error *err)
{
    if (brc_json_kind(codecs) != BRC_JSON_ARRAY || brc_json_count(codecs) == 0)
        return meta_bad(err, "/codecs", "must be a list with an array->bytes codec");
    size_t i = 0;
    for (const brc_json *v = brc_json_first(codecs); v != NULL; v = brc_json_next(v), i++) {
        brc_named named;
        int rc = brc_named_read(&named, v, err);
        if (rc < 0) {
            brc_context(err, "/codecs/%zu", i);
            return rc;
        }
    }
    return BRC_OK;
}

static int meta_required(const brc_json *doc, brc_error *err)
{
    static const char *const members[] = {"shape", "data_type", "chunk_grid", "chunk_key_encoding",
                                          "fill_value", "codecs"};
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (brc_json_member(doc, members[i]) == NULL)
            return meta_bad_member(err, "", members[i], ": is missing");
    return BRC_OK;
}

static int meta_parts(brc_meta *m, const brc_json *doc, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    BRC_TRY(meta_required(doc, err));
    BRC_TRY(meta_shape(brc_json_member(doc, "shape"), "/shape", 0, &m->ndim, m->shape, err));
    BRC_TRY(brc_grid_read(&m->outer, doc, m->ndim, m->shape, err));
    BRC_TRY(meta_keys(m, doc, err));
    BRC_TRY(meta_dimension_names(m, doc, err));
    BRC_TRY(meta_attributes(doc, err));
    BRC_TRY(meta_transformers(doc, err));
    BRC_TRY(meta_check_list(brc_json_member(doc, "codecs"), err));
    BRC_TRY(meta_texts(m, doc, err));
    int rc = meta_meaning(m, doc, &why);
    if (rc == BRC_EUNSUPPORTED) {
        BRC_TRY(brc_meta_make_opaque(m, &why, err));
        return brc_meta_ignore_codecs(m, brc_json_member(doc, "codecs"), err);
    }
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &why);
    return rc;
}

int brc_meta_open(brc_meta *out, const brc_registry *reg, const brc_json *doc, brc_error *err)
{
    static const char *const members[] = {
        "zarr_format",         "node_type",  "shape",  "data_type",  "chunk_grid",
        "chunk_key_encoding",  "fill_value", "codecs", "attributes", "dimension_names",
        "storage_transformers"
    };
    memset(out, 0, sizeof(*out));
    BRC_TRY(meta_format(doc, BRC_ARRAY, err));
    BRC_TRY(meta_unknown_members(doc, members, sizeof(members) / sizeof(members[0]), err));
    out->registry = reg;
    int rc = meta_parts(out, doc, err);
    if (rc < 0)
        brc_meta_dispose(out);
    return rc;
}
