/* The memory of elements, see netcdf_type.h. */
#include "netcdf_type.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"

/* ==== netcdf type ================================ */

#define MAX_MOVES ((size_t)1 << 16)

void brc_netcdf_type_free(brc_netcdf_type *type)
{
    free(type->moves);
    memset(type, 0, sizeof(*type));
}

static int netcdf_add_move(brc_netcdf_type *type, size_t file, size_t here, size_t len,
                           brc_error *err)
{
    brc_netcdf_move *moves = type->moves, *last = type->nmoves ? &moves[type->nmoves - 1] : NULL;

    if (last && last->file + last->len == file && last->here + last->len == here) {
        last->len += len;
        return BRC_OK;
    }
    if (type->nmoves == MAX_MOVES)
        return brc_fail(err, BRC_ELIMIT, "a compound type has more than %lu fields",
                        (unsigned long)MAX_MOVES);
    BRC_TRY(brc_grow_array(&type->moves, &type->moves_cap, type->nmoves + 1, sizeof(*moves), err));
    moves = type->moves;
    moves[type->nmoves++] = (brc_netcdf_move){ file, here, len };
    return BRC_OK;
}

void brc_netcdf_move_out(const brc_netcdf_type *type, uint8_t *file, const uint8_t *here, size_t n)
{
    const brc_netcdf_move *moves = type->moves;
    for (; n > 0; n--, here += type->here_size, file += type->file_size) {
        memset(file, 0, type->file_size); /* what is between the fields */
        for (size_t i = 0; i < type->nmoves; i++)
            memcpy(file + moves[i].file, here + moves[i].here, moves[i].len);
    }
}

void brc_netcdf_lay_out(const brc_netcdf_type *type, uint8_t *file, const uint8_t *element,
                        uint8_t *here)
{
    memcpy(here, element, type->here_size);
    brc_dtype_native(type->from, here, type->here_size);
    if (type->nmoves > 0)
        brc_netcdf_move_out(type, file, here, 1);
    else
        memcpy(file, here, type->file_size);
}

/* ==== netcdf type out ================================ */

/* Data types of Zarr as types of NetCDF, see netcdf_type.h. */

#define MAX_NESTING 16
#define MAX_AXES 8

/* A type that was defined: what it was made of. */
typedef struct made_type {
    char *key, *name;
    nc_type id;
} made_type;

typedef struct type_out {
    brc_netcdf_types *types;
    int classic, depth;
} type_out;

static int any_type_out(brc_netcdf_type *out, const type_out *job, const brc_dtype *from,
                        brc_error *err);

void brc_netcdf_types_free(brc_netcdf_types *types)
{
    made_type *made = types->items;
    for (size_t i = 0; i < types->n; i++) {
        free(made[i].key);
        free(made[i].name);
    }
    free(types->items);
    types->items = NULL;
    types->n = types->cap = 0;
}

static int no_type(const brc_dtype *from, brc_error *err)
{
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "NetCDF has no type for %s: write Zarr, or take the array out first",
                    from->name);
}

/* ---- types with a name ------------------------------------- */

static const made_type *find_made(const brc_netcdf_types *types, const char *key)
{
    const made_type *made = types->items;
    for (size_t i = 0; i < types->n; i++)
        if (strcmp(made[i].key, key) == 0)
            return &made[i];
    return NULL;
}

static int is_name_free(const brc_netcdf_types *types, const char *name)
{
    const made_type *made = types->items;
    for (size_t i = 0; i < types->n; i++)
        if (strcmp(made[i].name, name) == 0)
            return 0;
    return !types->taken(types->ctx, name);
}

static int free_name(char out[NC_MAX_NAME + 1], const brc_netcdf_types *types, const char *base)
{
    snprintf(out, NC_MAX_NAME + 1, "%s", base);
    for (unsigned i = 2; !is_name_free(types, out); i++)
        snprintf(out, NC_MAX_NAME + 1, "%s_%u", base, i);
    return 1;
}

