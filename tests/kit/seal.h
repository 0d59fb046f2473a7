/* SQL that makes the checksums of rows right again, as whoever wrote a row on purpose would: for
 * tests of what a row says. It needs row_sum(), which the kits' connections have. */
#ifndef BRC_TESTS_SEAL_H
#define BRC_TESTS_SEAL_H

#define SEAL_META "UPDATE meta SET checksum=row_sum('meta', key, value);"
#define SEAL_REF "UPDATE ref SET checksum=row_sum('ref', name, target, message);"
#define SEAL_OPLOG                                                                              \
    "UPDATE oplog SET checksum=row_sum('oplog', seq, time_us, op, name, old, new, first,"       \
    " undoes, restores, draft);"
#define SEAL_DRAFT                                                                              \
    "UPDATE draft SET checksum=row_sum('draft', id, kind, state, branch, base, tip, other,"     \
    " plan, owner, parent, time_us, changes, parts);"
#define SEAL_DRAFT_NODE                                                                         \
    "UPDATE draft_node SET checksum=row_sum('draft_node', node, draft, path, below, level,"    \
    " entry);"
#define SEAL_DRAFT_CHUNK "UPDATE draft_chunk SET checksum=row_sum('draft_chunk', node, key, id);"
#define SEAL_DRAFT_MOVE "UPDATE draft_move SET checksum=row_sum('draft_move', draft, path, source);"
#define SEAL_ALL                                                                                \
    SEAL_META SEAL_REF SEAL_OPLOG SEAL_DRAFT SEAL_DRAFT_NODE SEAL_DRAFT_CHUNK          \
    SEAL_DRAFT_MOVE

#endif
