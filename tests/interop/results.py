"""The results of the comparisons: counts, failures by reason, what was left out, what is
known to differ, and how often each data type and codec went each way."""
import collections
import importlib.metadata

import known

ENOUGH = 5  # arrays that agree before something is said to be mended
PEERS = ('zarr-python', 'zarrs', 'tensorstore', 'zarrita')


class Results:
    def __init__(self):
        self.compared = collections.Counter()  # way: comparisons
        self.failed = collections.defaultdict(list)  # 'way: reason': cases
        self.left_out = collections.Counter()  # (peer, reason): cases that it refused
        self.took = collections.Counter()  # (peer, reason): cases that it took all the same
        self.known = collections.Counter()  # (entry, way, differed): comparisons
        self.agreed = collections.defaultdict(set)  # direction: names of arrays
        self.covered = collections.Counter()  # (type or codec, name, way)

    def note(self, way, case, reason):
        """One comparison; `reason` is None where both sides agree."""
        self.compared[way] += 1
        if reason is not None:
            self.failed[f'{way}: {reason}'].append(case)
            return
        if not hasattr(case, 'type'):  # a whole hierarchy
            return
        if way != 'breccia -> breccia':
            self.agreed['to' if way.startswith('breccia') else 'from'].add(case.name)
        self.covered['type', type_name(case), way] += 1
        for codec in set(case.codec_names):
            self.covered['codec', codec, way] += 1

    def note_lacking(self, peer, lack, reason):
        """A case that a peer should refuse."""
        (self.took if reason is None else self.left_out)[peer, lack] += 1

    def note_known(self, entry, way, reason):
        self.known[entry, way, reason is not None] += 1

    def both_ways(self):
        return len(self.agreed['to'] & self.agreed['from'])

    def bad(self):
        return sum(map(len, self.failed.values()))

    # ---- telling -------------------------------------------------------------

    def report(self, seed):
        versions = ', '.join(f'{name} {importlib.metadata.version(name)}'
                             for name in ('zarr', 'zarrs', 'tensorstore', 'numcodecs'))
        print(f'seed {seed}; {versions}')
        for way, count in sorted(self.compared.items()):
            bad = sum(len(cases) for key, cases in self.failed.items() if key.startswith(way + ': '))
            print(f'  {way:<32} {count:>6} compared  {bad:>6} differ')
        self.report_coverage('type')
        self.report_coverage('codec')
        print('left out, because the peer has')
        for (peer, reason), count in sorted(self.left_out.items()):
            print(f'  {count:>6} x {peer}: {reason}')
        self.report_known()
        for reason, cases in sorted(self.failed.items(), key=lambda item: -len(item[1])):
            print(f'FAIL {len(cases)} x {reason}')
            for case in cases[:2]:
                print(f'     {case.name} {case.describe()}')

    def report_known(self):
        print('known to differ, by the fault of the peer (known.py)')
        for entry in known.ENTRIES:
            parts, differed = [], 0
            for way in ('reads', 'writes') if entry.way == 'both' else (entry.way,):
                bad, good = self.known[entry, way, True], self.known[entry, way, False]
                parts.append(f'{way} {bad:>3} of {bad + good:<3}')
                differed += bad
            met = sum(count for (e, _, _), count in self.known.items() if e is entry)
            told = f'{entry.peer:<12} {", ".join(parts):<34} {entry.why}'
            if met == 0:
                told += ' (not met by these arrays)'
            elif differed == 0 and met >= ENOUGH:
                told += ' -- NO LONGER SO: take it out'
            print('  ' + told)
        for (peer, lack), count in sorted(self.took.items()):
            if not self.left_out[peer, lack] and count >= ENOUGH:
                print(f'  {peer}: "{lack}" is NO LONGER SO, {count} of {count} agree')

    def report_coverage(self, what):
        """A table: to the peer and from it, how many agreed."""
        names = sorted({name for kind, name, _ in self.covered if kind == what})
        print(f'{what:<27}' + ''.join(f'{peer:>16}' for peer in PEERS + ('breccia',)))
        print(' ' * 27 + f'{"to / from":>16}' * len(PEERS) + f'{"alone":>16}')
        for name in names:
            def agreed(way):
                return sum(self.covered[what, name, way + version] for version in ('', ' (v2)'))

            def reach(peer):
                to = agreed(f'breccia -> {peer}')
                came = self.covered[what, name, f'{peer} -> breccia'] + \
                    self.covered[what, name, f'{peer} (v2) -> breccia']
                return f'{to} / {came}'

            cells = [reach(peer) for peer in PEERS] + [str(agreed('breccia -> breccia'))]
            print(f'{name:<27}' + ''.join(f'{cell:>16}' for cell in cells))


def type_name(case):
    """r24 and r8 are one."""
    name = case.type.name
    return 'r<bits>' if name[0] == 'r' and name[1:].isdigit() else name
