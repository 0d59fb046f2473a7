/* The document of an array that comes in with other chunks or codecs than its source's. */
#ifndef BRC_XFER_ARRAY_DOC_H
#define BRC_XFER_ARRAY_DOC_H

#include "../base/json.h"

/* A copy of doc with the chunks and codecs that the caller asked for. `fresh`: codecs that
 * nobody asked for are those of a new array, and not the source's. */
BRC_MUST_USE int brc_array_doc_changed(brc_json **out, brc_session *s, const brc_json *doc,
                                       const char *path, const brc_xfer_opts *opts, int fresh,
                                       brc_error *err);
/* Adds the decoded bytes of the array that the document describes, for progress: a wrong
 * document counts as nothing, and is reported when it is imported. */
BRC_MUST_USE int brc_add_doc_bytes(uint64_t *sum, const brc_registry *reg, const brc_json *doc,
                                   brc_error *err);

#endif
