#include "s3_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"
#define HEX_DIGITS DIGITS "abcdef"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

#define MIB ((uint64_t)1 << 20)
#define S3_PACK_BYTES (32 * MIB)
#define S3_IDLE_S 30
#define S3_PACK_LEAST (1 * MIB)
#define S3_PACK_MOST (64 * MIB)

/* ---- configuration -------------------------------- */

/* Copies the text of an option; fails if it is not a text or is too long. */
static int option_text(char *out, size_t size, const brc_json *config, const char *name,
                       brc_error *err)
{
    const char *text;
    const brc_json *given = brc_json_member(config, name);
    out[0] = '\0';
    if (given == NULL)
        return BRC_OK;
    if (!brc_json_text(given, &text) || strlen(text) >= size)
        return brc_fail(err, BRC_EINVAL, "\"%s\" must be a text of at most %zu characters", name,
                        size - 1);
    memcpy(out, text, strlen(text) + 1);
    return BRC_OK;
}

static int is_made_of(const char *text, const char *characters)
{
    return text[strspn(text, characters)] == '\0';
}

static int check_bucket(const char *bucket, brc_error *err)
{
    const size_t len = strlen(bucket);
    if (len == 0)
        return brc_fail(err, BRC_EINVAL, "\"bucket\" is missing: name the bucket");
    if (len < 3 || !is_made_of(bucket, LOWER DIGITS ".-") || strstr(bucket, "..") != NULL ||
        strchr(".-", bucket[0]) != NULL || strchr(".-", bucket[len - 1]) != NULL)
        return brc_fail(err, BRC_EINVAL,
                        "\"%s\" is not the name of a bucket: it has 3 to 63 small letters, digits, "
                        "dots and hyphens",
                        bucket);
    return BRC_OK;
}

/* Names with other characters would be signed differently by different servers. */
static int check_prefix(char *prefix, brc_error *err)
{
    size_t len = strlen(prefix);
    while (len > 0 && prefix[len - 1] == '/')
        prefix[--len] = '\0';
    int is_bad = prefix[0] == '/' || !is_made_of(prefix, LOWER UPPER DIGITS "._-/");
    for (const char *part = prefix; len > 0 && part != NULL; part = strchr(part, '/')) {
        part += part[0] == '/';
        const size_t n = strcspn(part, "/");
        is_bad |= n == 0 || (n <= 2 && strspn(part, ".") >= n);
    }
    return is_bad ? brc_fail(err, BRC_EINVAL,
                             "\"prefix\" must be a path like \"data/2026\" of letters, digits, "
                             "dots, hyphens and underscores")
                  : BRC_OK;
}

/* Returns the length of the host's name, "[...]" included; 0: it is none. */
static size_t host_length(const char *host)
{
    size_t n;
    if (host[0] == '[') {
        n = strspn(host + 1, HEX_DIGITS ":.") + 1;
        return host[n] == ']' && n > 2 ? n + 1 : 0;
    }
    n = strspn(host, LOWER DIGITS ".-");
    return n > 0 && host[0] != '-' && host[0] != '.' ? n : 0;
}

/* Puts an endpoint into its one form: small letters, no "/" at the end, no port that the scheme
 * has anyway. */
static int settle_endpoint(char *endpoint, brc_error *err)
{
    size_t len = strlen(endpoint);
    for (size_t i = 0; i < len; i++)
        if (endpoint[i] >= 'A' && endpoint[i] <= 'Z')
            endpoint[i] = (char)(endpoint[i] - 'A' + 'a');
    if (len > 0 && endpoint[len - 1] == '/')
        endpoint[--len] = '\0';
    const int is_tls = strncmp(endpoint, "https://", 8) == 0;
    char *host = endpoint + (is_tls ? 8 : 7);
    if (is_tls || strncmp(endpoint, "http://", 7) == 0) {
        char *port = host + host_length(host), *end = port;
        unsigned long number = 1;
        if (port > host && port[0] == ':') {
            number = strspn(port + 1, DIGITS) <= 5 ? strtoul(port + 1, &end, 10) : 0;
            if (number == (is_tls ? 443UL : 80UL) && *end == '\0')
                *(end = port) = '\0';
        }
        if (port > host && *end == '\0' && number >= 1 && number <= 65535)
            return BRC_OK;
    }
    return brc_fail(err, BRC_EINVAL,
                    "\"endpoint\" must be http:// or https://, a host and perhaps a port, like "
                    "\"https://s3.example.org\"");
}

