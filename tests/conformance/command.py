"""Runs the breccia command, and says what a row came to."""
import json
import subprocess


class Fail(Exception):
    """The row is not as it must be."""


class Unreadable(Fail):
    """The row was kept and given back as it was, but its values cannot be read."""


class Skip(Exception):
    """The row is nothing that the command could be asked."""


class Command:
    def __init__(self, path, limit=60):
        self.path = path
        self.limit = limit

    def run(self, *args):
        """(exit status, standard output, standard error's text)"""
        try:
            done = subprocess.run([self.path, *args, '--threads', '1'], capture_output=True,
                                  timeout=self.limit, check=False)
        except subprocess.TimeoutExpired as late:
            raise Fail(f'{args[0]} took longer than {self.limit} s') from late
        error = done.stderr.decode('utf-8', 'replace').strip()
        if done.returncode not in (0, 1, 4):
            raise Fail(f'{args[0]} ended with {done.returncode}: {error[-300:]}')
        if done.returncode and (not error.startswith('breccia: error: ') or '\n' in error):
            raise Fail(f'{args[0]} did not fail with one line: {error[-300:]}')
        return done.returncode, done.stdout, error

    def must(self, *args):
        status, out, error = self.run(*args)
        if status:
            raise Fail(f'{args[0]}: {error[len("breccia: error: "):]}')
        return out

    def json(self, *args):
        return json.loads(self.must(*args, '--json'))
