/*
 * decode.c - times, packed numbers and missing values of the CF conventions.
 */
#include "decode.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli.h"

#define NO_TIME INT64_MIN

/* ---- attributes -------------------------------- */

int cli_base64_double(const char *text, double *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t bytes[9] = { 0 };

    if (strlen(text) != 12 || text[11] != '=')
        return 0;
    for (int i = 0; i < 11; i++) {
        const char *digit = strchr(digits, text[i]);
        unsigned bits = digit ? (unsigned)(digit - digits) : 64;

        if (bits > 63)
            return 0;
        for (int bit = 0; bit < 6; bit++)
            if (bits >> (5 - bit) & 1)
                bytes[(i * 6 + bit) / 8] |= (uint8_t)(0x80 >> (i * 6 + bit) % 8);
    }
    memcpy(out, bytes, sizeof(*out));
    return 1;
}

/* Reads a number of an attribute, in all its digits. */
static int read_attr_number(const brc_json *value, long double *out)
{
    const char *text;
    double real;

    if (brc_json_kind(value) == BRC_JSON_STRING) {
        if (!brc_json_text(value, &text) || !cli_base64_double(text, &real))
            return 0;
        *out = real;
        return 1;
    }
    if (!brc_json_double(value, &real))
        return 0;
    *out = isfinite(real) ? strtold(brc_json_literal(value), NULL) : (long double)real;
    return 1;
}

static int fail_attr(struct cli *cli, const struct cli_variable *variable, const char *name)
{
    return cli_fail(cli, BRC_EINVAL,
                    "%s: the attribute %s is not a number, so the elements cannot be decoded",
                    variable->path, name);
}

/* Reads a number, or a list of one number; *out stays as it is if there is none. */
static int read_factor(struct cli *cli, const struct cli_variable *variable, const char *name,
                       double *out, int *given)
{
    const brc_json *value = brc_json_member(variable->attributes, name);
    long double number;

    if (!value)
        return BRC_OK;
    if (brc_json_kind(value) == BRC_JSON_ARRAY && brc_json_count(value) == 1)
        value = brc_json_first(value);
    if (brc_json_kind(value) != BRC_JSON_NUMBER || !read_attr_number(value, &number))
        return fail_attr(cli, variable, name);
    *out = (double)number;
    *given = 1;
    return BRC_OK;
}

/* Returns the number as an element of the integer type has it: -1 is 255 for uint8. */
static long double as_stored(enum cli_number number, long double value)
{
    long double low, high;

    cli_number_range(number, &low, &high);
    if (value < low && value >= -(high - low + 1) / 2)
        return value + (high - low + 1);
    return value > high && value <= high - low ? value - (high - low + 1) : value;
}

static int add_missing(struct cli *cli, const struct cli_variable *variable, const char *name,
                       const brc_json *value, struct cli_decoder *out)
{
    long double number;

    if (!read_attr_number(value, &number))
        return fail_attr(cli, variable, name);
    if (isnan(number) || out->nmissing == CLI_MISSING_MOST)
        return BRC_OK;
    if (out->read != out->stored)
        number = as_stored(out->read, number);
    out->missing[out->nmissing++] = number;
    return BRC_OK;
}

static int read_missing(struct cli *cli, const struct cli_variable *variable, const char *name,
                        struct cli_decoder *out, int *given)
{
    const brc_json *value = brc_json_member(variable->attributes, name);

    if (!value || brc_json_kind(value) == BRC_JSON_NULL)
        return BRC_OK;
    *given = 1;
    if (brc_json_kind(value) != BRC_JSON_ARRAY)
        return add_missing(cli, variable, name, value, out);
    for (value = brc_json_first(value); value; value = brc_json_next(value))
        CLI_TRY(add_missing(cli, variable, name, value, out));
    return BRC_OK;
}

/* Reads the number's type as _Unsigned says it. */
static void read_unsigned(const struct cli_variable *variable, struct cli_decoder *out)
{
    const char *word = cli_variable_text(variable, "_Unsigned");

    if (word && strcmp(word, "true") == 0 && out->stored >= CLI_I8 && out->stored <= CLI_I64)
        out->read = out->stored + (CLI_U8 - CLI_I8);
    if (word && strcmp(word, "false") == 0 && out->stored >= CLI_U8 && out->stored <= CLI_U64)
        out->read = out->stored - (CLI_U8 - CLI_I8);
}

