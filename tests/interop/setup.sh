#!/bin/sh
# setup.sh BUILD [npm]: makes BUILD/interop-venv, with what requirements.txt names, and
# BUILD/interop-npm, with what package.json names; nothing where they are there already.
# Exit 77: Python, pip or npm is not here, or could not fetch them.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
peers=interop
. "$here/../peers.sh"

python_peers "$1/interop-venv" "$here/requirements.txt"
[ "${2:-}" != npm ] || npm_peers "$1/interop-npm" "$here/package.json" "$here/package-lock.json"