static int read_endpoint(brc_s3_config *out, const brc_json *config, brc_error *err)
{
    char standard[sizeof(out->endpoint)];
    const char *end = strncmp(out->region, "cn-", 3) == 0 ? ".cn" : "";
    snprintf(standard, sizeof(standard), "https://s3.%s.amazonaws.com%s", out->region, end);
    BRC_BACKEND_TRY(option_text(out->endpoint, sizeof(out->endpoint), config, "endpoint", err));
    if (out->endpoint[0] == '\0')
        memcpy(out->endpoint, standard, sizeof(standard));
    BRC_BACKEND_TRY(settle_endpoint(out->endpoint, err));
    out->is_standard = strcmp(out->endpoint, standard) == 0;
    return BRC_OK;
}

static int read_region(brc_s3_config *out, const brc_json *config, brc_error *err)
{
    BRC_BACKEND_TRY(option_text(out->region, sizeof(out->region), config, "region", err));
    if (out->region[0] == '\0')
        snprintf(out->region, sizeof(out->region), "us-east-1");
    return is_made_of(out->region, LOWER DIGITS "-")
               ? BRC_OK
               : brc_fail(err, BRC_EINVAL,
                          "\"region\" must be a name like \"eu-north-1\": small letters, digits "
                          "and hyphens");
}

static int read_style(brc_s3_config *out, const brc_json *config, brc_error *err)
{
    const brc_json *given = brc_json_member(config, "path_style");
    /* a certificate for *.HOST is not valid for a name with more dots */
    out->path_style = !out->is_standard || strchr(out->bucket, '.') != NULL;
    if (given != NULL && !brc_json_bool(given, &out->path_style))
        return brc_fail(err, BRC_EINVAL, "\"path_style\" must be true or false");
    if (!out->path_style && strchr(out->endpoint, '[') != NULL)
        return brc_fail(err, BRC_EINVAL,
                        "\"path_style\" must be true if the endpoint is a number");
    return BRC_OK;
}

int brc_s3_config_read(brc_s3_config *out, const brc_json *config, brc_error *err)
{
    static const char *const members[] = { "endpoint", "bucket",     "prefix",
                                           "region",   "path_style", "pack_bytes" };
    const brc_json *bytes = brc_json_member(config, "pack_bytes");
    memset(out, 0, sizeof(*out));
    out->pack_bytes = S3_PACK_BYTES;
    out->idle_s = S3_IDLE_S;
    if (config != NULL)
        BRC_BACKEND_TRY(brc_json_allow(config, members, 6, err));
    BRC_BACKEND_TRY(option_text(out->bucket, sizeof(out->bucket), config, "bucket", err));
    BRC_BACKEND_TRY(check_bucket(out->bucket, err));
    BRC_BACKEND_TRY(option_text(out->prefix, sizeof(out->prefix), config, "prefix", err));
    BRC_BACKEND_TRY(check_prefix(out->prefix, err));
    BRC_BACKEND_TRY(read_region(out, config, err));
    BRC_BACKEND_TRY(read_endpoint(out, config, err));
    BRC_BACKEND_TRY(read_style(out, config, err));
    if (bytes != NULL && (!brc_json_uint(bytes, S3_PACK_MOST, &out->pack_bytes) ||
                          out->pack_bytes < S3_PACK_LEAST))
        return brc_fail(err, BRC_EINVAL,
                        "\"pack_bytes\" must be a number from %" PRIu64 " (1 MiB) to %" PRIu64
                        " (64 MiB)",
                        S3_PACK_LEAST, S3_PACK_MOST);
    return BRC_OK;
}

