/* libexec/breccia/hdf5: HDF5 files as streams of Zarr, and back. */
#include "hdf5_driver.h"

int main(int argc, char **argv)
{
    return brc_convert_main(argc, argv, &brc_hdf5_driver);
}
