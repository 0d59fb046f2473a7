/*
 * The attributes in which imports note, of a group, what its file's format has beyond Zarr: for the way
 * back. (Arrays have members of their zarr.json for this; zarr-python refuses such in groups.) xarray
 * hides them. They go when somebody removes them by name, and with the group; a client of Zarr that
 * sets all attributes anew, as xarray does where it appends, does not know them and keeps them.
 */
#ifndef BRC_BASE_WAY_BACK_H
#define BRC_BASE_WAY_BACK_H

#define BRC_NETCDF_GROUP_NOTE "_nc_note"
#define BRC_HDF5_GROUP_NOTE "_nc_hdf5"

#endif
