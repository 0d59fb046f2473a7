/* The page's data. */
#include "../breccia_codec.h"
#include "answer.h"

int serve_api(serve_answer *out, breccia *repo, const char *what, const serve_query *query,
              const serve_limits *limits, brc_error *err)
{
    (void)repo;
    (void)what;
    (void)query;
    (void)limits;
    out->status = 404;
    out->type = "application/json";
    return brc_buf_printf(&out->body, err, "{\"error\": \"there is no such data\"}\n");
}
