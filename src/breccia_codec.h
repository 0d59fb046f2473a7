/*
 * breccia_codec.h - for people who add codecs and data types.
 *
 * breccia.h is for users and promises more: what is here may change with a minor
 * version. The built-in codecs (codecs/) and data types use nothing else.
 *
 * A codec is two things. Its specification (brc_codec_spec) says what the name
 * in zarr.json means: which configuration is valid, and what the codec does to
 * the shape, data type and length that it is given. An implementation
 * (brc_codec_impl) does the work; there may be several for one specification,
 * the usable one of the highest rank runs, and metadata never names it.
 *
 * Three rules hold for every table of functions here.
 *  - `size` comes first and is sizeof the structure; fields are only appended.
 *    A field that is absent or zero has the meaning that its comment gives.
 *  - `ctx` is the first argument of every function. `destroy(ctx)` is called
 *    once, when the registry is freed or the registration fails.
 *  - Functions run on several threads at once with one shared `state`; only
 *    `scratch` belongs to one thread.
 */
#ifndef BRECCIA_CODEC_H
#define BRECCIA_CODEC_H

#include "breccia_json.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct brc_span {
    const uint8_t *data;
    size_t len;
} brc_span;

/* ---- errors and bytes ------------------------------------------------------ */

/* Writes the error (if err is not NULL) and returns `code`. The message is one sentence
 * that names the thing and the remedy, if there is one, without a full stop. */
BRC_API int brc_fail(brc_error *err, int code, const char *format, ...) BRC_PRINTF(3, 4);
/* Puts "text: " in front of the message. */
BRC_API void brc_context(brc_error *err, const char *format, ...) BRC_PRINTF(2, 3);

/* Makes room for `more` bytes after buf->len. Fails with BRC_ELIMIT past buf->limit or
 * the end of fixed memory, and with BRC_ENOMEM if memory runs out. After success
 * buf->data is not NULL, even for no bytes at all, unless it is fixed memory. */
BRC_API BRC_MUST_USE int brc_buf_reserve(brc_buf *buf, size_t more, brc_error *err);
BRC_API BRC_MUST_USE int brc_buf_append(brc_buf *buf, const void *data, size_t len, brc_error *err);
/* Appends text, and a zero byte that len does not count: data is a C string. */
BRC_API BRC_MUST_USE int brc_buf_printf(brc_buf *buf, brc_error *err, const char *format, ...) BRC_PRINTF(3, 4);

/* ---- data types -------------------------------------------------------------- */

enum {
    BRC_CLASS_BOOL = 1, BRC_CLASS_INT, BRC_CLASS_UINT, BRC_CLASS_FLOAT, BRC_CLASS_COMPLEX,
    BRC_CLASS_RAW, BRC_CLASS_STRING, BRC_CLASS_BYTES, BRC_CLASS_TIME, BRC_CLASS_STRUCT,
    BRC_CLASS_OPTIONAL
};

typedef struct brc_dtype brc_dtype;

/* How brc_dtype_ops.print writes an element. */
enum {
    BRC_PRINT_FILL = 0, /* fill_value JSON: parsing gives the same bits again */
    BRC_PRINT_JSON = 1, /* JSON for people: a NaN's payload may be lost       */
    BRC_PRINT_TEXT = 2  /* as NumPy prints it: no quotes                      */
};

/* Elements are in canonical form: little-endian, packed. */
typedef struct brc_dtype_ops {
    size_t size;
    /* appends one element read from a fill_value; BRC_EINVAL says what is wrong */
    int (*parse)(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err);
    int (*print)(const brc_dtype *type, const uint8_t *element, size_t len, int how, brc_buf *out, brc_error *err);
    /* an element as a double, for differences; NULL: elements are not numbers */
    double (*number)(const brc_dtype *type, const uint8_t *element);
    /* n elements to the other byte order; dst may be src. NULL: swap_unit is enough.
     * For a type with parts of several widths, swap_unit is the element's size. */
    void (*swap)(const brc_dtype *type, uint8_t *dst, const uint8_t *src, size_t n);
    /* n stored elements made canonical: bits that carry no value are corrected. NULL:
     * every bit pattern is canonical. */
    void (*normalize)(const brc_dtype *type, uint8_t *data, size_t n);
    /* For types whose elements people do not type like a fill_value. Returns 1 after it
     * has appended the element, 0 if parse() is to read the text. `json` is the text as
     * JSON, NULL if it is not JSON. Without this function parse() reads JSON as it is,
     * and other text as a JSON string. */
    int (*scan)(const brc_dtype *type, const char *text, const brc_json *json, brc_buf *out, brc_error *err);
} brc_dtype_ops;

