/* The converter of NetCDF files. */
#include "netcdf_driver.h"

int main(int argc, char **argv)
{
    return brc_convert_main(argc, argv, &brc_netcdf_driver);
}
