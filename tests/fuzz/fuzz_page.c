/*
 * Questions of the page: the first line of the input is what is asked, and the others are
 * parameters, "name=value". Each is answered by a document, or by elements behind one, and each
 * page is HTML in which the parameters are only text.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../../src/base/json.h"
#include "../../src/serve/answer.h"
#include "../kit/sample_repo.h"

enum { PAIRS_MOST = 16 };

static breccia *page_repo(void)
{
    static breccia *repo;
    brc_error err = BRC_ERROR_INIT;
    const brc_open_opts opts = { .size = sizeof(opts), .flags = BRC_OPEN_READONLY };

    if (!repo) {
        const char *path = fuzz_file("page.brc", "", 0);

        FUZZ_TRUE(unlink(path) == 0, NULL);
        sample_repo_make(path);
        FUZZ_TRUE(brc_open(&repo, path, &opts, &err) == BRC_OK, &err);
    }
    return repo;
}

/* Cuts the text into its first line and pairs. */
static void read_question(char *text, char **what, serve_query *query, const char **names,
                          const char **values)
{
    char *rest = strchr(text, '\n');

    *what = text;
    while (rest && query->n < PAIRS_MOST) {
        char *value;

        *rest = '\0';
        names[query->n] = ++rest;
        rest = strchr(names[query->n], '\n');
        value = strchr(names[query->n], '=');
        if (!value || (rest && value > rest))
            continue;
        *value = '\0';
        values[query->n++] = value + 1;
    }
}

static void check_json(const char *text, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *json;

    FUZZ_TRUE(brc_json_parse(&json, text, len, 0, &err) == BRC_OK, &err);
    brc_json_free(json);
}

static void check_answer(const serve_answer *answer)
{
    const char *text = (const char *)answer->body.data;
    const char *line;

    FUZZ_TRUE(answer->status != 500, NULL);
    if (strcmp(answer->type, "application/json") == 0) {
        check_json(text, answer->body.len);
    } else if (strcmp(answer->type, "application/octet-stream") == 0) {
        line = memchr(text, '\n', answer->body.len);
        FUZZ_TRUE(line && (line + 1 - text) % 8 == 0, NULL);
        check_json(text, (size_t)(line - text));
    }
}

static size_t count_in(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)); text++)
        n++;
    return n;
}

void fuzz_page(const uint8_t *data, size_t len)
{
    static const serve_limits limits = { 1 << 20, 16, 2, "fuzz" };
    const char *names[PAIRS_MOST], *values[PAIRS_MOST];
    serve_query query = { 0, names, values };
    serve_answer answer = { .body = BRC_BUF_INIT };
    brc_error err = BRC_ERROR_INIT;
    char *text, *what;

    if (memchr(data, '\0', len) || !brc_utf8_valid_bytes(data, len))
        return;
    text = fuzz_text(data, len);
    read_question(text, &what, &query, names, values);
    FUZZ_TRUE(serve_api(&answer, page_repo(), what, &query, &limits, &err) == BRC_OK, &err);
    check_answer(&answer);
    brc_buf_dispose(&answer.body);
    memset(&answer, 0, sizeof(answer));
    answer.body = (brc_buf)BRC_BUF_INIT;
    if (serve_page(&answer, page_repo(), &query, &limits, &err) == BRC_OK) {
        FUZZ_TRUE(brc_buf_append(&answer.body, "", 1, &err) == BRC_OK, &err);
        FUZZ_TRUE(count_in((const char *)answer.body.data, "<script") <= 1, NULL);
    } else {
        FUZZ_TRUE(serve_status(err.code) != 500, &err);
    }
    brc_buf_dispose(&answer.body);
    free(text);
}