static int remember(brc_netcdf_types *types, const char *key, const char *name, nc_type id,
                    brc_error *err)
{
    BRC_TRY(brc_grow_array(&types->items, &types->cap, types->n + 1, sizeof(made_type), err));
    made_type *made = (made_type *)types->items + types->n;
    memset(made, 0, sizeof(*made));
    BRC_TRY(brc_dup(&made->key, key, err));
    types->n++;
    made->id = id;
    return brc_dup(&made->name, name, err);
}

/* 1 if the type of this key is to be defined, under this name; 0 with its id if it is there, or no
 * file is written. */
static int begin_type(nc_type *id, char *name, const brc_netcdf_types *types, const char *key,
                      const char *base)
{
    const made_type *made = find_made(types, key);
    *id = made ? made->id : NC_FIRSTUSERTYPEID;
    if (made || types->root < 0)
        return 0;
    free_name(name, types, base);
    return 1;
}

static int end_type(brc_netcdf_types *types, const char *key, const char *name, nc_type id,
                    int status, brc_error *err)
{
    return status ? brc_netcdf_fail(status, BRC_EUNSUPPORTED, "NetCDF has no type like", name, err)
                  : remember(types, key, name, id, err);
}

/* Opaque bytes, and lists of bytes: no fields. */
static int define_simple(brc_netcdf_type *out, brc_netcdf_types *types, const char *base,
                         brc_error *err)
{
    char name[NC_MAX_NAME + 1];
    if (out->how == BRC_NETCDF_LISTS)
        return brc_netcdf_define_list(&out->id, types, base, base, NC_UBYTE, err);
    if (!begin_type(&out->id, name, types, base, base))
        return BRC_OK;
    int status = nc_def_opaque(types->root, out->here_size, name, &out->id);
    return end_type(types, base, name, out->id, status, err);
}

/* ---- compounds ---------------------------------------------- */

typedef struct out_field {
    const char *name;
    brc_netcdf_type type;
    int ndims, sizes[MAX_AXES + 1];
    size_t n;      /* elements in all */
    size_t offset; /* in the file's memory */
} out_field;

typedef struct out_compound {
    out_field *fields;
    size_t n, size, here, align;
} out_compound;

/* "name" and "data_type" of a field; of the older form, its two items. */
static void split_field(const brc_json *field, const brc_json **name, const brc_json **type)
{
    int is_pair = brc_json_kind(field) == BRC_JSON_ARRAY;
    *name = is_pair ? brc_json_item(field, 0) : brc_json_member(field, "name");
    *type = is_pair ? brc_json_item(field, 1) : brc_json_member(field, "data_type");
}

static const brc_json *struct_fields(const brc_json *type)
{
    const brc_json *name = brc_json_member(type, "name");
    if (!brc_json_is(name, "struct") && !brc_json_is(name, "structured"))
        return NULL;
    return brc_json_member(brc_json_member(type, "configuration"), "fields");
}

/* How many fields a struct has, where they are called "0", "1", "2" ... and are of one
 * type: it stands for an array. Else 0. */
static size_t count_equal_fields(const brc_json *type, const brc_json **element)
{
    const brc_json *fields = struct_fields(type), *name, *is;
    char number[24];
    size_t n = 0;

    for (const brc_json *f = brc_json_first(fields); f; f = brc_json_next(f), n++) {
        split_field(f, &name, &is);
        snprintf(number, sizeof(number), "%zu", n);
        if (n == 0)
            *element = is;
        if (!brc_json_is(name, number) || !is || !brc_json_equal(is, *element))
            return 0;
    }
    return n;
}