int brc_s3_config_write(const brc_s3_config *config, brc_buf *out, brc_error *err)
{
    /* none of these texts has a character that JSON escapes */
    return brc_buf_printf(out, err,
                          "{\"endpoint\":\"%s\",\"bucket\":\"%s\",\"prefix\":\"%s\","
                          "\"region\":\"%s\",\"path_style\":%s,\"pack_bytes\":%" PRIu64 "}",
                          config->endpoint, config->bucket, config->prefix, config->region,
                          config->path_style ? "true" : "false", config->pack_bytes);
}

/* ---- names -------------------------------- */

void brc_s3_url(char out[BRC_S3_URL_SIZE], const brc_s3_config *config, const char *key,
                const char *query)
{
    const char *host = strstr(config->endpoint, "//") + 2;
    const int scheme = (int)(host - config->endpoint);
    if (config->path_style)
        snprintf(out, BRC_S3_URL_SIZE, "%s/%s%s%s%s%s", config->endpoint, config->bucket,
                 key[0] ? "/" : "", key, query ? "?" : "", query ? query : "");
    else
        snprintf(out, BRC_S3_URL_SIZE, "%.*s%s.%s/%s%s%s", scheme, config->endpoint,
                 config->bucket, host, key, query ? "?" : "", query ? query : "");
}

int brc_s3_is_place(const char *place, const char *id)
{
    if (strlen(place) != BRC_S3_PLACE_LEN || strncmp(place, id, strlen(id)) != 0)
        return 0;
    for (size_t i = 0; i < BRC_S3_PLACE_LEN; i++) {
        const int is_slash = i == BRC_S3_HEX || i == 2 * BRC_S3_HEX + 1;
        if (strchr(is_slash ? "/" : HEX_DIGITS, place[i]) == NULL)
            return 0;
    }
    return 1;
}

void brc_s3_key(char out[BRC_S3_KEY_SIZE], const brc_s3_config *config, const char *place)
{
    snprintf(out, BRC_S3_KEY_SIZE, "%s%s%s", config->prefix, config->prefix[0] ? "/" : "", place);
}

/* ---- XML -------------------------------- */

/*
 * The few elements that matter are found by their tags. Nothing else is believed: texts with other
 * characters than those of our own names are nobody's.
 */

/* Returns the first <NAME> before `end`, and the length of its text. NULL: there is none. */
static const char *element_find(const char *at, const char *end, const char *name, size_t *len)
{
    char open[40], shut[40];
    const int n = snprintf(open, sizeof(open), "<%s>", name);
    const int m = snprintf(shut, sizeof(shut), "</%s>", name);
    if (at >= end || n <= 0 || m <= 0)
        return NULL;
    at = memmem(at, (size_t)(end - at), open, (size_t)n);
    if (at == NULL)
        return NULL;
    at += n;
    const char *last = memmem(at, (size_t)(end - at), shut, (size_t)m);
    if (last == NULL)
        return NULL;
    *len = (size_t)(last - at);
    return at;
}

void brc_s3_element(char *out, size_t size, const char *name, const char *xml, size_t len)
{
    size_t n = 0;
    const char *text = xml != NULL ? element_find(xml, xml + len, name, &n) : NULL;
    out[0] = '\0';
    if (text == NULL || n >= size)
        return;
    for (size_t i = 0; i < n; i++)
        if (memchr(LOWER UPPER DIGITS ".-", text[i], sizeof(LOWER UPPER DIGITS ".-") - 1) == NULL)
            return;
    memcpy(out, text, n);
    out[n] = '\0';
}

/* Returns the days from 1970-01-01 to a date of the Gregorian calendar. */
static int64_t days_until(int year, int month, int day)
{
    static const int before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
    const int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    const int y = year - 1;
    return (int64_t)365 * y + y / 4 - y / 100 + y / 400 + before[month - 1] +
           (leap && month > 2) + day - 1 - 719162;
}

