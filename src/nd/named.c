/* Reads the form that names an extension; see named.h. */
#include "named.h"

static int named_must_understand(brc_named *out, const brc_json *json, brc_error *err)
{
    const brc_json *member = brc_json_member(json, "must_understand");
    int value = 1;

    if (member != NULL && !brc_json_bool(member, &value))
        return brc_fail(err, BRC_EINVAL, "\"must_understand\" must be true or false");
    out->may_ignore = !value;
    return BRC_OK;
}

static int read_name(const char **out, const brc_json *json, brc_error *err)
{
    if (brc_json_text(json, out))
        return BRC_OK;
    if (brc_json_kind(json) == BRC_JSON_STRING)
        return brc_fail(err, BRC_EINVAL, "a name with U+0000 in it is not valid");
    return brc_fail(err, BRC_EINVAL, "the member \"name\" must be there and be a string");
}

int brc_named_read(brc_named *out, const brc_json *json, brc_error *err)
{
    static const char *const members[] = { "name", "configuration", "must_understand" };

    *out = (brc_named){ "", NULL, 0 };
    if (brc_json_kind(json) == BRC_JSON_STRING)
        return read_name(&out->name, json, err);
    if (brc_json_kind(json) != BRC_JSON_OBJECT)
        return brc_fail(
            err, BRC_EINVAL,
            "a name is expected here, or an object with \"name\" and \"configuration\"");
    BRC_TRY(brc_json_allow(json, members, sizeof(members) / sizeof(members[0]), err));
    BRC_TRY(read_name(&out->name, brc_json_member(json, "name"), err));
    const brc_json *config = brc_json_member(json, "configuration");
    if (config != NULL && brc_json_kind(config) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "the \"configuration\" of \"%s\" must be an object",
                        out->name);
    out->config = config;
    return named_must_understand(out, json, err);
}