static int open_field_type(out_field *out, const type_out *job, const brc_json *type,
                           brc_error *err)
{
    const brc_json *element = NULL;
    brc_dtype *dtype;
    size_t n;

    out->n = 1;
    while (out->ndims < MAX_AXES && (n = count_equal_fields(type, &element)) > 0) {
        out->sizes[out->ndims++] = (int)n;
        out->n *= n;
        type = element;
    }
    BRC_TRY(brc_dtype_open(&dtype, job->types->registry, type, err));
    int rc = any_type_out(&out->type, job, dtype, err);
    if (rc == BRC_OK && (out->type.how != BRC_NETCDF_PLAIN || dtype->klass == BRC_CLASS_TIME ||
                         (out->type.chars && out->ndims == MAX_AXES)))
        rc = no_type(dtype, err);
    brc_dtype_free(dtype);
    out->type.from = NULL; /* it is gone */
    if (rc == BRC_OK && out->type.chars)
        out->sizes[out->ndims++] = (int)out->type.chars;
    return rc;
}

/* Where a compiler puts it. A field of n characters has one, n times. */
static int place_field(brc_netcdf_type *out, out_compound *c, out_field *field, brc_error *err)
{
    const brc_netcdf_type *type = &field->type;
    const brc_netcdf_move *moves = type->moves;
    size_t align = type->align;

    field->offset = (c->size + align - 1) / align * align;
    for (size_t k = 0; k < field->n; k++) {
        size_t file = field->offset + k * type->file_size, here = c->here + k * type->here_size;
        if (type->nmoves == 0)
            BRC_TRY(netcdf_add_move(out, file, here, type->here_size, err));
        for (size_t i = 0; i < type->nmoves; i++)
            BRC_TRY(netcdf_add_move(out, file + moves[i].file, here + moves[i].here,
                                    moves[i].len, err));
    }
    c->size = field->offset + field->n * type->file_size;
    c->here += field->n * type->here_size;
    if (c->align < align)
        c->align = align;
    return BRC_OK;
}

static int open_fields(brc_netcdf_type *out, out_compound *c, const type_out *job,
                       const brc_json *json, brc_error *err)
{
    type_out inner = { job->types, job->classic, job->depth + 1 };
    const brc_json *fields = struct_fields(json), *name, *type;

    BRC_TRY(
        brc_new_array((void **)&c->fields, brc_json_count(fields) + 1, sizeof(*c->fields), err));
    for (const brc_json *f = brc_json_first(fields); f; f = brc_json_next(f)) {
        split_field(f, &name, &type);
        out_field *field = &c->fields[c->n];
        c->n++;
        int rc = brc_json_text(name, &field->name)
                     ? open_field_type(field, &inner, type, err)
                     : brc_fail(err, BRC_EUNSUPPORTED, "it has U+0000 in its name");
        if (rc < 0)
            brc_context(err, "the field %.80s", field->name);
        BRC_TRY(rc);
        BRC_TRY(place_field(out, c, field, err));
    }
    c->size = (c->size + c->align - 1) / c->align * c->align;
    return BRC_OK;
}

int brc_netcdf_define_compound(nc_type *id, brc_netcdf_types *types, const char *key,
                               const char *base, size_t size, const brc_netcdf_field *fields,
                               size_t n, brc_error *err)
{
    char name[NC_MAX_NAME + 1];
    if (!begin_type(id, name, types, key, base))
        return BRC_OK;
    int status = nc_def_compound(types->root, size, name, id);
    for (size_t i = 0; i < n && !status; i++) {
        const brc_netcdf_field *f = &fields[i];
        status = f->ndims ? nc_insert_array_compound(types->root, *id, f->name, f->offset, f->type,
                                                     f->ndims, f->sizes)
                          : nc_insert_compound(types->root, *id, f->name, f->offset, f->type);
    }
    return end_type(types, key, name, *id, status, err);
}

int brc_netcdf_define_list(nc_type *id, brc_netcdf_types *types, const char *key, const char *base,
                           nc_type of, brc_error *err)
{
    char name[NC_MAX_NAME + 1];
    if (!begin_type(id, name, types, key, base))
        return BRC_OK;
    int status = nc_def_vlen(types->root, name, of, id);
    return end_type(types, key, name, *id, status, err);
}

