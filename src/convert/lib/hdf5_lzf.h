/* h5py's filter LZF, by liblzf: for reading, as other programs lack it. */
#ifndef BRC_CONVERT_LIB_HDF5_LZF_H
#define BRC_CONVERT_LIB_HDF5_LZF_H

#include "hdf5_lib.h"

#define BRC_HDF5_LZF 32000
/* The third of its values is how many bytes a chunk has. The decoder takes it for that, so a reader
 * must have compared it with the dataset's chunks: libhdf5 does not look how much came out. */
#define BRC_HDF5_LZF_BYTES 2
/* libhdf5 lets no filter set its values for elements of variable length. Chunks without that value may
 * have so many bytes; what a stream lacks of them are references that lead nowhere. */
#define BRC_HDF5_LZF_ROOM ((size_t)4 << 20)

/* Nothing happens where this build has no liblzf. */
BRC_MUST_USE int brc_hdf5_lzf_register(brc_error *err);

#endif
