/*
 * Requests to the server: lines with the target, and the headers Range, If-None-Match, If-Range and
 * Host. Each text that is read of them is valid, and the answer from a small repository is one that
 * such a request may have.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/serve/respond.h"
#include "../kit/sample_repo.h"

#define TOKEN "0123456789abcdef"

static serve_files *served(void)
{
    static serve_files *files;
    brc_error err = BRC_ERROR_INIT;
    if (files == NULL) {
        static const char *path;
        const serve_files_opts opts = { .paths = &path, .n = 1, .wait_ms = 1000 };
        path = strdup(fuzz_file("served.brc", "", 0));
        FUZZ_TRUE(path != NULL, NULL);
        FUZZ_TRUE(remove(path) == 0, NULL);
        sample_repo_make(path);
        FUZZ_TRUE(serve_files_new(&files, &opts, &err) == BRC_OK, &err);
    }
    return files;
}

/* No part of a path leads up, and all of it is text. */
static void check_text(const char *text)
{
    if (text == NULL)
        return;
    FUZZ_TRUE(brc_utf8_valid(text, strlen(text)), NULL);
    FUZZ_TRUE(strstr(text, "/../") == NULL && strncmp(text, "../", 3) != 0 &&
                  strcmp(text, "..") != 0 && strstr(text, "//") == NULL && *text != '/',
              NULL);
}

static void check_target(const serve_target *t)
{
    check_text(t->name);
    check_text(t->key);
    check_text(t->api);
    FUZZ_TRUE(t->what != SERVE_IS_KEY || (t->rev != NULL && t->name != NULL && t->key != NULL &&
                                          (t->format == 2 || t->format == 3)),
              NULL);
    FUZZ_TRUE(t->what != SERVE_IS_API || t->api != NULL, NULL);
    for (size_t i = 0; i < t->query.n; i++)
        FUZZ_TRUE(brc_utf8_valid(t->query.names[i], strlen(t->query.names[i])) &&
                      brc_utf8_valid(t->query.values[i], strlen(t->query.values[i])),
                  NULL);
}

static void check_reply(const serve_reply *reply, const serve_request *q)
{
    const serve_answer *a = &reply->answer;
    static const int known[] = { 200, 206, 301, 304, 400, 404, 410, 413, 416, 501 };
    size_t i = 0;
    while (i < sizeof(known) / sizeof(known[0]) && known[i] != a->status)
        i++;
    FUZZ_TRUE(i < sizeof(known) / sizeof(known[0]), NULL);
    FUZZ_TRUE(a->status != 206 || (q->range != NULL && a->body.len > 0 &&
                                   reply->start + a->body.len <= reply->whole),
              NULL);
    FUZZ_TRUE((a->status != 304 && a->status != 416) || a->body.len == 0, NULL);
    FUZZ_TRUE(!q->is_head || a->body.len == 0 || q->target->what != SERVE_IS_KEY ||
                  a->type == NULL || strncmp(a->type, "application/octet", 17) != 0,
              NULL);
}

/* Ends the line at *at, which moves on. Returns it, or NULL if it is empty or there is none. */
static const char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (end != NULL)
        *end = '\0';
    *at = end != NULL ? end + 1 : line + strlen(line);
    return *line != '\0' ? line : NULL;
}

void fuzz_serve(const uint8_t *data, size_t len)
{
    static const char *const hosts[] = { "data.example.org" };
    char *text = fuzz_text(data, len), *at = text;
    serve_target target;
    serve_reply reply;
    serve_request q = { .target = &target, .token = TOKEN, .may_wait = 1 };
    const char *uri = next_line(&at);
    uri = uri != NULL ? uri : "";
    q.uri = uri;
    q.limits = (serve_limits){ 1 << 16, 16, 10, NULL };
    q.range = next_line(&at);
    q.if_none_match = next_line(&at);
    q.if_range = next_line(&at);
    (void)serve_host_is_known(next_line(&at), hosts, 1);
    q.is_head = *at == 'H';
    if (serve_target_read(&target, uri, TOKEN, NULL) == BRC_OK) {
        check_target(&target);
        if (target.what != SERVE_IS_API && target.what != SERVE_IS_PAGE) {
            FUZZ_TRUE(serve_respond(&reply, served(), &q) == 1, NULL);
            check_reply(&reply, &q);
            serve_reply_dispose(&reply);
        }
    }
    serve_target_dispose(&target);
    free(text);
}
