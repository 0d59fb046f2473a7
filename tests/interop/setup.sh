#!/bin/sh
# setup.sh BUILD [npm]: makes BUILD/interop-venv, with what requirements.txt names, and
# BUILD/interop-npm, with what package.json names; nothing where they are there already.
# Exit 77: Python, pip or npm is not here, or could not fetch them.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
venv=$1/interop-venv
npm=$1/interop-npm

cannot() {
    echo "interop: $1" >&2
    exit 77
}

if ! cmp -s "$here/requirements.txt" "$venv/made-from"; then
    command -v python3 >/dev/null || cannot 'there is no python3'
    rm -rf "$venv"
    python3 -m venv "$venv" || cannot 'python3 cannot make a virtual environment'
    "$venv/bin/python" -m pip -q --disable-pip-version-check install -r "$here/requirements.txt" ||
        cannot 'pip could not fetch the peers'
    cp "$here/requirements.txt" "$venv/made-from"
fi
[ "${2:-}" = npm ] || exit 0
if ! cmp -s "$here/package-lock.json" "$npm/made-from"; then
    command -v npm >/dev/null || cannot 'there is no npm'
    rm -rf "$npm"
    mkdir -p "$npm"
    cp "$here/package.json" "$here/package-lock.json" "$npm"
    (cd "$npm" && npm ci --silent --no-audit --no-fund) || cannot 'npm could not fetch zarrita'
    cp "$here/package-lock.json" "$npm/made-from"
fi
