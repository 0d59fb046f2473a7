/* HDF5 as a driver of src/convert/lib. */
#include "hdf5_driver.h"

#include "../lib/hdf5_lib.h"
#include "hdf5_in.h"
#include "hdf5_out.h"

/* The state is that of an import or that of an export. */
static void close_hdf5(void *state)
{
    brc_hdf5_file *file = state;
    if (file)
        file->close(file);
}

const brc_driver brc_hdf5_driver = {
    .names = BRC_NAMES_HDF5,
    .format = "HDF5",
    .prepare = brc_hdf5_plugins_load,
    .open = brc_hdf5_in_open,
    .walk = brc_hdf5_in_walk,
    .create = brc_hdf5_out_create,
    .begin = brc_hdf5_out_begin,
    .put = brc_hdf5_out_put,
    .end = brc_hdf5_out_end,
    .finish = brc_hdf5_out_finish,
    .close = close_hdf5,
};