static int define_compound(brc_netcdf_type *out, brc_netcdf_types *types, const out_compound *c,
                           const char *key, const char *base, brc_error *err)
{
    brc_netcdf_field *fields;
    BRC_TRY(brc_new_array((void **)&fields, c->n, sizeof(*fields), err));
    for (size_t i = 0; i < c->n; i++) {
        const out_field *f = &c->fields[i];
        fields[i] = (brc_netcdf_field){ f->name, f->offset, f->type.id, f->ndims, { 0 } };
        memcpy(fields[i].sizes, f->sizes, sizeof(f->sizes));
    }
    int rc = brc_netcdf_define_compound(&out->id, types, key, base, c->size, fields, c->n, err);
    free(fields);
    return rc;
}

static int struct_out(brc_netcdf_type *out, const type_out *job, const brc_dtype *from,
                      brc_error *err)
{
    out_compound c = { .align = 1 };
    brc_json *json = NULL;
    int rc;

    if (job->depth > MAX_NESTING)
        return no_type(from, err);
    BRC_GO(brc_json_parse(&json, from->json, strlen(from->json), err));
    BRC_GO(open_fields(out, &c, job, json, err));
    out->file_size = c.size;
    out->align = c.align;
    BRC_GO(define_compound(out, job->types, &c, from->json, "struct", err));
done:
    for (size_t i = 0; i < c.n; i++)
        brc_netcdf_type_free(&c.fields[i].type);
    free(c.fields);
    brc_json_free(json);
    return rc;
}

/* By the names that readers of complex numbers look for. */
static int complex_out(brc_netcdf_type *out, const type_out *job, const brc_dtype *from,
                       brc_error *err)
{
    static const char *const floats[] = { "complex64", "complex_float32" };
    static const char *const doubles[] = { "complex128", "complex_float64" };
    int is_float = 0, is_double = 0;

    for (size_t i = 0; i < 2; i++) {
        is_float |= strcmp(from->name, floats[i]) == 0;
        is_double |= strcmp(from->name, doubles[i]) == 0;
    }
    if (!is_float && !is_double)
        return no_type(from, err);
    nc_type part = is_float ? NC_FLOAT : NC_DOUBLE;
    size_t size = brc_netcdf_atomic_size(part);
    out_field fields[2] = { { .name = "r", .type = { .id = part } },
                            { .name = "i", .type = { .id = part }, .offset = size } };
    out_compound c = { fields, 2, 2 * size, 2 * size, size };
    out->is_complex = 1;
    out->number = NC_NAT;
    out->align = size;
    return define_compound(out, job->types, &c, is_float ? "complex64" : "complex128",
                           is_float ? "_PFNC_FLOAT_COMPLEX_TYPE" : "_PFNC_DOUBLE_COMPLEX_TYPE",
                           err);
}

/* ---- numbers and texts ---------------------------------------- */

static void number_out(brc_netcdf_type *out, const brc_dtype *from)
{
    int is_float = from->klass == BRC_CLASS_FLOAT;
    int is_small = is_float ? from->item_size < 4 : from->bits < 8 * from->item_size;
    if (is_float && strcmp(from->name, "float64") == 0)
        out->id = NC_DOUBLE;
    else if (is_float && (is_small || strcmp(from->name, "float32") == 0))
        out->id = NC_FLOAT;
    else if (!is_float)
        out->id = brc_netcdf_integer(from->item_size, from->klass == BRC_CLASS_UINT);
    if (is_small)
        out->how = BRC_NETCDF_WIDER;
    if (is_small && !from->ops->number)
        out->id = NC_NAT;
    out->number = out->id;
    out->file_size = out->align = brc_netcdf_atomic_size(out->id);
}