/* A data type bound to its configuration: immutable, shared by all threads. */
struct brc_dtype {
    size_t size;
    const char *json;  /* as zarr.json has it: "\"float32\"", or an object      */
    const char *name;  /* "float32"                                             */
    int klass;         /* BRC_CLASS_*                                           */
    size_t item_size;  /* bytes per element; 0: variable length                 */
    size_t swap_unit;  /* bytes that are reversed for the other byte order; 1: none */
    unsigned bits;     /* that carry a value; 8 * item_size except in sub-byte types */
    const char *npy;   /* NumPy's descr in little-endian, "<f4"; NULL: none     */
    const brc_dtype_ops *ops;
    void *state;       /* the specification's own                               */
    const brc_registry *registry; /* set before open(), for types that hold others */
    const brc_dtype *inner; /* for BRC_CLASS_OPTIONAL: the type of the elements that are
                               present. A stored element is a byte, 0 or 1, and one of
                               these, zero if it is missing; with a variable length it is
                               no bytes, or a 1 and the bytes of one of these  */
};

typedef struct brc_dtype_spec {
    size_t size;
    const char *name;  /* as in zarr.json: a registered name or a URI           */
    void *ctx;
    /* 1 if `name` belongs to the family that this specification describes ("r24" to
     * r<bits>); NULL: it describes only its own name */
    int (*match)(void *ctx, const char *name);
    /* fills in `out` except registry; config may be NULL. If it leaves out->json NULL,
     * that is made from name and config */
    int (*open)(void *ctx, brc_dtype *out, const char *name, const brc_json *config, brc_error *err);
    void (*close)(void *ctx, brc_dtype *type); /* NULL: nothing to release      */
    void (*destroy)(void *ctx);
    const char *owner; /* who registers it, for messages; NULL: "a plug-in"     */
} brc_dtype_spec;

/* ---- codecs -------------------------------------------------------------------- */

/* What lies between two codecs: an array in C order, or bytes. */
typedef struct brc_proto {
    size_t size;
    int ndim;                     /* -1: bytes                                  */
    uint64_t shape[BRC_MAX_NDIM];
    const brc_dtype *dtype;       /* of the array; for bytes, of the array that
                                     they came from                             */
    uint64_t len;                 /* exact length in bytes; BRC_LEN_VARIES      */
    uint64_t max_len;             /* of any valid form; used as a limit         */
    const brc_registry *registry; /* for data types and inner chains            */
    brc_span fill;                /* the fill value, one canonical element; a codec
                                     that changes values or the type changes it
                                     too; data NULL: not known                  */
    uint32_t flags;               /* set by open() in `out`: BRC_CODEC_* that this
                                     configuration adds to the specification's  */
    uint32_t reserved;            /* 0                                          */
} brc_proto;
#define BRC_LEN_VARIES UINT64_MAX

enum { BRC_ARRAY_TO_ARRAY = 1, BRC_ARRAY_TO_BYTES = 2, BRC_BYTES_TO_BYTES = 3 };
enum {
    BRC_CODEC_LOSSY = 1,     /* decoding does not always give back what was encoded */
    BRC_CODEC_NEEDS_FILL = 2 /* decoding needs the fill value: proto.fill          */
};

typedef struct brc_codec_spec {
    size_t size;
    const char *name;
    int kind;                 /* BRC_ARRAY_TO_ARRAY ...                         */
    uint32_t flags;
    void *ctx;
    /* Checks the configuration (NULL if there is none) against `in`, derives `out`
     * (which arrives as a copy of `in`; for bytes out set ndim to -1, len and
     * max_len), and makes the immutable state. *identity set to 1 says that for this
     * input both directions copy the bytes unchanged. */
    int (*open)(void *ctx, void **state, const brc_json *config, const brc_proto *in, brc_proto *out,
                int *identity, brc_error *err);
    void (*close)(void *ctx, void *state);      /* NULL: nothing to release      */
    /* appends the configuration object in full, for new metadata; NULL: none */
    int (*write_config)(void *ctx, const void *state, brc_buf *out, brc_error *err);
    void (*destroy)(void *ctx);
    const char *owner;       /* who registers it, for messages; NULL: "a plug-in"     */
} brc_codec_spec;

