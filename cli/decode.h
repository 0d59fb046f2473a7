/*
 * decode.h - what the elements of an array mean by the CF conventions: times, elapsed times, packed numbers, missing
 * values.
 *
 * The rules are those of xarray, for its data of Zarr: _FillValue of floats is base64, and what is packed is float64.
 */
#ifndef BRC_CLI_DECODE_H
#define BRC_CLI_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "../src/breccia.h"
#include "cf_time.h"
#include "scalar.h"
#include "variable.h"

struct cli;

enum { CLI_MISSING_MOST = 8 };

struct cli_decoder {
    const char *path;
    size_t item;            /* bytes of an element                             */
    enum cli_number stored; /* CLI_NO_NUMBER: elements are what they are       */
    enum cli_number read;   /* the same as _Unsigned says                      */
    enum cli_number seen;   /* what decoded elements are; CLI_TIME for times, CLI_SPAN for elapsed times */
    int native;             /* they are times by their data type already       */
    int is_packed;
    double scale, offset;
    long double missing[CLI_MISSING_MOST]; /* stored numbers that mean "missing" */
    int nmissing;
    int writes_missing;     /* missing[0] may be written                       */
    struct cli_time_units units; /* of times; of elapsed times `unit` alone    */
};

/* An element. */
struct cli_value {
    int is_missing;
    long double number;        /* of elapsed times nanoseconds                 */
    struct cli_moment moment; /* of times                                      */
};

/* Reads the attributes of the array. The path of the variable outlives the decoder. */
int cli_decoder_read(struct cli *cli, const struct cli_variable *variable, const brc_array_info *info,
                     struct cli_decoder *out);
/* Does the same for cli->array. */
int cli_decoder_open(struct cli *cli, struct cli_decoder *out);
/* Tells whether decoded elements differ from stored ones. */
int cli_decoder_changes(const struct cli_decoder *decoder);
/* Tells whether decoded elements are times or elapsed times. */
int cli_decoder_has_times(const struct cli_decoder *decoder);
/* Returns the calendar of times, else NULL. */
const char *cli_decoder_calendar(const struct cli_decoder *decoder);
/* Returns the name of the data type that decoded elements have: "float64", "datetime", "timedelta". */
const char *cli_decoder_dtype(const struct cli_decoder *decoder);
/* Returns NumPy's name of that type: "<f8", "<M8[ns]". */
const char *cli_decoder_descr(const struct cli_decoder *decoder);
/* Reads a float64 in base64, as xarray writes _FillValue. Returns 0 if the text is none. */
int cli_base64_double(const char *text, double *out);
/* Decodes an element. Returns 0 if it is a time that is too far away. */
int cli_decode(const struct cli_decoder *decoder, const void *element, struct cli_value *out);
/* Writes a decoded value as text for people. */
const char *cli_value_text(const struct cli_decoder *decoder, const struct cli_value *value, char out[CLI_MOMENT_CAP]);
/* Writes a decoded element as text, in one of the forms of brc_element_format(). */
int cli_decode_text(struct cli *cli, const struct cli_decoder *decoder, const void *element, int form,
                    char out[CLI_MOMENT_CAP]);
/* Writes a decoded element as NumPy has it, and returns its size; times are nanoseconds since 1970 or elapsed ones. A negative number is
 * an error. */
int cli_decode_bytes(struct cli *cli, const struct cli_decoder *decoder, const void *element, void *out);
/* Does the reverse of cli_decode(): writes the element that is stored. */
int cli_encode(struct cli *cli, const struct cli_decoder *decoder, const struct cli_value *value, void *element);
/* Reads a value as people write it: "280.5", "nan", "2020-05-01", "36h". */
int cli_value_read(struct cli *cli, const struct cli_decoder *decoder, const char *text, struct cli_value *out);

#endif
