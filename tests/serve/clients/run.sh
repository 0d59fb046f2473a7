#!/bin/sh
# run.sh BUILD: what `breccia serve` serves, read by other programs (clients.py). They are fetched into BUILD/serve-clients
# with pip and npm; GDAL (gdal-bin), rclone, Chromium with neuroglancer, nginx, Caddy and slowhttptest take part where
# they are installed.
# Exit 77: something cannot be fetched, or this build has no server.
set -u

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
tools=$build/serve-clients
peers=serve-test
. "$here/../../peers.sh"

[ -x "$build/libexec/breccia/serve" ] || cannot 'this build has no server: install libmicrohttpd-dev'
mkdir -p "$tools"
python_peers "$tools/venv" "$here/requirements.txt"
mkdir -p "$tools/ikonate"
echo '{ "name": "ikonate", "version": "1.0.0" }' >"$tools/ikonate/package.json"
npm_peers "$tools" "$here/package.json"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" && BRECCIA=$build/breccia "$tools/venv/bin/python" -B "$here/clients.py" "$tools"
