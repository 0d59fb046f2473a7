/* Data types as Arrow's formats. */
#include <stdio.h>
#include <string.h>

#include "arrow.h"

static const struct {
    int klass;
    size_t item;
    const char *format;
} plain_formats[] = {
    {BRC_CLASS_INT, 1, "c"},   {BRC_CLASS_UINT, 1, "C"},  {BRC_CLASS_INT, 2, "s"},
    {BRC_CLASS_UINT, 2, "S"},  {BRC_CLASS_INT, 4, "i"},   {BRC_CLASS_UINT, 4, "I"},
    {BRC_CLASS_INT, 8, "l"},   {BRC_CLASS_UINT, 8, "L"},  {BRC_CLASS_FLOAT, 2, "e"},
    {BRC_CLASS_FLOAT, 4, "f"}, {BRC_CLASS_FLOAT, 8, "g"},
};

static const char *plain_format(const brc_dtype *type, size_t item)
{
    const int klass = type->klass == BRC_CLASS_COMPLEX ? BRC_CLASS_FLOAT : type->klass;
    if (type->npy == NULL || type->bits != 8 * type->item_size)
        return NULL;
    for (size_t i = 0; i < sizeof(plain_formats) / sizeof(plain_formats[0]); i++)
        if (plain_formats[i].klass == klass && plain_formats[i].item == item)
            return plain_formats[i].format;
    return NULL;
}

/* "<M8[ms]" is a timestamp without a zone, "<m8[ms]" a duration; NULL: Arrow has no such unit. */
static const char *time_format(const brc_dtype *type)
{
    static const char *const formats[][2] = {{"<M8[s]", "tss:"},  {"<M8[ms]", "tsm:"},
                                             {"<M8[us]", "tsu:"}, {"<M8[ns]", "tsn:"},
                                             {"<m8[s]", "tDs"},   {"<m8[ms]", "tDm"},
                                             {"<m8[us]", "tDu"},  {"<m8[ns]", "tDn"}};
    for (size_t i = 0; type->npy != NULL && i < sizeof(formats) / sizeof(formats[0]); i++)
        if (strcmp(type->npy, formats[i][0]) == 0)
            return formats[i][1];
    return NULL;
}

static int arrow_form_fill(brc_arrow_form *f, const brc_dtype *type)
{
    const char *format = NULL;
    f->item = type->item_size;
    f->values = BRC_ARROW_FIXED;
    switch (type->klass) {
    case BRC_CLASS_STRING:
    case BRC_CLASS_BYTES:
        format = type->item_size != 0 ? NULL : type->klass == BRC_CLASS_STRING ? "U" : "Z";
        f->values = BRC_ARROW_BYTES;
        break;
    case BRC_CLASS_BOOL:
        format = "b";
        f->values = BRC_ARROW_BITS;
        break;
    case BRC_CLASS_TIME:
        format = time_format(type);
        f->values = BRC_ARROW_TIME;
        break;
    case BRC_CLASS_RAW:
        snprintf(f->format, sizeof(f->format), "w:%zu", type->item_size);
        return f->item > 0;
    case BRC_CLASS_COMPLEX:
        f->pair = 2;
        f->item /= 2;
        format = plain_format(type, f->item);
        break;
    default:
        format = plain_format(type, f->item);
    }
    if (format != NULL)
        snprintf(f->format, sizeof(f->format), "%s", format);
    return format != NULL;
}

int brc_arrow_form_of(brc_arrow_form *out, const brc_array *a, brc_error *err)
{
    const brc_dtype *type = a->meta.type;
    *out = (brc_arrow_form){.pair = 1};
    if (type->klass == BRC_CLASS_OPTIONAL && type->inner != NULL &&
        type->inner->klass != BRC_CLASS_COMPLEX) {
        out->is_optional = 1;
        type = type->inner;
    }
    if (type->klass != BRC_CLASS_OPTIONAL && arrow_form_fill(out, type))
        return BRC_OK;
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%s: Arrow has no type for elements of %s: read them with brc_array_read()",
                    a->path, a->meta.type->name);
}
