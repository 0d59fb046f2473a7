/*
 * credentials.c - credentials for servers, from where Amazon's tools have them.
 */
#include "credentials.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#include "../src/breccia_json.h"

enum { FILE_MOST = 1 << 20, NAME_MOST = 128, VALUE_MOST = 8192, PATH_MOST = 4096 };

/* The values of a profile: the values of both files together. */
struct profile {
    char name[NAME_MOST];
    char key[256], secret[512], token[VALUE_MOST], command[VALUE_MOST], endpoint[512], region[64];
    int is_there, is_other; /* is_other: it has credentials of a kind that is not read here */
};

static int no_credentials(brc_error *err, int code, const char *format, ...) BRC_PRINTF(3, 4);
static int no_credentials(brc_error *err, int code, const char *format, ...)
{
    va_list args;

    err->code = code;
    va_start(args, format);
    vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    return code;
}

static const char *variable(const char *name)
{
    const char *text = getenv(name);

    return text && text[0] ? text : NULL;
}

/* ---- files with sections -------------------------------- */

/* Reads a stream to its end. Returns NULL if it is too long, or damaged, or without memory. */
static char *whole_stream(FILE *stream)
{
    char *text = malloc(FILE_MOST + 1);
    size_t len = text ? fread(text, 1, FILE_MOST + 1, stream) : 0;

    if (!text || len > FILE_MOST || ferror(stream)) {
        free(text);
        return NULL;
    }
    text[len] = '\0';
    return text;
}

/* Returns the text of a file, "" if there is none, or NULL with an error. */
static char *file_text(const char *path, brc_error *err)
{
    char *text;
    FILE *file = path[0] ? fopen(path, "rb") : NULL;

    if (!file && path[0] && errno != ENOENT && errno != ENOTDIR) {
        no_credentials(err, BRC_EIO, "cannot read %s: %s", path, strerror(errno));
        return NULL;
    }
    if (!file)
        return strdup("");
    text = whole_stream(file);
    fclose(file);
    if (!text)
        no_credentials(err, BRC_EIO, "cannot read %s, or it is longer than 1 MiB", path);
    return text;
}

/* Cuts white space off both ends. */
static char *without_space(char *text)
{
    char *end;

    while (isspace((unsigned char)*text))
        text++;
    end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return text;
}

static void profile_value(struct profile *p, const char *name, const char *value)
{
    static const char *const others[] = { "role_arn", "sso_session", "sso_start_url",
                                          "credential_source",
                                          "web_identity_token_file" };
    const struct {
        const char *name;
        char *to;
        size_t size;
    } known[] = {
        { "aws_access_key_id", p->key, sizeof(p->key) },
        { "aws_secret_access_key", p->secret, sizeof(p->secret) },
        { "aws_session_token", p->token, sizeof(p->token) },
        { "credential_process", p->command, sizeof(p->command) },
        { "endpoint_url", p->endpoint, sizeof(p->endpoint) },
        { "region", p->region, sizeof(p->region) },
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcasecmp(name, known[i].name) == 0 && !known[i].to[0])
            snprintf(known[i].to, known[i].size, "%s", value);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        p->is_other |= strcasecmp(name, others[i]) == 0;
}

/* Calls each() for the lines "name = value" of a file with their section, "profile NAME" being
 * NAME, and for the
 * sections themselves, with `name` NULL. Changes the text. */
static void walk_lines(char *text, void (*each)(void *to, const char *section, const char *name,
                                                const char *value),
                       void *to)
{
    char section[NAME_MOST] = "", *line, *next = text;

    while ((line = strsep(&next, "\n")) != NULL) {
        const int is_nested = isspace((unsigned char)line[0]); /* a value below "s3 =" */
        char *equals, *at = without_space(line);

        if (at[0] == '[') {
            at[strcspn(at, "]")] = '\0';
            at = without_space(at + 1);
            if (strncmp(at, "profile", 7) == 0 && isspace((unsigned char)at[7]))
                at = without_space(at + 7);
            snprintf(section, sizeof(section), "%s", at);
            each(to, section, NULL, NULL);
        } else if (!is_nested && at[0] != '#' && at[0] != ';' && (equals = strchr(at,
                                                                                  '=')) != NULL) {
            *equals = '\0';
            each(to, section, without_space(at), without_space(equals + 1));
        }
    }
}