/* Elements of an array: count[i] > 0 of them along axis i, from start[i] on. */
typedef struct brc_box {
    size_t size;
    uint64_t start[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
} brc_box;
#define BRC_BOX_INIT { sizeof(brc_box), { 0 }, { 0 } }

typedef struct brc_codec_impl {
    size_t size;
    const char *spec;         /* the specification's name                        */
    const char *name;         /* its own: "libzstd"                              */
    int rank;                 /* the usable one of the highest rank runs         */
    int memory;               /* BRC_MEMORY_*: what src and dst point to         */
    void *ctx;
    int (*probe)(void *ctx);  /* 0: cannot run on this machine; NULL: always can */
    /* one per thread, for all chains that the thread runs: a compressor's context, for
     * instance. Take parameters from `state` at each call; the one here is that of the
     * first call. NULL: none */
    int (*scratch_new)(void *ctx, void **scratch, const void *state, brc_error *err);
    void (*scratch_free)(void *ctx, void *scratch);
    /* Both append to `dst`, which is empty. Call brc_buf_reserve() on it first: it may be
     * the caller's own memory or have a limit. src and dst never overlap; src.data is not
     * NULL, even if src is empty. src may be hostile: whatever it holds, decode must not
     * read outside it or write past dst. */
    int (*encode)(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst, brc_error *err);
    int (*decode)(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst, brc_error *err);
    /* n at once; status[i] is the i-th's code. The result and err are those of the first
     * item that fails. NULL: one at a time. */
    int (*encode_batch)(void *ctx, const void *state, void *scratch, size_t n, const brc_span *src,
                        brc_buf *const *dst, int *status, brc_error *err);
    int (*decode_batch)(void *ctx, const void *state, void *scratch, size_t n, const brc_span *src,
                        brc_buf *const *dst, int *status, brc_error *err);
    void (*destroy)(void *ctx);
    const char *owner;       /* who registers it, for messages; NULL: "a plug-in"     */
    /* For a codec that takes an array of elements of a fixed size: like decode, for a
     * caller that needs only the elements in `box` of that array. dst gets its whole
     * length; the other elements may hold anything. NULL: decode is used. */
    int (*decode_box)(void *ctx, const void *state, void *scratch, brc_span src, const brc_box *box,
                      brc_buf *dst, brc_error *err);
    /* For an array->array codec with decode_box: the box of the encoded array that
     * decode_box needs for these elements; the rest of its src may be anything.
     * NULL: it needs all of it. */
    void (*source_box)(void *ctx, const void *state, const brc_box *box, brc_box *out);
    /* For a bytes->bytes codec whose decoded length is known: like decode, for a caller that needs
     * only the bytes from `from` to before `to`. dst gets its whole length; the other bytes
     * may hold anything, and need not be decoded. NULL: decode is used. */
    int (*decode_part)(void *ctx, const void *state, void *scratch, brc_span src, uint64_t from, uint64_t to,
                       brc_buf *dst, brc_error *err);
} brc_codec_impl;

/* Each copies the structure and its names. BRC_EEXISTS: the name is taken, and the
 * message says by whom; core names are always taken. BRC_EMISUSE: the registry is in
 * use and can no longer change. Add a specification before its implementations. */
BRC_API BRC_MUST_USE int brc_registry_add_dtype(brc_registry *reg, const brc_dtype_spec *spec, brc_error *err);
BRC_API BRC_MUST_USE int brc_registry_add_codec(brc_registry *reg, const brc_codec_spec *spec, brc_error *err);
BRC_API BRC_MUST_USE int brc_registry_add_impl(brc_registry *reg, const brc_codec_impl *impl, brc_error *err);
/* Adds another name for a codec that was added. Such a name is read in stored arrays, but
 * never written. */
BRC_API BRC_MUST_USE int brc_registry_add_alias(brc_registry *reg, const char *alias, const char *codec, brc_error *err);

/* ---- plug-ins ------------------------------------------------------------------------
 *
 * A plug-in is a shared object that defines brc_plugin_init(); brc_registry_load()
 * calls it, and it adds what it has:
 *
 *     int brc_plugin_init(uint32_t abi, brc_registry *reg, brc_error *err)
 *     {
 *         int rc = BRC_PLUGIN_CHECK(abi, err);
 *         return rc < 0 ? rc : brc_registry_add_codec(reg, &my_codec, err);
 *     }
 *
 * If the result is negative, the plug-in is refused and what it had added is removed,
 * with the same calls of destroy() as when the registry is freed. The shared object is
 * closed after the last destroy().
 *
 * Build it with -shared -fPIC and without -lbreccia: the functions of this header are
 * found in the program that loads it. The `breccia` command offers them, and so does a
 * program that is linked with libbreccia.so. Link a program that contains libbreccia.a
 * with -rdynamic. If libbreccia.so itself was loaded by dlopen() without RTLD_GLOBAL
 * (by another language's module, say), link the plug-in with -lbreccia. */

/* Changes when this header changes in a way that `size` cannot bridge. */
#define BRC_PLUGIN_ABI 3
#define BRC_PLUGIN_CHECK(abi, err)                                                          \
    ((abi) == BRC_PLUGIN_ABI                                                                \
         ? BRC_OK                                                                           \
         : brc_fail((err), BRC_EUNSUPPORTED,                                                \
                    "it was built for plug-in ABI %u, and this breccia has %u: build it "   \
                    "again with this breccia's headers",                                    \
                    (unsigned)BRC_PLUGIN_ABI, (unsigned)(abi)))

/* Defined by the plug-in. */
BRC_API int brc_plugin_init(uint32_t abi, brc_registry *reg, brc_error *err);

/* ---- for codecs that hold others, or change the type --------------------------------- */

/* A data type as zarr.json names it: a string, or an object with name and
 * configuration. BRC_EUNSUPPORTED if the name is not known, BRC_EINVAL if the form is
 * wrong. Release with brc_dtype_free(). */
BRC_API BRC_MUST_USE int brc_dtype_open(brc_dtype **out, const brc_registry *reg,
                                        const brc_json *json, brc_error *err);
/* The same for a type without configuration: "uint64". */
BRC_API BRC_MUST_USE int brc_dtype_open_name(brc_dtype **out, const brc_registry *reg,
                                             const char *name, brc_error *err);
BRC_API void brc_dtype_free(brc_dtype *type);
/* Appends one element read from text as people type it ("NaN", "1.5", "true", "[1,
 * 2]"): by the type's scan(), else as JSON if it is JSON, else as a JSON string. */
BRC_API BRC_MUST_USE int brc_dtype_parse_text(const brc_dtype *type, const char *text,
                                              brc_buf *out, brc_error *err);
/* Swaps the byte order of n elements of a fixed size; dst may be src. */
BRC_API void brc_dtype_swap(const brc_dtype *type, uint8_t *dst, const uint8_t *src, size_t n);
/* Makes n stored elements canonical. brc_dtype_normalizes(): 1 if that can change any. */
BRC_API void brc_dtype_normalize(const brc_dtype *type, uint8_t *data, size_t n);
BRC_API int brc_dtype_normalizes(const brc_dtype *type);

/* A chain: a codec list bound to chunks of a shape and type, immutable and shared by
 * all threads. */
typedef struct brc_chain brc_chain;
/* One worker's contexts and buffers, for any chain. */
typedef struct brc_scratch brc_scratch;

/* Binds a Zarr v3 codec list. The error says which item is wrong ("/codecs/1") and why:
 * BRC_EUNSUPPORTED if its name is not known or it cannot run here, else BRC_EINVAL.
 * `type` must outlive the chain; `fill` is copied (data NULL: not known). */
BRC_API BRC_MUST_USE int brc_chain_open(brc_chain **out, const brc_registry *reg,
                                        const brc_json *codecs, int ndim, const uint64_t *shape,
                                        const brc_dtype *type, brc_span fill, brc_error *err);
/* The same list for chunks of another shape. `chain` need not outlive it. */
BRC_API BRC_MUST_USE int brc_chain_open_like(brc_chain **out, const brc_chain *chain, int ndim,
                                             const uint64_t *shape, brc_error *err);
BRC_API void brc_chain_free(brc_chain *chain);
/* BRC_CODEC_*: the flags of all its codecs together. */
BRC_API uint32_t brc_chain_flags(const brc_chain *chain);
BRC_API uint64_t brc_chain_decoded_len(const brc_chain *chain); /* BRC_LEN_VARIES: variable */
BRC_API uint64_t brc_chain_encoded_len(const brc_chain *chain); /* the same, of stored bytes */
BRC_API uint64_t brc_chain_encoded_max(const brc_chain *chain); /* no encoder gives more   */
/* Appends the list in its full form. */
BRC_API BRC_MUST_USE int brc_chain_write(const brc_chain *chain, brc_buf *out, brc_error *err);

BRC_API BRC_MUST_USE int brc_scratch_new(brc_scratch **out, brc_error *err);
BRC_API void brc_scratch_free(brc_scratch *scratch);

/* dst is empty. Decoding gives exactly decoded_len bytes (if that is known) or fails
 * with BRC_ECORRUPT; dst may be fixed memory of that length, and the last codec then
 * writes straight into it. Elements are canonical: C order, little-endian, packed. An
 * element of variable length is its length in bytes, as a little-endian uint32, and the
 * bytes. */
BRC_API BRC_MUST_USE int brc_chain_decode(const brc_chain *chain, brc_scratch *scratch,
                                          brc_span src, brc_buf *dst, brc_error *err);
/* The same for a caller that needs only the elements in `box` of the chunk: dst gets
 * its whole length, and only those are decoded if the codecs can do that. */
BRC_API BRC_MUST_USE int brc_chain_decode_box(const brc_chain *chain, brc_scratch *scratch,
                                              brc_span src, const brc_box *box, brc_buf *dst,
                                              brc_error *err);
BRC_API BRC_MUST_USE int brc_chain_encode(const brc_chain *chain, brc_scratch *scratch,
                                          brc_span src, brc_buf *dst, brc_error *err);

#ifdef __cplusplus
}
#endif
#endif /* BRECCIA_CODEC_H */
