-- Durable tables that few files need, if any: this version does not write all of them. A new file does not have them, and a file may have any
-- of them: whoever needs one makes it, with exactly this text. One that is not there is empty.
-- Every table takes a page of its own, and time at each opening. So do views take time: docs/decisions/0040.

CREATE TABLE delta(               -- one row an object that is stored as a difference from another
  id   BLOB PRIMARY KEY,          -- object.id
  base BLOB NOT NULL              -- object.id of that other
) WITHOUT ROWID;

CREATE INDEX delta_base ON delta(base);

CREATE TABLE backend(             -- where stored bytes lie that are not in this file
  id       INTEGER PRIMARY KEY,   -- 1, 2, ...
  spec     TEXT NOT NULL UNIQUE,  -- {"name":...,"configuration":{...}}, in full form
  checksum INTEGER NOT NULL
);

CREATE TABLE place(               -- a pack, somebody else's file, an object in a bucket, ...
  seq      INTEGER PRIMARY KEY AUTOINCREMENT,
  backend  INTEGER NOT NULL,      -- backend.id
  name     TEXT NOT NULL,         -- as the backend calls it: a file's name, a path, a key
  size     INTEGER,               -- its bytes; NULL: not known
  facts    TEXT,                  -- a JSON object of the backend's own: when it changed, its digest
  checksum INTEGER NOT NULL,
  UNIQUE(backend, name)
);

CREATE TABLE boundary(            -- a commit some of whose parents have expired, or were not copied
  id       BLOB PRIMARY KEY,      -- object.id
  parents  BLOB NOT NULL,         -- what stands for them: the nearest ancestors that are kept, one
                                  -- object.id behind the other
  moves    TEXT NOT NULL,         -- since the first of them: lines as in a commit
  checksum INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE draft_key(           -- bytes under a key of a Zarr store that are no node or chunk yet
  draft    INTEGER NOT NULL,      -- draft.id
  key      TEXT NOT NULL,         -- 'a/zarr.json', 'a/c/0'
  id       BLOB,                  -- object.id of loose bytes; NULL: of a node's document, which
                                  -- has no key: nobody wrote it, or it was deleted
  checksum INTEGER NOT NULL,
  PRIMARY KEY(draft, key)
) WITHOUT ROWID;

CREATE TABLE draft_move(          -- nodes that were moved since the base
  draft    INTEGER NOT NULL,      -- draft.id
  path     TEXT NOT NULL,         -- where the node is
  source   TEXT NOT NULL,         -- where it is in the base
  checksum INTEGER NOT NULL,
  PRIMARY KEY(draft, path)
) WITHOUT ROWID;

CREATE TABLE conflict(            -- what a merge leaves to decide
  draft    INTEGER NOT NULL,      -- draft.id
  path     TEXT NOT NULL,         -- the node
  member   TEXT NOT NULL,         -- '': the node itself; '/shape': a member of its document,
                                  -- 'chunk': one of its chunks
  key      BLOB NOT NULL,         -- of a chunk, as in the array's chunk map; else empty
  base     BLOB,                  -- object.id of a chunk, a node's entry, or a member's JSON
  ours     BLOB,                  -- likewise; NULL: none
  theirs   BLOB,
  state    INTEGER NOT NULL,      -- 0 open; 1 ours, 2 theirs, 3 written by hand
  checksum INTEGER NOT NULL,
  PRIMARY KEY(draft, path, member, key)
) WITHOUT ROWID;

CREATE TABLE pin(                 -- what a reader needs, whatever happens to refs
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  target   BLOB NOT NULL,         -- object.id of a commit
  owner    TEXT NOT NULL,         -- JSON: the process
  time_us  INTEGER NOT NULL,
  checksum INTEGER NOT NULL
);

CREATE TABLE gc(                  -- one row a collection that has begun and not ended
  run      INTEGER PRIMARY KEY AUTOINCREMENT,
  owner    TEXT NOT NULL,         -- JSON: the process
  phase    INTEGER NOT NULL,      -- 1 marks, 2 sweeps
  position BLOB,                  -- object.id up to which it has swept
  time_us  INTEGER NOT NULL,
  checksum INTEGER NOT NULL
);

CREATE TABLE gc_kept(             -- objects that were stored, or met again, since it began
  run INTEGER NOT NULL,           -- gc.run
  id  BLOB NOT NULL,              -- object.id
  PRIMARY KEY(run, id)
) WITHOUT ROWID;

-- Derived, as what schema/derived.sql has.

CREATE TABLE encoded(             -- what a chunk has in an encoding in which it is not stored
  id       BLOB NOT NULL,         -- object.id
  encoding INTEGER NOT NULL,      -- encoding.id
  length   INTEGER NOT NULL,      -- bytes
  digest   INTEGER NOT NULL,      -- what object.checksum would be if they were stored
  checksum INTEGER NOT NULL,
  PRIMARY KEY(id, encoding)
) WITHOUT ROWID;

CREATE TABLE chunk_stats(         -- what the elements of a chunk come to, for statistics
  id       BLOB NOT NULL,         -- object.id
  form     INTEGER NOT NULL,      -- XXH3-64 of what they are taken for: data type, fill value, box
  summary  BLOB NOT NULL,         -- least, greatest, mean, histogram, ...
  checksum INTEGER NOT NULL,
  PRIMARY KEY(id, form)
) WITHOUT ROWID;

-- Tables and views that files have which were made before December 2026. Most of them have backend,
-- draft_key, draft_move and encoded, too. Whoever opens a file for writing that has the first one makes
-- table removed from it, and from the facts in table place.

CREATE TABLE hole(                -- one row a row of blob that objects have left, and others have not
  seq      INTEGER PRIMARY KEY,   -- blob.seq
  bytes    INTEGER NOT NULL,      -- that no object has any more; if all are, both rows go
  checksum INTEGER NOT NULL
);

CREATE VIEW storage AS
  SELECT CASE kind WHEN 1 THEN 'chunk' WHEN 2 THEN 'document' WHEN 3 THEN 'node' WHEN 4 THEN 'commit'
           ELSE 'loose' END AS kind,
         coalesce(e.spec, 'as it is') AS encoding,
         count(*) AS objects, total(size) AS canonical_bytes, total(stored) AS stored_bytes
    FROM object o LEFT JOIN encoding e ON e.id = o.encoding
   GROUP BY kind, encoding;

CREATE VIEW uncommitted AS
  SELECT d.branch, d.id AS draft, n.path, n.entry IS NULL AS removed,
         (SELECT count(*) FROM draft_chunk c WHERE c.node = n.node) AS chunks
    FROM draft d JOIN draft_node n ON n.draft = d.id WHERE d.state = 1;