static int read_units(struct cli *cli, const struct cli_variable *variable, struct cli_decoder *out)
{
    const char *units = cli_variable_text(variable, "units");
    const char *dtype = cli_variable_text(variable, "dtype");
    const char *calendar = cli_variable_text(variable, "calendar");
    int is = units ? cli_time_units_read(&out->units, units, calendar) : 0;

    if (is < 0)
        return cli_fail(cli, BRC_EINVAL,
                        "%s: a time in the units '%s' and the calendar '%s' cannot be decoded",
                        variable->path, units, calendar ? calendar : "standard");
    if (is)
        out->seen = CLI_TIME;
    /* A number of days may be anything, so xarray notes what was a time when it was written. */
    if (!is && units && dtype && strncmp(dtype, "timedelta64", strlen("timedelta64")) == 0)
        out->units.unit = cli_span_unit(units);
    if (!is && out->units.unit > 0)
        out->seen = CLI_SPAN;
    return BRC_OK;
}

/* Reads the units of "numpy.datetime64" and "numpy.timedelta64". */
static void read_native_time(const brc_array_info *info, struct cli_decoder *out)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = { { "W", INT64_C(604800000000000) }, { "D", INT64_C(86400000000000) },
                  { "h", INT64_C(3600000000000) },   { "m", INT64_C(60000000000) },
                  { "s", 1000000000 },               { "ms", 1000000 },
                  { "us", 1000 },                    { "\xce\xbcs", 1000 },
                  { "ns", 1 } };
    brc_json *dtype;
    const brc_json *config;
    const int is_span = strstr(info->dtype, "{\"name\":\"numpy.timedelta64\"") == info->dtype;
    int64_t factor = 1;

    if ((!is_span && !strstr(info->dtype, "\"numpy.datetime64\"")) ||
        brc_json_parse(&dtype, info->dtype, strlen(info->dtype), 0, NULL) < 0)
        return;
    config = brc_json_member(dtype, "configuration");
    brc_json_int(brc_json_member(config, "scale_factor"), 1, 1000000000, &factor);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (brc_json_is(brc_json_member(config, "unit"), units[i].name) &&
            !__builtin_mul_overflow(units[i].ns, factor, &out->units.unit)) {
            out->units.calendar = CLI_PROLEPTIC;
            out->stored = out->read = CLI_I64;
            out->seen = is_span ? CLI_SPAN : CLI_TIME;
            out->native = 1;
            out->missing[out->nmissing++] = (long double)NO_TIME;
            out->writes_missing = 1;
        }
    brc_json_free(dtype);
}

int cli_decoder_read(struct cli *cli, const struct cli_variable *variable,
                     const brc_array_info *info, struct cli_decoder *out)
{
    int masked = 0;

    *out = (struct cli_decoder){ .path = variable->path, .item = info->item_size, .scale = 1 };
    out->stored = out->read = cli_number_of(info);
    if (out->stored == CLI_TIME)
        out->stored = CLI_NO_NUMBER;
    if (out->stored == CLI_NO_NUMBER || out->stored == CLI_BY_TEXT || out->stored == CLI_BOOL) {
        out->stored = out->read = out->seen = CLI_NO_NUMBER;
        read_native_time(info, out);
        return BRC_OK;
    }
    read_unsigned(variable, out);
    out->seen = out->read;
    CLI_TRY(read_factor(cli, variable, "scale_factor", &out->scale, &out->is_packed));
    CLI_TRY(read_factor(cli, variable, "add_offset", &out->offset, &out->is_packed));
    if (out->scale == 0)
        return cli_fail(cli, BRC_EINVAL, "%s: the attribute scale_factor is 0", variable->path);
    CLI_TRY(read_missing(cli, variable, "_FillValue", out, &masked));
    CLI_TRY(read_missing(cli, variable, "missing_value", out, &masked));
    out->writes_missing = out->nmissing > 0;
    if (out->is_packed)
        out->seen = CLI_F64;
    else if (out->nmissing > 0 && cli_number_is_int(out->read))
        out->seen = cli_number_size(out->read) <= 2 ? CLI_F32 : CLI_F64;
    CLI_TRY(read_units(cli, variable, out));
    if (cli_decoder_has_times(out) && out->read == CLI_I64 && out->nmissing < CLI_MISSING_MOST) {
        out->missing[out->nmissing++] = (long double)NO_TIME; /* xarray writes NaT so */
        out->writes_missing = 1;
    }
    return BRC_OK;
}

