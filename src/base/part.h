/*
 * Parts of a source that an import cannot keep: nodes, and attributes of them. Each has a
 * path, a kind, and a sentence that names the part and the remedy.
 *
 * Whoever meets such a part fails with BRC_EUNSUPPORTED, best by brc_part_refuse(); whoever
 * imports nodes or attributes one by one puts the failure into the list and goes on with the
 * next. So one run names all of them.
 */
#ifndef BRC_BASE_PART_H
#define BRC_BASE_PART_H

#include "buf.h"
#include "hash.h"

/* ---- part -------------------------------- */

typedef enum brc_part_kind {
    BRC_PART_OTHER = 0, /* BRC_EUNSUPPORTED that nobody has said more about            */
    BRC_PART_TYPE,      /* its data type, or that of its attribute                     */
    BRC_PART_VALUE,     /* what some elements are, or the fill value                   */
    BRC_PART_FILTER,    /* how its chunks are encoded                                  */
    BRC_PART_STORAGE,   /* where its elements are                                      */
    BRC_PART_LINK,      /* a link, to where it leads                                   */
    BRC_PART_NAME,
    BRC_PART_SIZE,      /* more axes, bytes or levels than there may be                */
    BRC_PART_OBJECT     /* it is neither a group nor an array                          */
} brc_part_kind;

/* BRC_EUNSUPPORTED with the message "WHY: REMEDY". `why` names the part: "x.h5: /a is ...". A remedy
 * of NULL: it can be left out. */
int brc_part_refuse(brc_error *err, brc_part_kind kind, const char *remedy, const char *why, ...) BRC_PRINTF(4, 5);

/* A list. What is listed is bounded, since a source may have any number of such parts: the rest is
 * counted. */
typedef struct brc_parts {
    brc_buf json;          /* of those that are listed: objects with a comma between them  */
    size_t listed, last;   /* how many, and where the last one begins in `json`            */
    uint64_t n;            /* all                                                          */
    char first[488];       /* the message of the first one                                 */
    brc_id_table known;    /* by path: a part counts once                                  */
} brc_parts;
#define BRC_PARTS_INIT { BRC_BUF_INIT, 0, 0, 0, "", BRC_ID_TABLE_INIT(1) }
/* How many are listed, their bytes, and how many are counted. */
enum { BRC_PARTS_MOST = 1000, BRC_PARTS_BYTES = 1 << 20, BRC_PARTS_COUNTED = 1000000 };

/* Adds the node `path` of the source, or (not NULL) one of its attributes, which failed with `why`: 1, or 0
 * if the list has it already. BRC_ELIMIT past BRC_PARTS_COUNTED. */
BRC_MUST_USE int brc_parts_add(brc_parts *parts, const char *path, const char *attribute, const brc_error *why, brc_error *err);
/* 1 if the node is in the list. */
int brc_parts_have(const brc_parts *parts, const char *path);
/* A line that another process has written of a part, with the object that stands in its list; false lines
 * are passed over. `more` are so many that it did not list. */
BRC_MUST_USE int brc_parts_add_json(brc_parts *parts, const char *text, size_t len, brc_error *err);
void brc_parts_add_more(brc_parts *parts, uint64_t more);
/* BRC_EUNSUPPORTED that tells of the whole list: the sentence of a single part, or how many there are
 * and the first. `source` is their file. */
int brc_parts_fail(const brc_parts *parts, const char *source, brc_error *err);
/* Appends the list as a JSON array of {"path", "kind", "message", "remedy"}; a path ends in "@NAME" where it is
 * an attribute's. A last item of the kind "more" says how many are not listed. */
BRC_MUST_USE int brc_parts_write(const brc_parts *parts, brc_buf *out, brc_error *err);
void brc_parts_dispose(brc_parts *parts);

/* ---- way back -------------------------------- */

/*
 * The attributes in which imports note, of a group, what its file's format has beyond Zarr: for the way
 * back. (Arrays have members of their zarr.json for this; zarr-python refuses such in groups.) xarray
 * hides them. They go when somebody removes them by name, and with the group; a client of Zarr that
 * sets all attributes anew, as xarray does where it appends, does not know them and keeps them.
 */

#define BRC_NETCDF_GROUP_NOTE "_nc_note"
#define BRC_HDF5_GROUP_NOTE "_nc_hdf5"

#endif
