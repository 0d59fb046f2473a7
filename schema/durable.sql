-- The durable tables of a breccia repository: facts. What schema/derived.sql adds
-- can be rebuilt from these. docs/FORMAT.md describes the bytes in the columns.
--
-- PRAGMA application_id = 0x62726331 ("brc1"); user_version is the format number.
-- Every opening compares the file's schema with this text, byte for byte.
--
-- A column `checksum` of a row that no hash covers is the sum of the row's other columns
-- (FORMAT.md, "Row checksums"). AUTOINCREMENT: a number is never given twice. It costs a page
-- more in each transaction that adds a row, so it is left to the tables that seldom get one.

CREATE TABLE meta(                -- one row a setting of the whole file
  key   TEXT PRIMARY KEY,         -- 'hash': the name of the hash, 'xxh128'
                                  -- 'secret': 192 random bytes, the key of every guard
                                  -- 'head': the current branch's name
                                  -- 'must-understand', 'may-ignore': features, by commas
                                  -- 'journal': 'wal' where that was asked for
                                  -- 'config.NAME': other settings, as JSON
  value BLOB NOT NULL,            -- text, or bytes for 'secret'
  checksum INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE object(              -- one row an object; small rows: it is the hash index
  id       BLOB PRIMARY KEY,      -- hash of the canonical bytes, as long as the hash is
  kind     INTEGER NOT NULL,      -- 1 chunk, 2 document, 3 map node, 4 commit, 5 loose bytes
  encoding INTEGER NOT NULL,      -- encoding.id of the stored bytes; 0: they are the canonical bytes
  backend  INTEGER NOT NULL,      -- backend.id: where the stored bytes lie; 0: in blob.data
  place    INTEGER NOT NULL,      -- backend 0: blob.seq; any other: place.seq, or 0: the object's
                                  -- canonical name says where
  offset   INTEGER NOT NULL,      -- of the first stored byte there
  size     INTEGER NOT NULL,      -- canonical bytes
  stored   INTEGER NOT NULL,      -- stored bytes
  checksum INTEGER NOT NULL,      -- XXH3-64 of the stored bytes, seeded with the id's first 8 bytes
                                  -- xor the XXH3-64 of encoding.spec (0: 0)
  guard    INTEGER NOT NULL       -- XXH3-64 of the canonical bytes under meta 'secret'
) WITHOUT ROWID;

CREATE TABLE blob(                -- stored bytes, in the order of writing; never in object:
                                  -- a table without rowids would read them at every search step
  seq  INTEGER PRIMARY KEY,       -- never given twice: the last row is not deleted, but emptied
  data BLOB NOT NULL              -- of one object, or of small ones that were written together, one
                                  -- behind the other; last, so that SQLite can read it straight
                                  -- from its pages; a row never changes but for that
);

-- A bulk write of small objects stores their bytes before their rows: meanwhile a row of blob may be
-- all free. One that was killed leaves it so, for gc.
CREATE TABLE removed(             -- one row a place that objects have left, or never came to
  backend  INTEGER NOT NULL,      -- as in object
  place    INTEGER NOT NULL,      -- as in object
  name     TEXT NOT NULL,         -- the canonical name where place is 0; else ''
  bytes    INTEGER NOT NULL,      -- that are free; if all of a row of blob are, both rows go
  total    INTEGER NOT NULL,      -- bytes of the place; 0: not known
  state    INTEGER NOT NULL,      -- 1 free: others may be in it still; 2 due: nobody is, and the
                                  -- backend may drop it; 3 stray: nobody ever was
  since_us INTEGER NOT NULL,      -- when the first object left
  due_us   INTEGER NOT NULL,      -- the backend does not drop it before; 0: at once
  checksum INTEGER NOT NULL,
  PRIMARY KEY(backend, place, name)
) WITHOUT ROWID;

CREATE TABLE encoding(            -- how stored bytes are to be decoded
  id   INTEGER PRIMARY KEY,       -- 1, 2, ...; small, for it is in every object's row
  spec TEXT NOT NULL UNIQUE       -- {"codecs":[...],"data_type":...,"shape":[...]}, codecs in
                                  -- full form: the digest of equal specifications is equal
);

CREATE TABLE ref(                 -- branches and tags
  name     TEXT PRIMARY KEY,      -- 'heads/main', 'tags/v1'
  target   BLOB,                  -- object.id of a commit; NULL: a branch without one yet
  message  TEXT,                  -- of a tag
  checksum INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE oplog(               -- every change of a ref, written in the same transaction
  seq      INTEGER PRIMARY KEY,   -- the last row stays, so no number is given twice
  time_us  INTEGER NOT NULL,      -- microseconds since 1970-01-01 UTC
  op       TEXT NOT NULL,         -- 'commit', 'amend', 'branch', 'tag', 'reset', 'delete', 'rename',
                                  -- 'switch', 'merge', 'rebase', 'pick', 'revert', 'undo', 'redo'
  name     TEXT NOT NULL,         -- the ref
  old      BLOB,                  -- its target before; NULL: none
  new      BLOB,                  -- its target after; NULL: none
  first    INTEGER,               -- seq of the first row of the same operation; NULL: this one
  undoes   INTEGER,               -- 'undo': seq of the operation that it takes back
  restores INTEGER,               -- 'redo': seq of the 'undo' that it takes back
  draft    INTEGER,               -- draft.id of what was uncommitted on a branch that went
  checksum INTEGER NOT NULL
);

CREATE TABLE draft(               -- one row a set of uncommitted changes
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  kind     INTEGER NOT NULL,      -- 1 shared: the branch's own; 2 private: of its owner alone,
                                  -- 3 a merge, rebase, cherry-pick or revert that is not settled
  state    INTEGER NOT NULL,      -- 1 live; 2 dropped: its rows go bit by bit, its kind is 2,
                                  -- 3 at rest: of kind 1 and committed; the branch's next one
  branch   TEXT NOT NULL,         -- 'main'
  base     BLOB,                  -- the commit that it is laid over; NULL: the empty snapshot
  tip      BLOB,                  -- the branch's commit that its commit follows; NULL: none yet
  other    BLOB,                  -- of a merge: the commit that is the other parent
  plan     TEXT,                  -- of a rebase and the like: JSON, what is done and what is to do
  owner    TEXT,                  -- private: JSON, the process; NULL: nobody's
  parent   INTEGER,               -- draft.id of the one that it was forked from
  time_us  INTEGER NOT NULL,      -- when it was made
  changes  INTEGER NOT NULL,      -- grows with each transaction that changes it
  parts    INTEGER NOT NULL,      -- where it may have rows; a sum of 1 draft_key, 2 draft_move,
                                  -- 4 draft_doc
  checksum INTEGER NOT NULL
);

CREATE UNIQUE INDEX draft_shared ON draft(branch) WHERE kind=1;

CREATE TABLE draft_node(          -- one row a node that uncommitted changes touch
  node     INTEGER PRIMARY KEY,   -- key of its rows in draft_chunk, which go before it does
  draft    INTEGER NOT NULL,      -- draft.id
  path     TEXT,                  -- '/' or '/a/b'; NULL: it lies below another
  below    INTEGER,               -- draft_node.node of another: its chunks count where this one
                                  -- has no row; NULL: none
  level    INTEGER NOT NULL,      -- the savepoint in which it was made; 0: none
  entry    BLOB,                  -- as in the parent's map; NULL: removed, with all under it
  checksum INTEGER NOT NULL,
  UNIQUE(draft, path)
);

CREATE TABLE draft_chunk(         -- one row a chunk that was written or dropped since the base
  node     INTEGER NOT NULL,      -- draft_node.node, an array
  key      BLOB NOT NULL,         -- as in the array's chunk map
  id       BLOB,                  -- object.id; NULL: dropped
  checksum INTEGER NOT NULL,
  PRIMARY KEY(node, key)
) WITHOUT ROWID;

CREATE TABLE draft_doc(           -- documents that only uncommitted changes have; objects when
                                  -- they are committed
  id       BLOB NOT NULL,         -- what object.id will be
  node     INTEGER NOT NULL,      -- draft_node.node
  encoding INTEGER NOT NULL,      -- encoding.id of `data`
  data     BLOB NOT NULL,
  PRIMARY KEY(id, node)
) WITHOUT ROWID;