int cli_decoder_open(struct cli *cli, struct cli_decoder *out)
{
    const brc_array_info *info = brc_array_describe(cli->array);
    struct cli_variable variable;
    int rc = cli_variable_read(cli, cli->session, info->path, &variable);

    if (rc >= 0)
        rc = cli_decoder_read(cli, &variable, info, out);
    cli_variable_free(&variable);
    return rc;
}

int cli_decoder_changes(const struct cli_decoder *decoder)
{
    return decoder->stored != CLI_NO_NUMBER && !decoder->native &&
           (decoder->seen != decoder->stored || decoder->nmissing > 0);
}

int cli_decoder_has_times(const struct cli_decoder *decoder)
{
    return decoder->seen == CLI_TIME || decoder->seen == CLI_SPAN;
}

const char *cli_decoder_calendar(const struct cli_decoder *decoder)
{
    static const char *const names[] = { "standard", "proleptic_gregorian", "julian",
                                         "noleap",   "all_leap",            "360_day" };

    return decoder->seen == CLI_TIME ? names[decoder->units.calendar] : NULL;
}

const char *cli_decoder_dtype(const struct cli_decoder *decoder)
{
    return decoder->seen == CLI_TIME   ? "datetime"
           : decoder->seen == CLI_SPAN ? "timedelta"
                                       : cli_number_name(decoder->seen);
}

const char *cli_decoder_descr(const struct cli_decoder *decoder)
{
    static const char *const names[] = { [CLI_I8] = "|i1",  [CLI_I16] = "<i2", [CLI_I32] = "<i4",
                                         [CLI_I64] = "<i8", [CLI_U8] = "|u1",  [CLI_U16] = "<u2",
                                         [CLI_U32] = "<u4", [CLI_U64] = "<u8", [CLI_F16] = "<f2",
                                         [CLI_F32] = "<f4", [CLI_F64] = "<f8",
                                         [CLI_TIME] = "<M8[ns]", [CLI_SPAN] = "<m8[ns]" };

    return names[decoder->seen];
}

/* ---- decoding -------------------------------- */

static int is_missing(const struct cli_decoder *decoder, long double number)
{
    if (isnan(number))
        return 1;
    for (int i = 0; i < decoder->nmissing; i++)
        if (number == decoder->missing[i])
            return 1;
    return 0;
}

/* Makes nanoseconds of a number of units. Returns 0 if they do not fit. */
static int decode_span(const struct cli_decoder *decoder, struct cli_value *value)
{
    const long double most = 9223372036854775807.0L;

    value->number = rintl(value->number * (long double)decoder->units.unit);
    return value->number <= most && value->number >= -most;
}

int cli_decode(const struct cli_decoder *decoder, const void *element, struct cli_value *out)
{
    long double number = cli_number_get(decoder->read, element);
    double real = (double)number;

    out->is_missing = is_missing(decoder, number);
    out->number = out->is_missing ? NAN : number;
    if (out->is_missing)
        return 1;
    if (decoder->is_packed) {
        real *= decoder->scale;
        real += decoder->offset;
        out->number = real;
    }
    if (decoder->seen == CLI_SPAN)
        return decode_span(decoder, out);
    if (decoder->seen != CLI_TIME)
        return 1;
    if (decoder->is_packed || !(cli_number_is_int(decoder->read)))
        return cli_moment_later_real(&out->moment, &decoder->units, real);
    if (number > INT64_MAX)
        return 0;
    return cli_moment_later(&out->moment, &decoder->units, (int64_t)number);
}

static int fail_far(struct cli *cli, const struct cli_decoder *decoder)
{
    return cli_fail(cli, BRC_EINVAL, "%s has a time that is too far away to be decoded: read it "
                                     "without --decode", decoder->path);
}

/* Writes the shortest text that reads back as the same float. */
static void float_text(char out[CLI_DOUBLE_CAP], float value)
{
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(out, CLI_DOUBLE_CAP, "%.*g", digits, (double)value);
        if (strtof(out, NULL) == value)
            break;
    }
}