static void take_line(void *to, const char *section, const char *name, const char *value)
{
    struct profile *p = to;

    if (strcmp(section, p->name) != 0)
        return;
    p->is_there = 1;
    if (name)
        profile_value(p, name, value);
}

/* Writes the path of one of Amazon's files; "" if there is no home. */
static void amazon_file(const char *name, const char *file, char out[PATH_MOST])
{
    const char *given = variable(name), *home = variable("HOME");

    if (given)
        snprintf(out, PATH_MOST, "%s", given);
    else
        snprintf(out, PATH_MOST, "%s%s%s", home ? home : "", home ? "/.aws/" : "",
                 home ? file : "");
}

static int read_profiles(const char *name, struct profile *p, brc_error *err)
{
    static const char *const files[2][2] = { { "AWS_SHARED_CREDENTIALS_FILE", "credentials" },
                                             { "AWS_CONFIG_FILE", "config" } };

    memset(p, 0, sizeof(*p));
    snprintf(p->name, sizeof(p->name), "%s", name);
    for (int i = 0; i < 2; i++) {
        char path[PATH_MOST], *text;
        size_t size;

        amazon_file(files[i][0], files[i][1], path);
        text = file_text(path, err);
        if (!text)
            return err->code;
        size = strlen(text);
        walk_lines(text, take_line, p);
        explicit_bzero(text, size);
        free(text);
    }
    return BRC_OK;
}

/* ---- servers -------------------------------- */

/* Returns whether two endpoints are one: a "/" at the end and the case of letters do not matter. */
static int is_endpoint(const char *given, const char *endpoint)
{
    size_t len = strlen(given);

    while (len > 0 && given[len - 1] == '/')
        len--;
    return len == strlen(endpoint) && strncasecmp(given, endpoint, len) == 0;
}

/* A search for the first profile whose endpoint_url is a server. */
struct search {
    const char *endpoint;
    char name[NAME_MOST]; /* ""; not found */
};

static void search_line(void *to, const char *section, const char *name, const char *value)
{
    struct search *s = to;

    if (name && !s->name[0] && strcasecmp(name, "endpoint_url") == 0 && is_endpoint(value,
                                                                                    s->endpoint))
        snprintf(s->name, sizeof(s->name), "%s", section);
}

static int find_profile(struct search *s, brc_error *err)
{
    char path[PATH_MOST], *text;

    amazon_file("AWS_CONFIG_FILE", "config", path);
    text = file_text(path, err);
    if (!text)
        return err->code;
    walk_lines(text, search_line, s);
    free(text);
    return BRC_OK;
}

/* ---- the command of a profile -------------------------------- */

static int secret_member(const brc_json *json, const char *name, char *out, size_t size)
{
    const char *text;

    if (!brc_json_text(brc_json_member(json, name), &text) || strlen(text) >= size)
        return 0;
    memcpy(out, text, strlen(text) + 1);
    return 1;
}

