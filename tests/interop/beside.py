#!/usr/bin/env python3
"""beside.py COMMAND LIBRARY [COUNT]: Python's own sqlite3 in the process that has our handle.

In each of COUNT (200) write transactions of ours, in either journal mode, Python opens and closes the
file: plainly, with its sqlite3 to read, to copy it, and to take the write lock, which it must not get.
Another process writes the same file all the time. Every change that either was told is done is there.
"""
import ctypes
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from ctypes import byref, c_char, c_char_p, c_int, c_size_t, c_void_p

COMMAND, LIBRARY = map(os.path.abspath, sys.argv[1:3])
COUNT = int(sys.argv[3]) if len(sys.argv) == 4 else 200
WRITE, KEEP = 2, 1
LIB = ctypes.CDLL(LIBRARY)


class Error(ctypes.Structure):
    _fields_ = [('size', c_size_t), ('code', c_int), ('detail', c_int), ('source', c_char * 16),
                ('message', c_char * 488)]


def call(name, *args):
    error = Error(size=ctypes.sizeof(Error))
    if getattr(LIB, name)(*args, byref(error)) < 0:
        raise SystemExit(f'{name}: {error.message.decode()}')


def opened(file):
    repo, session = c_void_p(), c_void_p()
    call('brc_open', byref(repo), file.encode(), None)
    call('brc_session_open', byref(session), repo, b'main', WRITE)
    return repo, session


def count_to(session, name, number):
    call('brc_attrs_set', session, c_char_p(b'/'), c_char_p(name), c_char_p(str(number).encode()))


def breccia(*args):
    done = subprocess.run([COMMAND, *args], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f'{args}: {done.stderr}')
    return done.stdout


def other(file):
    """In another process, until its input ends: prints how far it has come."""
    _, session = opened(file)
    done = 0
    print('begun', flush=True)
    os.set_blocking(0, False)
    while sys.stdin.buffer.raw.read(1) is None:
        done += 1
        count_to(session, b'theirs', done)
    print(done)


def with_sqlite(file, statement):
    """Runs a statement in the other copy of SQLite. Returns None, or its error."""
    connection = sqlite3.connect(file, timeout=0)
    try:
        connection.execute(statement).fetchall()
        return None
    except sqlite3.Error as error:
        return str(error)
    finally:
        connection.close()


def get_in_the_way(file, kind):
    if kind == 0:
        with open(file, 'rb') as stream:
            stream.read(100)
    elif kind == 1:
        shutil.copy(file, file + '.copy')
    elif kind == 2:
        with_sqlite(file, 'SELECT count(*) FROM object')
    elif with_sqlite(file, 'BEGIN IMMEDIATE') is None:
        raise SystemExit('the write lock that we hold was given to somebody else')


def one_mode(folder, mode):
    file = os.path.join(folder, mode + '.brc')
    breccia('init', file, '-q')
    breccia('config', file, 'journal', mode, '-q')
    repo, session = opened(file)
    args = [sys.executable, '-B', __file__, COMMAND, LIBRARY, 'other', file]
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        for number in range(1, COUNT + 1):
            call('brc_begin', repo)
            count_to(session, b'ours', number)
            get_in_the_way(file, random.randrange(4))
            call('brc_end', repo, KEEP)
            with_sqlite(file, 'SELECT count(*) FROM blob')
        theirs = int(process.communicate()[0])
    LIB.brc_session_free(session)
    LIB.brc_free(repo)
    want = {'ours': COUNT, 'theirs': theirs}
    if theirs == 0 or json.loads(breccia('attrs', file, '/')) != want:
        raise SystemExit(f'{mode}: {want} are not {breccia("attrs", file, "/")}')
    breccia('fsck', file)
    return theirs


def main():
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        theirs = {mode: one_mode(folder, mode) for mode in ('rollback', 'wal')}
    print(f'sqlite3 of Python beside ours: {COUNT} changes of ours a mode, of others {theirs}: none lost')


if __name__ == '__main__':
    for function in 'brc_free', 'brc_session_free':
        getattr(LIB, function).restype = None
    if len(sys.argv) > 4 and sys.argv[3] == 'other':
        other(sys.argv[4])
    else:
        main()