static void number_text(char out[CLI_DOUBLE_CAP], enum cli_number seen, long double number)
{
    if (isnan(number))
        snprintf(out, CLI_DOUBLE_CAP, "nan");
    else if (isinf(number))
        snprintf(out, CLI_DOUBLE_CAP, number < 0 ? "-inf" : "inf");
    else if (cli_number_is_int(seen))
        snprintf(out, CLI_DOUBLE_CAP, "%.0Lf", number);
    else if (seen == CLI_F64)
        cli_format_double(out, (double)number);
    else
        float_text(out, (float)number);
    if (!cli_number_is_int(seen) && isfinite(number) && !strpbrk(out, ".e"))
        snprintf(out + strlen(out), 3, ".0");
}

const char *cli_value_text(const struct cli_decoder *decoder, const struct cli_value *value,
                           char out[CLI_MOMENT_CAP])
{
    if (!cli_decoder_has_times(decoder))
        number_text(out, decoder->seen, value->number);
    else if (value->is_missing)
        snprintf(out, CLI_MOMENT_CAP, "NaT");
    else if (decoder->seen == CLI_SPAN)
        cli_span_text(out, (int64_t)value->number, decoder->units.unit);
    else
        cli_moment_text(out, decoder->units.calendar, &value->moment);
    return out;
}

int cli_decode_text(struct cli *cli, const struct cli_decoder *decoder, const void *element,
                    int form, char out[CLI_MOMENT_CAP])
{
    char text[CLI_MOMENT_CAP];
    struct cli_value value;
    int is_time = cli_decoder_has_times(decoder);
    const char *quote = "", *shown = text;

    if (!cli_decode(decoder, element, &value))
        return fail_far(cli, decoder);
    cli_value_text(decoder, &value, text);
    if (form == BRC_ELEMENT_JSON && !is_time && !isfinite(value.number))
        shown = isnan(value.number) ? "NaN" : value.number < 0 ? "-Infinity" : "Infinity";
    if (form == BRC_ELEMENT_JSON && (is_time || !isfinite(value.number)))
        quote = "\"";
    snprintf(out, CLI_MOMENT_CAP, "%s%.40s%s", quote, shown, quote);
    return BRC_OK;
}

int cli_decode_bytes(struct cli *cli, const struct cli_decoder *decoder, const void *element,
                     void *out)
{
    struct cli_value value;
    __int128 ns = NO_TIME;

    if (!cli_decode(decoder, element, &value))
        return fail_far(cli, decoder);
    if (decoder->seen == CLI_F16) {
        uint16_t nan = 0x7e00;

        memcpy(out, value.is_missing ? (const void *)&nan : element, 2);
        return 2;
    }
    if (decoder->seen == CLI_SPAN)
        return (int)cli_number_put(CLI_TIME, value.is_missing ? NO_TIME : value.number, out);
    if (decoder->seen != CLI_TIME)
        return (int)cli_number_put(decoder->seen, value.number, out);
    if (decoder->units.calendar > CLI_PROLEPTIC)
        return cli_fail(cli, BRC_EUNSUPPORTED,
                        "%s has times of the calendar %s, which NumPy lacks: use --format json or "
                        "csv", decoder->path, cli_decoder_calendar(decoder));
    if (!value.is_missing)
        ns = (__int128)value.moment.day * INT64_C(86400000000000) + value.moment.ns;
    if (ns != (int64_t)ns)
        return cli_fail(cli, BRC_EINVAL,
                        "%s has a time that datetime64[ns] cannot hold: use --format json or csv",
                        decoder->path);
    return (int)cli_number_put(CLI_TIME, (long double)(int64_t)ns, out);
}

/* ---- encoding -------------------------------- */

static int fail_not_whole(struct cli *cli, const struct cli_decoder *decoder,
                          const struct cli_value *value)
{
    char text[CLI_MOMENT_CAP];

    return cli_fail(cli, BRC_EINVAL, "%s holds whole numbers of its units, and %s is not one",
                    decoder->path, cli_value_text(decoder, value, text));
}

