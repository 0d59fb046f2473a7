-- The durable tables of a breccia repository: facts. What schema/derived.sql adds
-- can be rebuilt from these. docs/FORMAT.md describes the bytes in the columns.
--
-- PRAGMA application_id = 0x62726331 ("brc1"); user_version is the format number.
-- Every opening compares the file's schema with this text, byte for byte.

CREATE TABLE meta(                -- one row a setting of the whole file
  key   TEXT PRIMARY KEY,         -- 'hash': the name of the hash, 'xxh128'
                                  -- 'secret': 192 random bytes, the key of every guard
                                  -- 'head': the current branch's name
                                  -- 'must-understand', 'may-ignore': features, by commas
  value BLOB NOT NULL             -- text, or bytes for 'secret'
) WITHOUT ROWID;

CREATE TABLE object(              -- one row an object; small rows: it is the hash index
  id       BLOB PRIMARY KEY,      -- hash of the canonical bytes, as long as the hash is
  kind     INTEGER NOT NULL,      -- 1 chunk, 2 document, 3 map node, 4 commit
  encoding INTEGER NOT NULL,      -- encoding.id of the stored bytes; 0: they are the canonical bytes
  backend  INTEGER NOT NULL,      -- where the stored bytes lie; 0: in blob.data
  blob     INTEGER NOT NULL,      -- blob.seq
  size     INTEGER NOT NULL,      -- canonical bytes
  stored   INTEGER NOT NULL,      -- stored bytes
  checksum INTEGER NOT NULL,      -- XXH3-64 of the stored bytes, seeded with the id's first 8 bytes
                                  -- xor the XXH3-64 of encoding.spec (0: 0)
  guard    INTEGER NOT NULL       -- XXH3-64 of the canonical bytes under meta 'secret'
) WITHOUT ROWID;

CREATE TABLE blob(                -- stored bytes, in the order of writing; never in object:
                                  -- a table without rowids would read them at every search step
  seq  INTEGER PRIMARY KEY,
  data BLOB NOT NULL              -- last, so that SQLite can read it straight from its pages
);

CREATE TABLE encoding(            -- how stored bytes are to be decoded
  id   INTEGER PRIMARY KEY,       -- 1, 2, ...; small, for it is in every object's row
  spec TEXT NOT NULL UNIQUE       -- {"codecs":[...],"data_type":...,"shape":[...]}, codecs in
                                  -- full form: the digest of equal specifications is equal
);

CREATE TABLE ref(                 -- branches and tags
  name    TEXT PRIMARY KEY,       -- 'heads/main', 'tags/v1'
  target  BLOB,                   -- object.id of a commit; NULL: a branch without one yet
  message TEXT                    -- of a tag
) WITHOUT ROWID;

CREATE TABLE oplog(               -- every change of a ref, written in the same transaction
  seq     INTEGER PRIMARY KEY,
  time_us INTEGER NOT NULL,       -- microseconds since 1970-01-01 UTC
  op      TEXT NOT NULL,          -- 'commit', 'amend', 'branch', 'tag', 'reset', 'delete', 'rename',
                                  -- 'switch'
  name    TEXT NOT NULL,          -- the ref
  old     BLOB,                   -- its target before; NULL: none
  new     BLOB                    -- its target after; NULL: none
);

CREATE TABLE draft(               -- one row a branch with uncommitted changes
  branch TEXT PRIMARY KEY,        -- 'main'
  base   BLOB                     -- the snapshot that draft_node is laid over; NULL: the empty one
) WITHOUT ROWID;

CREATE TABLE draft_node(          -- one row a node that uncommitted changes touch
  node   INTEGER PRIMARY KEY,     -- key of its rows in draft_chunk
  branch TEXT NOT NULL,
  path   TEXT NOT NULL,           -- '/' or '/a/b'
  entry  BLOB,                    -- as in the parent's map; NULL: removed, with all under it
  UNIQUE(branch, path)
);

CREATE TABLE draft_chunk(         -- one row a chunk that was written or dropped since the base
  node INTEGER NOT NULL,          -- draft_node.node, an array
  key  BLOB NOT NULL,             -- as in the array's chunk map
  id   BLOB,                      -- object.id; NULL: dropped
  PRIMARY KEY(node, key)
) WITHOUT ROWID;
