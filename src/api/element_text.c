/* One element, as text. */
#include <string.h>

#include "../base/buf.h"
#include "../nd/dtype.h"
#include "../zarr/array.h"

int brc_element_parse(brc_buf *out, const brc_array *a, const char *text, brc_error *err)
{
    size_t at = out->len;
    BRC_TRY(brc_meta_must_decode(&a->meta, err));
    BRC_TRY(brc_dtype_parse_text(a->meta.type, text, out, err));
    brc_dtype_native(a->meta.type, out->data + at, out->len - at);
    return BRC_OK;
}

int brc_element_format(brc_buf *out, const brc_array *a, const void *element, int form,
                       brc_error *err)
{
    const brc_dtype *type = a->meta.type;
    BRC_TRY(brc_meta_must_decode(&a->meta, err));
    size_t len = type->item_size > 0 ? type->item_size : 4 + (size_t)brc_get_u32le(element);
    if (form == BRC_ELEMENT_QUOTED)
        return brc_dtype_print_quoted(type, element, len, out, err);
    return type->ops->print(type, element, len,
                            form == BRC_ELEMENT_JSON ? BRC_PRINT_JSON : BRC_PRINT_TEXT, out, err);
}