/* Sets *number to the stored number of a value that is not missing. */
static int encode_number(struct cli *cli, const struct cli_decoder *decoder,
                         const struct cli_value *value, long double *number)
{
    double real;
    int64_t whole;
    int is_whole = 1;

    *number = value->number;
    if (decoder->seen == CLI_TIME) {
        is_whole = cli_moment_number(&value->moment, &decoder->units, &whole, &real);
        *number = is_whole ? (long double)whole : (long double)real;
    } else if (decoder->seen == CLI_SPAN) {
        is_whole = (int64_t)value->number % decoder->units.unit == 0;
        *number = is_whole ? (long double)((int64_t)value->number / decoder->units.unit)
                           : value->number / (long double)decoder->units.unit;
    }
    if (!is_whole && cli_number_is_int(decoder->stored) && !decoder->is_packed)
        return fail_not_whole(cli, decoder, value);
    if (decoder->is_packed)
        *number = ((double)*number - decoder->offset) / decoder->scale;
    return BRC_OK;
}

/* Writes a value for a message. */
static const char *shown_value(const struct cli_decoder *decoder, const struct cli_value *value,
                               char out[CLI_MOMENT_CAP])
{
    if (decoder->seen == CLI_SPAN)
        return cli_value_text(decoder, value, out);
    number_text(out, CLI_F64, value->number);
    return out;
}

int cli_encode(struct cli *cli, const struct cli_decoder *decoder, const struct cli_value *value,
               void *element)
{
    long double number = decoder->nmissing ? decoder->missing[0] : NAN, low, high;
    int is_int = cli_number_is_int(decoder->read);
    char text[CLI_MOMENT_CAP];

    if (value->is_missing && is_int && !decoder->writes_missing)
        return cli_fail(cli, BRC_EINVAL,
                        "%s has neither _FillValue nor missing_value, so a missing value cannot be "
                        "written", decoder->path);
    if (!value->is_missing)
        CLI_TRY(encode_number(cli, decoder, value, &number));
    if (is_int) {
        number = rintl(number);
        cli_number_range(decoder->read, &low, &high);
        if (!(number >= low && number <= high))
            return cli_fail(cli, BRC_EINVAL, "%s does not fit into %s, which holds %s",
                            shown_value(decoder, value, text), decoder->path,
                            cli_number_name(decoder->read));
        if (!value->is_missing && is_missing(decoder, number))
            return cli_fail(cli, BRC_EINVAL,
                            "%s would be stored in %s as the number that means missing",
                            shown_value(decoder, value, text), decoder->path);
    }
    if (decoder->stored == CLI_F16)
        return cli_fail(cli, BRC_EUNSUPPORTED, "%s holds float16, which --decode does not write",
                        decoder->path);
    cli_number_put(decoder->read, number, element);
    return BRC_OK;
}

int cli_value_read(struct cli *cli, const struct cli_decoder *decoder, const char *text,
                   struct cli_value *out)
{
    struct cli_moment to;
    int64_t ns;
    char *end;

    *out = (struct cli_value){ .number = NAN };
    if (cli_decoder_has_times(decoder))
        text = cli_unquoted(cli, text);
    if (strcasecmp(text, "nan") == 0 || strcasecmp(text, "nat") == 0) {
        out->is_missing = 1;
        return BRC_OK;
    }
    if (decoder->seen == CLI_TIME) {
        if (cli_moment_read(&out->moment, &to, decoder->units.calendar, text))
            return BRC_OK;
        return cli_fail(cli, BRC_EINVAL,
                        "'%s' is not a date of %s, such as 2020-05-01T12:00, in the calendar %s",
                        text, decoder->path, cli_decoder_calendar(decoder));
    }
    if (decoder->seen == CLI_SPAN) {
        if (!cli_span_read(&ns, decoder->units.unit, text))
            return cli_fail(cli, BRC_EINVAL, "'%s' is not a duration of %s, such as 36h or 2D",
                            text, decoder->path);
        out->number = (long double)ns;
        return BRC_OK;
    }
    out->number = strtold(text, &end);
    if (end == text || *end)
        return cli_fail(cli, BRC_EINVAL, "'%s' is not a number, as %s has them", text,
                        decoder->path);
    if (decoder->seen == CLI_F64)
        out->number = strtod(text, NULL);
    return BRC_OK;
}