static int bytes_out(brc_netcdf_type *out, const type_out *job, const brc_dtype *from,
                     brc_error *err)
{
    char name[64];
    out->align = 1;
    if (from->item_size == 0) {
        out->how = BRC_NETCDF_LISTS;
        out->file_size = sizeof(nc_vlen_t);
        return define_simple(out, job->types, "bytes", err);
    }
    if (from->klass == BRC_CLASS_BYTES) {
        out->id = out->number = NC_CHAR;
        out->chars = from->item_size > 1 ? from->item_size : 0;
        return BRC_OK;
    }
    snprintf(name, sizeof(name), "opaque_%zu", from->item_size);
    return define_simple(out, job->types, name, err);
}

static void string_out(brc_netcdf_type *out, const brc_dtype *from)
{
    out->how = from->item_size ? BRC_NETCDF_UTF32 : BRC_NETCDF_STRINGS;
    out->id = out->number = NC_STRING;
    out->file_size = sizeof(char *);
    out->align = sizeof(char *);
}

static int any_type_out(brc_netcdf_type *out, const type_out *job, const brc_dtype *from,
                        brc_error *err)
{
    memset(out, 0, sizeof(*out));
    out->from = from;
    out->file_size = out->here_size = from->item_size;
    out->align = 1;
    switch (from->klass) {
    case BRC_CLASS_BOOL:
        out->id = out->number = NC_BYTE;
        return BRC_OK;
    case BRC_CLASS_TIME:
        out->id = out->number = NC_INT64;
        out->align = out->file_size;
        return BRC_OK;
    case BRC_CLASS_INT:
    case BRC_CLASS_UINT:
    case BRC_CLASS_FLOAT:
        number_out(out, from);
        return out->id == NC_NAT ? no_type(from, err) : BRC_OK;
    case BRC_CLASS_COMPLEX:
        return complex_out(out, job, from, err);
    case BRC_CLASS_STRING:
        string_out(out, from);
        return BRC_OK;
    case BRC_CLASS_RAW:
    case BRC_CLASS_BYTES:
        return bytes_out(out, job, from, err);
    case BRC_CLASS_STRUCT:
        return struct_out(out, job, from, err);
    default:
        return no_type(from, err);
    }
}

int brc_netcdf_type_out(brc_netcdf_type *out, brc_netcdf_types *types, const brc_dtype *from,
                        int classic, brc_error *err)
{
    type_out job = { types, classic, 0 };
    int rc = any_type_out(out, &job, from, err);
    if (rc == BRC_OK && classic && (out->id > NC_UINT64 || out->id == NC_NAT))
        rc = brc_fail(err, BRC_EUNSUPPORTED,
                      "classic NetCDF has no type for %s: write NetCDF-4 (--format netcdf)",
                      from->name);
    if (rc < 0)
        brc_netcdf_type_free(out);
    return rc;
}

/* ---- wider numbers -------------------------------------------- */

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Every value is one of float32; so are the bits of a NaN that there are. */
static float widened(const brc_dtype *from, const uint8_t *element)
{
    uint32_t bits = element[0];
    if (from->item_size == 2)
        bits |= (uint32_t)element[1] << 8;
    if (strcmp(from->name, "bfloat16") == 0)
        return float_of_bits(bits << 16);
    if (strcmp(from->name, "float16") == 0 && (bits & 0x7C00) == 0x7C00)
        return float_of_bits((bits & 0x8000) << 16 | 0x7F800000 | (bits & 0x3FF) << 13);
    return (float)from->ops->number(from, element);
}

void brc_netcdf_widen(const brc_netcdf_type *type, uint8_t *file, const uint8_t *here, size_t n)
{
    for (; n > 0; n--, file += type->file_size, here += type->here_size) {
        uint8_t canonical[8];
        memcpy(canonical, here, type->here_size);
        brc_dtype_native(type->from, canonical, type->here_size);
        if (type->id == NC_FLOAT) {
            float value = widened(type->from, canonical);
            memcpy(file, &value, sizeof(value));
        } else {
            int value = (int)type->from->ops->number(type->from, canonical);
            *file = (uint8_t)value;
        }
    }
}