/* Returns the microseconds of "2026-11-29T12:00:00.000Z", or 0 if it is not a time. */
static int64_t iso_time(const char *text, size_t len)
{
    char copy[40];
    int year, month, day, hour, minute, second;
    if (len >= sizeof(copy))
        return 0;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (sscanf(copy, "%4d-%2d-%2dT%2d:%2d:%2d", &year, &month, &day, &hour, &minute,
               &second) != 6 ||
        year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 ||
        minute < 0 || minute > 59 || second < 0 || second > 60)
        return 0;
    return (((days_until(year, month, day) * 24 + hour) * 60 + minute) * 60 + second) * 1000000;
}

/* Reads one <Contents>. Returns 1 if it is a place below the folder. */
static int page_item(const char *text, size_t len, const char *folder, const char *id,
                     char place[BRC_S3_PLACE_LEN + 1], brc_kept *out)
{
    const char *end = text + len;
    size_t n;
    const size_t below = strlen(folder);
    const char *key = element_find(text, end, "Key", &n);
    /* the folder ends in ID/WRITER/, with which the place begins */
    const size_t from = below - (size_t)(2 * BRC_S3_HEX + 2);
    if (key == NULL || n != from + BRC_S3_PLACE_LEN || memcmp(key, folder, below) != 0)
        return 0;
    memcpy(place, key + from, BRC_S3_PLACE_LEN);
    place[BRC_S3_PLACE_LEN] = '\0';
    if (!brc_s3_is_place(place, id))
        return 0;
    *out = (brc_kept){ sizeof(*out), place, BRC_KEPT_PLACE | BRC_KEPT_OWN, 0, 0 };
    const char *size = element_find(text, end, "Size", &n);
    if (size != NULL && n > 0 && n <= 18 && strspn(size, DIGITS) == n)
        out->len = strtoull(size, NULL, 10);
    const char *when = element_find(text, end, "LastModified", &n);
    if (when != NULL)
        out->time_us = iso_time(when, n);
    return 1;
}

int brc_s3_page(const char *xml, size_t len, const char *folder, const char *id,
                int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to, int *more,
                char last[BRC_S3_PLACE_LEN + 1], brc_error *err)
{
    char before[BRC_S3_PLACE_LEN + 1], truncated[8];
    const char *at = xml, *end = xml + len, *text;
    size_t n = 0;
    memcpy(before, last, sizeof(before));
    if (xml == NULL || memmem(xml, len, "<ListBucketResult", 17) == NULL)
        return brc_fail(err, BRC_EIO, "the server's list of objects is not a list");
    brc_s3_element(truncated, sizeof(truncated), "IsTruncated", xml, len);
    *more = strcmp(truncated, "true") == 0;
    while ((text = element_find(at, end, "Contents", &n)) != NULL) {
        char place[BRC_S3_PLACE_LEN + 1];
        brc_kept kept;
        at = text + n;
        if (!page_item(text, n, folder, id, place, &kept))
            continue;
        if (strcmp(place, last) > 0)
            memcpy(last, place, sizeof(place));
        const int rc = each(to, &kept, err);
        if (rc != BRC_OK)
            return rc;
    }
    if (*more && strcmp(last, before) <= 0)
        return brc_fail(err, BRC_EIO,
                        "the server's list of the objects in %s does not go on: remove what "
                        "breccia has not put there",
                        folder);
    return BRC_OK;
}

/* ---- joining -------------------------------- */

size_t brc_s3_join(size_t n, brc_stored *const *items, uint64_t gap, uint64_t range, uint64_t *end)
{
    const uint64_t from = items[0]->offset;
    const uint64_t most_gap = gap > 0 ? gap : BRC_S3_GAP, most = range > 0 ? range : BRC_S3_JOINED;
    size_t taken = 1;
    *end = from + items[0]->len;
    for (; taken < n && strcmp(items[taken]->place, items[0]->place) == 0; taken++) {
        const brc_stored *item = items[taken];
        const uint64_t item_end = item->offset + item->len;
        if ((item->offset > *end && item->offset - *end > most_gap) ||
            (item_end > *end && item_end - from > most))
            break;
        if (item_end > *end)
            *end = item_end;
    }
    return taken;
}
