/* What the files that read HDF5's types share: hdf5_type.c, hdf5_type_whole.c. */
#ifndef BRC_CONVERT_HDF5_TYPE_PART_H
#define BRC_CONVERT_HDF5_TYPE_PART_H

#include "hdf5_type.h"

/* One type on its way: what it becomes. */
typedef struct brc_hdf5_type_part {
    hid_t file;     /* borrowed                                       */
    hid_t memory;   /* own                                            */
    size_t size;    /* in memory                                      */
    size_t at;      /* in the whole element's memory                  */
    brc_buf json;   /* its data type                                  */
    brc_json *note; /* own; NULL: none                                */
} brc_hdf5_type_part;

typedef struct brc_hdf5_type_reader {
    const brc_registry *reg;
    brc_hdf5_type *out;
    const char *label;
    int writing, depth;
} brc_hdf5_type_reader;

/* A type of a fixed size, by itself or inside others. */
BRC_MUST_USE int brc_hdf5_part_read(brc_hdf5_type_reader *r, brc_hdf5_type_part *part, brc_error *err);
void brc_hdf5_part_close(brc_hdf5_type_part *part);
/* A copy of the file's type that the caller may change. */
BRC_MUST_USE int brc_hdf5_part_copy(const brc_hdf5_type_reader *r, brc_hdf5_type_part *part, size_t size, brc_error *err);
/* A member of the note; the value is consumed. */
BRC_MUST_USE int brc_hdf5_part_note(brc_hdf5_type_part *part, const char *name, brc_json *value, brc_error *err);
int brc_hdf5_type_failed(const brc_hdf5_type_reader *r, brc_error *err);

#endif
