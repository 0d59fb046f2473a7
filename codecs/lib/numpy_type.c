/*
 * Data types as the configurations of numcodecs name them: NumPy's strings.
 *
 *     < little-endian    b1 bool            i1 i2 i4 i8  u1 u2 u4 u8  integers
 *     > big-endian       f2 f4 f8 floats    c8 c16       complex numbers
 *     | neither          M8 m8 times, followed by "[unit]": counts in int64
 *
 * zarr-python keeps the text that its user gave: the byte order may be missing ("f4"), or
 * the text may be a name that NumPy and Zarr v3 share ("float32").
 */
#include "numpy_type.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *code, *name;
} numpy_types[] = {
    { "b1", "bool" },      { "i1", "int8" },       { "i2", "int16" },   { "i4", "int32" },
    { "i8", "int64" },     { "u1", "uint8" },      { "u2", "uint16" },  { "u4", "uint32" },
    { "u8", "uint64" },    { "f2", "float16" },    { "f4", "float32" }, { "f8", "float64" },
    { "c8", "complex64" }, { "c16", "complex128" }
};

static const char *numpy_type_name(const char *text)
{
    int has_order = strchr("<>|=", text[0]) != NULL;
    const char *code = text + has_order;

    if (strncmp(code, "M8", 2) == 0 || strncmp(code, "m8", 2) == 0)
        return "int64";
    for (size_t i = 0; i < sizeof(numpy_types) / sizeof(numpy_types[0]); i++)
        if (strcmp(code, numpy_types[i].code) == 0)
            return numpy_types[i].name;
    return has_order ? NULL : text;
}

int brc_numpy_type_open(brc_dtype **out, const brc_registry *reg, const brc_json *config,
                        const char *name, brc_error *err)
{
    const brc_json *value = brc_json_member(config, name);
    int kind = brc_json_kind(value);
    const char *text;

    *out = NULL;
    if (kind == BRC_JSON_ABSENT || kind == BRC_JSON_NULL)
        return BRC_OK;
    const char *real =
        brc_json_text(value, &text) && text[0] != '\0' ? numpy_type_name(text) : NULL;
    if (real == NULL)
        return brc_fail(err, BRC_EINVAL, "\"%s\" must be a NumPy data type such as \"<f4\"",
                        name);
    int rc = brc_dtype_open(out, reg, NULL, real, err);
    if (rc < 0)
        brc_context(err, "\"%s\"", name);
    return rc;
}

int brc_numpy_type_check(const brc_dtype *type, const brc_dtype *array, const char *name,
                         brc_error *err)
{
    if (type == NULL || type->item_size == 0 || type->item_size != array->item_size)
        return brc_fail(err, BRC_EINVAL,
                        "\"%s\" must be a data type with elements of %zu bytes, as %s has", name,
                        array->item_size, array->name);
    return BRC_OK;
}
