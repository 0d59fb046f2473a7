#!/usr/bin/env python3
"""reader_rows.py FILE: what no command makes yet, and what damage does, for reader.py.

1. The chunks of the shared draft are spread over rows that lie on one another; the reader
   must see the draft as it was before, by branch and by number.
2. Every column of every row that has a checksum is changed, one at a time; the reader must
   refuse each. FILE, which must have a draft with chunks, is left as it was.
"""
import contextlib
import os
import shutil
import sqlite3
import sys
import tempfile

from reader import ARRAY, SUMMED, Repository, row_bytes


def content(path, rev=None):
    """Every array's document and elements, after a look at every checksum."""
    repo = Repository(path)
    with contextlib.closing(repo.db):
        for table in SUMMED:
            # No chunk of these files lies elsewhere: the reader could not read it.
            assert repo.rows(table) or table == 'backend', f'no row of {table} to look at'
        return {name: (repo.document(at), repo.read(name, rev))
                for name, at, _ in repo.walk(rev) if at[0] == ARRAY}


def put(db, hasher, table, values):
    """Adds a row, or replaces it, with its checksum."""
    low = hasher.xxh3_64_intdigest(row_bytes(table, *values)) & 0xffffffff
    marks = ','.join('?' * (len(values) + 1))
    db.execute(f'INSERT OR REPLACE INTO {table} VALUES ({marks})',
               (*values, low - (low >> 31 << 32)))


def spread(path, hasher):
    """Two more rows under each row that has chunks, which others may lie on; returns how many chunks went there."""
    db, moved = sqlite3.connect(path), 0
    nodes = db.execute('SELECT node, draft, path, below, level, entry FROM draft_node WHERE node IN'
                       ' (SELECT node FROM draft_chunk) ORDER BY node').fetchall()
    for node, draft, name, below, level, entry in nodes:
        chunks = db.execute('SELECT key, id FROM draft_chunk WHERE node=?', (node,)).fetchall()
        first = db.execute('SELECT max(node) + 1 FROM draft_node').fetchone()[0]
        layers = [first, first + 1, node]  # the lowest, the middle, the upper
        db.execute('DELETE FROM draft_chunk WHERE node=?', (node,))
        put(db, hasher, 'draft_node', (layers[0], draft, None, below, level, entry))
        put(db, hasher, 'draft_node', (layers[1], draft, None, layers[0], level + 1, None))
        put(db, hasher, 'draft_node', (layers[2], draft, name, layers[1], level + 2, entry))
        for i, (key, oid) in enumerate(chunks):
            put(db, hasher, 'draft_chunk', (layers[i % 3], key, oid))
            if i % 3 < 2:  # hidden by the row above: another value, or none
                put(db, hasher, 'draft_chunk', (layers[i % 3 + 1], key, oid))
                hidden = chunks[i - 1][1] if i % 2 else None
                put(db, hasher, 'draft_chunk', (layers[i % 3], key, hidden))
        moved += len(chunks)
    db.commit()
    db.close()
    return moved


def damages(path):
    """Statements that change one value of one row each."""
    db = sqlite3.connect(path)
    for table, names in SUMMED.items():
        key = 'rowid' if table in ('draft', 'draft_node') else names.split()[0]
        where = f'WHERE {key}=(SELECT min({key}) FROM {table})'
        if not db.execute(f'SELECT 1 FROM {table}').fetchone():
            continue
        for column in names.split() + ['checksum']:
            (kind,) = db.execute(f'SELECT typeof({column}) FROM {table} {where}').fetchone()
            change = {'integer': f'{column}+1000000', 'null': "'x'", 'text': f"{column}||'x'",
                      'blob': f"CAST({column}||x'00' AS BLOB)"}[kind]
            yield f'UPDATE {table} SET {column}={change} {where}'
    db.close()


def main(path):
    hasher = Repository(path).xxhash
    with tempfile.TemporaryDirectory() as folder:
        changed = os.path.join(folder, 'changed.brc')
        here = os.path.dirname(os.path.abspath(path))
        for name in os.listdir(here):
            if name.endswith('.chunks'):  # what lies outside of the file
                os.symlink(os.path.join(here, name), os.path.join(folder, name))
        shutil.copy(path, changed)
        (draft,) = Repository(path).row('SELECT id FROM draft WHERE kind=1 AND state=1')
        want = content(path)
        moved = spread(changed, hasher)
        assert moved > 100, moved
        assert content(changed) == want and content(changed, f'draft:{draft}') == want
        refused, changes = 0, list(damages(path))
        for sql in changes:
            os.remove(changed)  # what still has it open keeps its locks to itself
            shutil.copy(path, changed)
            db = sqlite3.connect(changed)
            db.execute(sql)
            db.commit()
            db.close()
            try:
                content(changed)
            except (ValueError, TypeError, KeyError) as error:
                refused += str(error).startswith('damaged: a row of ')
            else:
                raise SystemExit(f'this was not noticed: {sql}')
        print(f'{moved} chunks in layers, {refused} changed rows refused')
        assert refused == len(changes) > 30, changes


if __name__ == '__main__':
    main(sys.argv[1])
