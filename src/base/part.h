/*
 * Parts of a source that an import cannot keep: nodes, and attributes of them. Each has a
 * path, a kind, and a sentence that names the part and the remedy.
 *
 * A function that meets such a part fails with BRC_EUNSUPPORTED, best by brc_part_refuse(); a
 * function that imports nodes or attributes one by one puts the failure into the list and goes on
 * with the next. So one run names all such parts.
 */
#ifndef BRC_BASE_PART_H
#define BRC_BASE_PART_H

#include "buf.h"
#include "hash.h"

/* ---- part -------------------------------- */

typedef enum brc_part_kind {
    BRC_PART_OTHER = 0, /* BRC_EUNSUPPORTED without a kind                             */
    BRC_PART_TYPE,      /* the data type of the node or attribute                      */
    BRC_PART_VALUE,     /* the values of some elements, or the fill value              */
    BRC_PART_FILTER,    /* the encoding of the chunks                                  */
    BRC_PART_STORAGE,   /* the place of the elements                                   */
    BRC_PART_LINK,      /* the target of a link                                        */
    BRC_PART_NAME,
    BRC_PART_SIZE,      /* too many axes, bytes or levels                              */
    BRC_PART_OBJECT     /* an object that is neither a group nor an array              */
} brc_part_kind;

/* Fails with BRC_EUNSUPPORTED and the message "WHY: REMEDY". `why` names the part: "x.h5: /a is ...". Without a
 * remedy (NULL) the message says that the part can be left out. */
int brc_part_refuse(brc_error *err, brc_part_kind kind, const char *remedy, const char *why, ...) BRC_PRINTF(4, 5);

/* A list of parts. A source may have any number of them, so the list is bounded and the rest is
 * counted. */
typedef struct brc_parts {
    brc_buf json;          /* the listed parts: objects with a comma between them          */
    size_t listed, last;   /* how many are listed, and where the last begins in `json`     */
    uint64_t n;            /* all parts                                                    */
    char first[488];       /* the message of the first part                                */
    brc_id_table known;    /* by path: each part counts once                               */
} brc_parts;
#define BRC_PARTS_INIT { BRC_BUF_INIT, 0, 0, 0, "", BRC_ID_TABLE_INIT(1) }
/* The most parts that are listed, their bytes, and the most parts that are counted. */
enum { BRC_PARTS_MOST = 1000, BRC_PARTS_BYTES = 1 << 20, BRC_PARTS_COUNTED = 1000000 };

/* Adds the node `path` of the source, or (not NULL) one of its attributes, which failed with `why`. Returns 1, or
 * 0 if the list has it already. BRC_ELIMIT past BRC_PARTS_COUNTED. */
BRC_MUST_USE int brc_parts_add(brc_parts *parts, const char *path, const char *attribute, const brc_error *why, brc_error *err);
/* Returns 1 if the node is in the list. */
int brc_parts_have(const brc_parts *parts, const char *path);
/* Adds a part from a line of another process, which has the object of that process's list; malformed lines are
 * skipped. brc_parts_add_more() adds the number of parts that the other process did not list. */
BRC_MUST_USE int brc_parts_add_json(brc_parts *parts, const char *text, size_t len, brc_error *err);
void brc_parts_add_more(brc_parts *parts, uint64_t more);
/* Fails with BRC_EUNSUPPORTED for the whole list: with the sentence of a single part, or with the number of
 * parts and the first sentence. `source`: the name of their file. */
int brc_parts_fail(const brc_parts *parts, const char *source, brc_error *err);
/* Appends the list as a JSON array of {"path", "kind", "message", "remedy"}; the path of an attribute ends in
 * "@NAME". A last item of the kind "more" tells how many parts are not listed. */
BRC_MUST_USE int brc_parts_write(const brc_parts *parts, brc_buf *out, brc_error *err);
void brc_parts_dispose(brc_parts *parts);

/* ---- way back -------------------------------- */

/*
 * The attributes in which imports record the properties of a group that its file's format has beyond
 * Zarr, so that an export can restore them. (For arrays these are members of zarr.json; zarr-python
 * refuses such members in groups.) xarray hides these attributes. They are removed by name, or with the
* group. A client of Zarr that sets all attributes again, as xarray does when it appends, does not know
 * these attributes; the key view keeps them then.
 */

#define BRC_NETCDF_GROUP_NOTE "_nc_note"
#define BRC_HDF5_GROUP_NOTE "_nc_hdf5"

#endif
