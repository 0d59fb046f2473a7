/*
 * Codecs that a reader need not understand.
 *
 * "must_understand": false lets a reader that does not know a codec leave it out, and
 * says nothing of a writer: chunks written without the codec would not be what the list
 * says. So such an array is kept as an opaque one is, byte for byte, but can be read by
 * the list without these codecs. What is left out goes from an array to an array where it
 * stands before the array->bytes codec and from bytes to bytes after it: the codecs around
 * it fit together without it, and what does not is told by the next one's checks.
 */
#include <string.h>

#include "../nd/named.h"
#include "meta.h"

/* What was left out, the first of them. */
typedef struct left_out {
    const brc_registry *registry;
    brc_buf pointer; /* of the list that is being read, "/codecs"                 */
    brc_buf *first;  /* '"/codecs/1: the codec "x"'                                */
} left_out;

static int known_list(left_out *out, brc_json **known, const brc_json *list, brc_error *err);

/* sharding_indexed with what is known of its inner codecs. The codecs of its index are
 * left as they are: without one of them nothing says how long the index is. */
static int known_shard(left_out *out, brc_json **known, const brc_named *shard, brc_error *err)
{
    brc_json *inner = NULL, *config = NULL, *item = brc_json_new_object();
    const brc_json *codecs = brc_json_member(shard->config, "codecs");
    size_t before = out->pointer.len;
    int rc;
    BRC_GO(brc_json_clone(&config, shard->config, err));
    BRC_GO(brc_buf_text(&out->pointer, "/configuration/codecs", err));
    BRC_GO(known_list(out, &inner, codecs, err));
    out->pointer.len = before;
    rc = brc_json_set(config, "codecs", inner, err);
    inner = NULL;
    if (rc == BRC_OK && item == NULL)
        rc = brc_nomem(err);
    if (rc == BRC_OK)
        rc = brc_json_set(item, "name", brc_json_new_string(shard->name), err);
    if (rc < 0)
        goto done;
    rc = brc_json_set(item, "configuration", config, err);
    config = NULL;
done:
    brc_json_free(config);
    if (rc < 0)
        brc_json_free(item);
    else
        *known = item;
    return rc;
}

static int note_left_out(left_out *out, const char *name, brc_error *err)
{
    if (out->first->len > 0)
        return BRC_OK;
    BRC_TRY(brc_buf_append(out->first, out->pointer.data, out->pointer.len, err));
    return brc_buf_printf(out->first, err, ": the codec \"%.80s\"", name);
}

/* *known NULL: it is left out. */
static int known_item(left_out *out, brc_json **known, const brc_json *item, brc_error *err)
{
    brc_named named;
    *known = NULL;
    BRC_TRY(brc_named_read(&named, item, err));
    if (named.may_ignore && brc_registry_codec(out->registry, named.name) == NULL)
        return note_left_out(out, named.name, err);
    if (strcmp(named.name, "sharding_indexed") == 0 &&
        brc_json_kind(brc_json_member(named.config, "codecs")) == BRC_JSON_ARRAY)
        return known_shard(out, known, &named, err);
    return brc_json_clone(known, item, err);
}

static int known_list(left_out *out, brc_json **known, const brc_json *list, brc_error *err)
{
    size_t i = 0, before = out->pointer.len;
    brc_json *item, *made = brc_json_new_array();
    int rc = made != NULL ? BRC_OK : brc_nomem(err);
    for (const brc_json *v = brc_json_first(list); v != NULL && rc == BRC_OK;
         v = brc_json_next(v)) {
        BRC_GO(brc_buf_printf(&out->pointer, err, "/%zu", i++));
        BRC_GO(known_item(out, &item, v, err));
        if (item != NULL)
            rc = brc_json_push(made, item, err);
        out->pointer.len = before;
    }
done:
    if (rc < 0)
        brc_json_free(made);
    else
        *known = made;
    return rc;
}

int brc_meta_known_codecs(brc_json **known, brc_buf *first, const brc_registry *reg,
                          const brc_json *codecs, brc_error *err)
{
    left_out out = {reg, BRC_BUF_INIT, first};
    *known = NULL;
    int rc = brc_buf_text(&out.pointer, "/codecs", err);
    if (rc == BRC_OK)
        rc = known_list(&out, known, codecs, err);
    brc_buf_dispose(&out.pointer);
    return rc;
}
