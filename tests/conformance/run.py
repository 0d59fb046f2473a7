#!/usr/bin/env python3
"""The conformance table: what other implementations wrote, read with the command.

    run.py COMMAND FOLDER [--known FILE] [--only TEXT] [--jobs N] [--all]

FOLDER holds INDEX.jsonl and what it names. Every array of the index is imported into
a repository of its own, read, hashed as INDEX.md says and exported again: metadata
must come back equal as JSON and chunks byte for byte (decoded content, for shards).
Then every metadata document is offered for import, and every damaged chunk is read.
A row that cannot be is named in known.txt with its reason. Exit 1: another row failed.
Python's standard library only.
"""
import argparse
import concurrent.futures
import fnmatch
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import arrays  # noqa: E402
import buffers  # noqa: E402
import documents  # noqa: E402
from command import Command, Fail, Skip  # noqa: E402


def rows_of(folder):
    """(set, name, check): check(command, work folder) raises Fail or Skip."""
    yield from arrays.rows(folder)
    yield from buffers.rows(folder)
    yield from documents.rows(folder)


def read_known(path):
    known = []
    with open(path, encoding='utf-8') as file:
        for line in file:
            line = line.split('#')[0].rstrip()
            if line:
                pattern, _, reason = line.partition(' ')
                known.append((pattern, reason.strip()))
    return known


def known_reason(known, name):
    return next((reason for pattern, reason in known if fnmatch.fnmatchcase(name, pattern)), None)


def short(text, work):
    """Without the names of places that the next run does not have."""
    return re.sub(re.escape(work) + r'/[^ ]*: ', '', text).replace(work + '/', '')


def judge(command, row, known):
    """(outcome, reason) of a row."""
    group, name, check = row
    reason = known_reason(known, f'{group}/{name}')
    try:
        with tempfile.TemporaryDirectory(prefix='conformance-') as work:
            check(command, work)
    except Skip as why:
        return 'skipped', str(why)
    except (Fail, OSError, ValueError, LookupError, TypeError) as why:
        return ('known', reason) if reason is not None else ('FAIL', short(str(why) or repr(why), work))
    return ('pass', 'though known.txt names it') if reason is not None else ('pass', '')


def print_table(results):
    print(f'{"set":<44} {"rows":>6} {"pass":>6} {"fail":>6} {"known":>6} {"skipped":>8}')
    groups = dict.fromkeys(group for group, _, _, _ in results)
    totals = [0] * 5
    for group in groups:
        outcomes = [outcome for g, _, outcome, _ in results if g == group]
        counts = [len(outcomes)] + [outcomes.count(o) for o in ('pass', 'FAIL', 'known', 'skipped')]
        totals = [total + count for total, count in zip(totals, counts)]
        print(f'{group:<44} {counts[0]:>6} {counts[1]:>6} {counts[2]:>6} {counts[3]:>6} {counts[4]:>8}')
    print(f'{"all":<44} {totals[0]:>6} {totals[1]:>6} {totals[2]:>6} {totals[3]:>6} {totals[4]:>8}')


def print_reasons(results, title, outcome):
    reasons = {}
    for group, name, got, reason in results:
        if got == outcome:
            reasons.setdefault(reason, []).append(f'{group}/{name}')
    if reasons:
        print(f'\n{title}')
    for reason, names in reasons.items():
        print(f'  {len(names)} x {reason}: {names[0]}' + (' ...' if len(names) > 1 else ''))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('command')
    parser.add_argument('folder')
    parser.add_argument('--known', default=os.path.join(os.path.dirname(__file__), 'known.txt'))
    parser.add_argument('--only', default='')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--all', action='store_true', help='prints every row')
    args = parser.parse_args()
    known = read_known(args.known)
    command = Command(os.path.abspath(args.command))
    rows = [row for row in rows_of(os.path.abspath(args.folder)) if args.only in f'{row[0]}/{row[1]}']
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        outcomes = list(pool.map(lambda row: judge(command, row, known), rows))
    results = [(row[0], row[1]) + outcome for row, outcome in zip(rows, outcomes)]
    print_table(results)
    print_reasons(results, 'skipped:', 'skipped')
    print_reasons(results, 'known.txt:', 'known')
    for group, name, outcome, reason in results:
        if outcome == 'FAIL' or args.all or (outcome == 'pass' and reason):
            print(f'{outcome} {group}/{name}: {reason}')
    failed = sum(outcome == 'FAIL' for _, _, outcome, _ in results)
    print(f'conformance: {len(results)} rows, {failed} failed')
    return 1 if failed or not results else 0


if __name__ == '__main__':
    sys.exit(main())
