#!/usr/bin/env python3
"""Arrays that go both ways between breccia and its peers.

    interop.py COMMAND [--count N] [--seed S] [--first N] [--only NUMBER] [--keep FOLDER]

Every generated array is written by a peer, imported and read with the command; and
written with the command, exported, and read by every peer that can. Values, shape,
fill value and attributes must be equal, bit for bit. Exit 1: an array differed.

What a peer lacks (`cannot` in peers.py) and where it is wrong (known.py) is tried as
well, and told where it no longer is so.
"""
import argparse
import collections
import concurrent.futures
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import generate
import hierarchies
import known
import peers
import version2
from results import Results

BATCH = 250  # arrays of one repository


class Refused(Exception):
    """The command said no."""


def run(command, *args, data=None):
    done = subprocess.run([command, *args, '--threads', '1'], input=data, capture_output=True,
                          check=False, timeout=120)
    if done.returncode:
        raise Refused(f'{args[0]}: {done.stderr.decode("utf-8", "replace").strip()[-300:]}')
    return done.stdout


def equal_json(a, b):
    """Compares two values as JSON, where integers and floats differ."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def in_doubles(value):
    """Returns the value as read by a program that keeps all numbers in float64."""
    if isinstance(value, dict):
        return {key: in_doubles(part) for key, part in value.items()}
    if isinstance(value, list):
        return [in_doubles(part) for part in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def compare(case, content, seen, doubles=False):
    """Returns what differs, or None. doubles: attributes went through a peer that has only float64."""
    values, shape, fill, attributes = seen
    if shape != list(content.shape):
        return f'shape {shape}, not {list(content.shape)}'
    want = case.type.canonical(content)
    if values != want:
        return 'other values' if len(values) == len(want) else 'another number of bytes'
    if fill is not None:
        expected = case.type.canonical(case.type.filled((1,), case.fill))
        if fill != expected:
            return f'fill value {fill.hex()}, not {expected.hex()}'
    wanted = case.doc.get('attributes', {})
    if doubles:
        attributes, wanted = in_doubles(attributes), in_doubles(wanted)
    if attributes is not None and not equal_json(attributes, wanted):
        return 'other attributes'
    return None


# ---- a peer writes, breccia reads --------------------------------------------

def peer_writes(peer, root, cases, tell):
    written = []
    for case in cases:
        try:
            peer.write(root, case)
            written.append(case)
        except Exception as why:  # whatever a peer may raise
            tell(f'{peer.name} writes', case, one_line(why))
            shutil.rmtree(os.path.join(root, case.name), ignore_errors=True)
    return written


def one_line(why):
    return f'{type(why).__name__}: {str(why)[:160]}'.replace('\n', ' ')


def import_all(command, repo, root, cases, way, tell):
    """At once; where that fails one after the other, to know which."""
    try:
        run(command, 'import', repo, root, '/p')
        return cases
    except Refused:
        pass
    taken = []
    for case in cases:
        try:
            run(command, 'import', repo, os.path.join(root, case.name), '/p/' + case.name)
            taken.append(case)
        except Refused as why:
            tell(way, case, short(why, case))
    return taken


def short(why, case):
    return str(why).replace(case.name, 'A').rpartition('.brc: ')[2][-200:]


def read_ours(command, repo, case, root):
    values = run(command, 'read', repo, f'/p/{case.name}', '--format', 'raw')
    doc = json.loads(run(command, 'info', repo, f'/p/{case.name}', '--json'))['metadata']
    with open(os.path.join(root, case.name, 'zarr.json'), encoding='utf-8') as file:
        theirs = json.load(file)
    if not equal_json(doc['fill_value'], theirs['fill_value']):
        raise Refused(f'fill value {doc["fill_value"]}, not {theirs["fill_value"]}')
    return values, doc['shape'], None, doc.get('attributes', {})


def from_peer(command, peer, cases, work, tell):
    """`tell(way, case, reason)` takes what came of each; None: no difference."""
    way = f'{peer.name} -> breccia'
    root = tempfile.mkdtemp(prefix=peer.name, dir=work)
    with open(os.path.join(root, 'zarr.json'), 'w', encoding='utf-8') as file:
        json.dump({'zarr_format': 3, 'node_type': 'group'}, file)
    if hasattr(peer, 'write_all'):
        peer.write_all(root, cases, root + '-from')
    cases = peer_writes(peer, root, cases, tell)
    repo = root + '.brc'
    run(command, 'init', repo)
    cases = import_all(command, repo, root, cases, way, tell)

    def judge(case):
        try:
            return compare(case, case.content(case.written), read_ours(command, repo, case, root),
                           peer.doubles)
        except Refused as why:
            return short(why, case)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, reason in zip(cases, pool.map(judge, cases)):
            tell(way, case, reason)


def tell_known(peer, way, results):
    """Returns a function that notes cases that may differ."""
    def tell(_, case, reason):
        for entry in known.find(peer.name, case, way):
            results.note_known(entry, way, reason)
    return tell


# ---- breccia writes, peers read ------------------------------------------------

def selection(start, values, step=None):
    """The words of a box on the command line."""
    parts = [f'{part.start}:{part.stop}:{part.step}' for part in generate.boxed(start, values.shape, step)]
    return ['[' + ','.join(parts) + ']'] if parts else []


def take_step(command, repo, case, what, rest):
    path = f'/p/{case.name}'
    if what == 'resize':
        run(command, 'resize', repo, path, '--shape', ','.join(map(str, rest[0])))
    elif what == 'codecs':
        run(command, 'codecs', repo, path, json.dumps(rest[0]), '--rewrite')
    elif what == 'commit':
        run(command, 'commit', repo, '-m', case.name, '--allow-empty')
        run(command, 'tag', repo, f'{case.name}-{len(case.versions)}')
    elif rest[1].size:
        start, values, *step = rest
        run(command, 'write', repo, path, *selection(start, values, *step), '--from', '-',
            data=case.type.canonical(values))


def write_ours(command, repo, work, case):
    path = f'/p/{case.name}'
    if case.options:
        run(command, 'create', repo, path, *case.options)
        case.doc = json.loads(run(command, 'info', repo, path, '--json'))['metadata']
    else:
        document = os.path.join(work, case.name + '.json')
        with open(document, 'w', encoding='utf-8') as file:
            json.dump(case.doc, file)
        run(command, 'create', repo, path, '--metadata', '@' + document)
    steps = case.written + case.then
    case.versions = []  # what was there at each commit
    for at, (what, *rest) in enumerate(steps):
        take_step(command, repo, case, what, rest)
        if what == 'commit':
            case.versions.append(case.content(steps[:at]))


def reads_back(command, repo, case):
    """Compares the values of now, and those of each commit."""
    read = ['read', repo, f'/p/{case.name}', '--format', 'raw']
    if run(command, *read) != case.type.canonical(case.content(case.written + case.then)):
        return 'other values'
    for number, version in enumerate(case.versions):
        if run(command, *read, '--at', f'{case.name}-{number}') != case.type.canonical(version):
            return 'other values in an older version'
    return None


def fill_ours(command, cases, work, results):
    """A repository with the arrays, each also read back; those that could be written."""
    repo = os.path.join(work, 'ours.brc')
    run(command, 'init', repo)
    written = []
    for case in cases:
        try:
            write_ours(command, repo, work, case)
            reason = reads_back(command, repo, case)
        except Refused as why:
            reason = short(why, case)
        results.note('breccia -> breccia', case, reason)
        if reason is None:
            written.append(case)
    return repo, written


def final(case):
    """The case as its steps left it."""
    content = case.content(case.written + case.then)
    codecs = [step[1] for step in case.then if step[0] == 'codecs']
    case.doc = {**case.doc, 'shape': list(content.shape), 'codecs': (codecs or [case.doc['codecs']])[-1]}
    case.writes, case.then = [([0] * content.ndim, content)], []


def peer_reads(peer, root, case):
    try:
        return compare(case, case.content(case.written), peer.read(root, case), peer.doubles)
    except Exception as why:  # whatever a peer may raise
        return one_line(why)


def to_peers(command, readers, cases, work, results):
    repo, cases = fill_ours(command, cases, work, results)
    root = os.path.join(work, 'ours')
    run(command, 'export', repo, '/p', root, '--unequal-dimensions')
    for case in cases:
        final(case)
    for peer in readers:
        takes = [case for case in cases if not peer.ends_at(case)]
        results.left_out[peer.name, 'an end of the process'] += len(cases) - len(takes)
        if hasattr(peer, 'read_all'):
            peer.read_all(root, takes, os.path.join(work, 'by-' + peer.name))
        for case in takes:
            lack, reason = peer.cannot(case, False), peer_reads(peer, root, case)
            if lack is not None:
                if reason is not None or known.stored(case):
                    results.note_lacking(peer.name, lack, reason)
            elif known.find(peer.name, case, 'reads'):
                tell_known(peer, 'reads', results)(None, case, reason)
            else:
                results.note(f'breccia -> {peer.name}', case, reason)


# ---- Zarr v2: a peer writes, breccia changes, the peers read -------------------

def import_v2(command, repo, root, case, way, results):
    """Checks that the array was imported with its values, and that later changes are read back."""
    path = f'/p/{case.name}'
    try:
        run(command, 'import', repo, os.path.join(root, case.name), path)
        seen = (run(command, 'read', repo, path, '--format', 'raw'), case.shape, None,
                json.loads(run(command, 'attrs', repo, path, '--json')))
        reason = version2.compare(case, case.content(case.written), seen)
        for _, start, values in case.then:
            if values.size:
                run(command, 'write', repo, path, *selection(start, values), '--from', '-',
                    data=case.type.canonical(values))
    except Refused as why:
        reason = short(why, case)
    results.note(way, case, reason)
    return reason is None


def batch_v2(command, cases, work, results):
    repo, taken = os.path.join(work, 'v2.brc'), []
    run(command, 'init', repo)
    for case in cases:
        writers = [peer for peer in version2.PEERS if peer.cannot(case, True) is None]
        if not writers:
            results.left_out['every peer (v2)', 'no way to write it'] += 1
            continue
        peer = writers[int(case.name[1:]) // 4 % len(writers)]
        root = os.path.join(work, peer.name)
        if peer_writes(peer, root, [case], results.note) and \
                import_v2(command, repo, root, case, f'{peer.name} -> breccia', results):
            taken.append(case)
    root = os.path.join(work, 'ours-v2')
    try:
        run(command, 'export', repo, '/p', root, '--format', 'zarr2', '--unequal-dimensions')
    except Refused as why:
        return results.note('breccia -> v2', taken[0], short(why, taken[0]))
    for peer in version2.PEERS:
        for case in taken:
            lack = peer.cannot(case, False)
            try:
                reason = version2.compare(case, case.content(case.written + case.then),
                                          peer.read(root, case))
            except Exception as why:  # whatever a peer may raise
                reason = one_line(why)
            if lack is None:
                results.note(f'breccia -> {peer.name}', case, reason)
            else:
                results.note_lacking(peer.name, lack, reason)
    return None


def shared_out(everyone, cases, results):
    """Says which peer writes which case, and which cases a peer may write wrongly."""
    shares, doubtful = collections.defaultdict(list), collections.defaultdict(list)
    for case in cases:
        writers = []
        for peer in everyone:
            if peer.ends_at(case) or peer.cannot(case, True) is not None:
                continue
            wrong = known.find(peer.name, case, 'writes')
            (doubtful[peer] if wrong else writers).append(case if wrong else peer)
        if writers:  # the last one, zarrita, can write the fewest
            number = int(case.name[1:])
            which = -1 if number % 2 else number // 2 % len(writers)
            shares[writers[which]].append(case)
        else:
            results.left_out['every peer', 'no way to write it'] += 1
    return shares, doubtful


def batch(command, everyone, seed, cases, work, results):
    shares, doubtful = shared_out(everyone, cases, results)
    for peer, share in shares.items():
        from_peer(command, peer, share, work, results.note)
    for peer, share in doubtful.items():
        from_peer(command, peer, share, work, tell_known(peer, 'writes', results))
    numbers = [int(case.name[1:]) for case in cases[::5]]
    made = [generate.by_options(seed, number) for number in numbers]
    to_peers(command, everyone, cases + made, work, results)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('command')
    parser.add_argument('--count', type=int, default=2500)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--only', type=int)
    parser.add_argument('--keep')
    args = parser.parse_args()
    everyone = [peers.ZarrPython(), peers.Zarrs(), peers.TensorStore()]
    if os.environ.get('INTEROP_NPM'):
        everyone.append(peers.Zarrita(os.environ['INTEROP_NPM']))
    numbers = range(args.first, args.first + args.count) if args.only is None else [args.only]
    results, began = Results(), time.monotonic()
    for at in range(0, len(numbers), BATCH):
        cases = [generate.case(args.seed, number) for number in numbers[at:at + BATCH]]
        work = tempfile.mkdtemp(prefix='interop-')
        try:
            batch(os.path.abspath(args.command), everyone, args.seed, cases, work, results)
            older = [version2.case(args.seed, number) for number in numbers[at:at + BATCH:4]]
            batch_v2(os.path.abspath(args.command), older, work, results)
            for number in numbers[at:at + BATCH:10]:
                hierarchies.check(functools.partial(run, os.path.abspath(args.command)), Refused,
                                  args.seed, number, work, results)
        finally:
            if args.keep:
                shutil.copytree(work, os.path.join(args.keep, str(at)), dirs_exist_ok=True)
            shutil.rmtree(work)
    results.report(args.seed)
    bad = results.bad()
    print(f'interop: {len(numbers)} arrays, {results.both_ways()} of them and of v2 went both ways, '
          f'{sum(results.compared.values())} comparisons, '
          f'{bad} differ, seed {args.seed}, {time.monotonic() - began:.0f} s')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
