/*
 * page.h - the page while it is written: HTML, of which every text that comes from a repository is escaped.
 */
#ifndef BRC_SERVE_PAGE_H
#define BRC_SERVE_PAGE_H

#include "api_node.h"

typedef struct serve_page_state {
    serve_call call; /* its session is the version that is shown                */
    brc_buf *out;
    brc_error *err;
    int rc;          /* after a failure nothing is written any more             */
    const char *file, *view, *rev, *path, *a, *b; /* of the query; NULL: not given; view and path always are */
    int kind;        /* of the node at `path`: 0: there is none                 */
    serve_entries entries; /* read by the first part that needs them             */
} serve_page_state;

/* Answers a file of the page ("app.js", "style.css"). Returns 1, or 0 if there is none of this name. */
int serve_asset(serve_answer *out, const char *name, brc_error *err);

/* ---- HTML -------------------------------- */

void serve_put(serve_page_state *p, const char *html);
/* Formats numbers and constants; texts of others go through serve_put_text(). */
void serve_putf(serve_page_state *p, const char *format, ...) BRC_PRINTF(2, 3);
void serve_put_text(serve_page_state *p, const char *text);
/* At most `most` bytes of it, and three dots where there are more. */
void serve_put_some(serve_page_state *p, const char *text, size_t most);
/* The text in an element of its own, whose direction cannot reach outside. */
void serve_put_name(serve_page_state *p, const char *text);
/* "1.5 MB" with all digits beside it. */
void serve_put_bytes(serve_page_state *p, uint64_t bytes);
void serve_put_count(serve_page_state *p, uint64_t n);
void serve_put_dims(serve_page_state *p, const uint64_t *dims, int n);
/* A time element: "2026-11-20 12:00". */
void serve_put_time(serve_page_state *p, int64_t time_us);
/* href="?..." of a view; rev, path, a and b may be NULL. */
void serve_put_href(serve_page_state *p, const char *view, const char *rev, const char *path, const char *a, const char *b);
/* The same for the view that is shown, with commits from a place on. */
void serve_put_older(serve_page_state *p, const char *from);
/* A link to a commit, by the first digits of its id. */
void serve_put_commit(serve_page_state *p, const brc_oid *id);
/* The first line of a message. */
void serve_put_subject(serve_page_state *p, const char *message);
/* <tr><th>name</th><td> and its end. */
void serve_row_begin(serve_page_state *p, const char *name);
void serve_row_end(serve_page_state *p);

/* ---- parts of the page; what fails is shown in its place -------------------------------- */

void serve_part(serve_page_state *p, int (*part)(serve_page_state *p));
int serve_part_tree(serve_page_state *p);
int serve_part_timeline(serve_page_state *p);
int serve_part_overview(serve_page_state *p);
int serve_part_node(serve_page_state *p);
int serve_part_diff(serve_page_state *p);
int serve_part_sizes(serve_page_state *p);
int serve_part_open(serve_page_state *p);

#endif