/* Runs the command that prints credentials. Its output is in no message: it is secret. */
static int ask_command(const struct profile *p, brc_credentials *out, brc_error *err)
{
    brc_json *json = NULL;
    char *text;
    int status, good = 0;
    FILE *from = popen(p->command, "r");

    if (!from)
        return no_credentials(err, BRC_EIO,
                              "cannot run the credential_process of the profile '%s': %s",
                      p->name, strerror(errno));
    text = whole_stream(from);
    status = pclose(from);
    if (text && status == 0 && brc_json_parse(&json, text, strlen(text), 0, NULL) == BRC_OK)
        good = secret_member(json, "AccessKeyId", out->key, sizeof(out->key)) &&
               secret_member(json, "SecretAccessKey", out->secret, sizeof(out->secret));
    if (good && brc_json_member(json, "SessionToken"))
        good = secret_member(json, "SessionToken", out->token, sizeof(out->token));
    brc_json_free(json);
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
    if (good)
        return BRC_OK;
    return no_credentials(err, BRC_EIO,
                  "the credential_process of the profile '%s' failed, or printed no credentials: "
                  "run it by hand to see why",
                  p->name);
}

/* ---- the choice -------------------------------- */

static int of_profile(const char *name, int must, brc_credentials *out, brc_error *err)
{
    struct profile p;
    int rc = read_profiles(name, &p, err);

    if (rc < 0)
        return rc;
    if (!p.is_there && must)
        return no_credentials(err, BRC_ENOTFOUND,
                      "there is no profile '%s' in ~/.aws/credentials or ~/.aws/config", name);
    if (p.key[0] && p.secret[0]) {
        memcpy(out->key, p.key, sizeof(p.key));
        memcpy(out->secret, p.secret, sizeof(p.secret));
        memcpy(out->token, p.token, sizeof(p.token));
    } else if (p.command[0]) {
        rc = ask_command(&p, out, err);
    } else if (p.is_other) {
        rc = no_credentials(err, BRC_EUNSUPPORTED,
                    "the credentials of the profile '%s' are of a kind that is not read here: "
                    "give it "
                    "\"credential_process = aws configure export-credentials --profile NAME\"",
                    name);
    }
    explicit_bzero(&p, sizeof(p));
    return rc;
}

/* The credentials of the environment, else of the profile that it chooses; none are none. */
static int of_environment(brc_credentials *out, brc_error *err)
{
    const char *key = variable("AWS_ACCESS_KEY_ID"), *secret = variable("AWS_SECRET_ACCESS_KEY");
    const char *token = variable("AWS_SESSION_TOKEN"), *profile = variable("AWS_PROFILE");

    if (!key || !secret)
        return of_profile(profile ? profile : "default", profile != NULL, out, err);
    if (strlen(key) >= sizeof(out->key) || strlen(secret) >= sizeof(out->secret) ||
        (token && strlen(token) >= sizeof(out->token)))
        return no_credentials(err, BRC_EINVAL,
                              "AWS_ACCESS_KEY_ID and the other variables are too long");
    snprintf(out->key, sizeof(out->key), "%s", key);
    snprintf(out->secret, sizeof(out->secret), "%s", secret);
    snprintf(out->token, sizeof(out->token), "%s", token ? token : "");
    return BRC_OK;
}

int cli_is_chosen(const brc_server *server, const char *endpoint)
{
    if (!endpoint)
        endpoint = variable("AWS_ENDPOINT_URL_S3");
    if (!endpoint)
        endpoint = variable("AWS_ENDPOINT_URL");
    return endpoint ? is_endpoint(endpoint, server->endpoint) :
                      (server->flags & BRC_SERVER_STANDARD) != 0;
}

int cli_credentials(void *ctx, const brc_server *server, brc_credentials *out, brc_error *err)
{
    struct search search = { server->endpoint, "" };
    int rc;

    (void)ctx;
    if (cli_is_chosen(server, NULL))
        return of_environment(out, err);
    rc = find_profile(&search, err);
    if (rc < 0)
        return rc;
    if (search.name[0])
        return of_profile(search.name, 1, out, err);
    return no_credentials(err, BRC_ECONFLICT,
                  "the chunks lie on the server %s, to which nothing is sent before you allow it: "
                  "set "
                  "AWS_ENDPOINT_URL to it, or give it a profile in ~/.aws/config with "
                  "\"endpoint_url = %s\"",
                  server->endpoint, server->endpoint);
}
