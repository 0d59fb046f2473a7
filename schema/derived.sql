-- Derived tables and views: rebuilt from the durable ones at any time, never the
-- truth. The library reads the table; the views are for people with a shell.

CREATE TABLE commit_info(         -- one row a commit: what its object says
  id      BLOB PRIMARY KEY,       -- object.id
  time_us INTEGER NOT NULL,
  author  TEXT NOT NULL,
  message TEXT NOT NULL,
  parents TEXT NOT NULL           -- ids in hexadecimal, by spaces
) WITHOUT ROWID;

CREATE VIEW log AS
  SELECT lower(hex(id)) AS id,
         strftime('%Y-%m-%dT%H:%M:%SZ', time_us / 1000000, 'unixepoch') AS time,
         author, message, parents
    FROM commit_info ORDER BY time_us DESC;

CREATE VIEW refs AS
  SELECT name, lower(hex(target)) AS id, message FROM ref;

CREATE VIEW storage AS
  SELECT CASE kind WHEN 1 THEN 'chunk' WHEN 2 THEN 'document' WHEN 3 THEN 'node' ELSE 'commit' END
           AS kind,
         coalesce(e.spec, 'as it is') AS encoding,
         count(*) AS objects, sum(size) AS canonical_bytes, sum(stored) AS stored_bytes
    FROM object o LEFT JOIN encoding e ON e.id = o.encoding
   GROUP BY kind, encoding;

CREATE VIEW uncommitted AS
  SELECT n.branch, n.path, n.entry IS NULL AS removed,
         (SELECT count(*) FROM draft_chunk c WHERE c.node = n.node) AS chunks
    FROM draft_node n;
