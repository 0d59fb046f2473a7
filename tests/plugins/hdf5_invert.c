/* A filter of HDF5 as a library: every bit is the other one. */
#include <H5PLextern.h>

static size_t invert_bits(unsigned flags, size_t n, const unsigned *values, size_t len,
                          size_t *size, void **data)
{
    unsigned char *bytes = *data;
    (void)flags, (void)n, (void)values, (void)size;
    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)~bytes[i];
    return len;
}

H5PL_type_t H5PLget_plugin_type(void)
{
    return H5PL_TYPE_FILTER;
}

const void *H5PLget_plugin_info(void)
{
    static const H5Z_class2_t filter = { H5Z_CLASS_T_VERS, 401,  1,    1,
                                         "invert",         NULL, NULL, invert_bits };
    return &filter;
}
