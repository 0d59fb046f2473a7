#!/bin/sh
# run.sh BUILD [NAME...]: the page of `breccia serve` in Debian's Chromium, by pointer and by keys (page_test.py).
# What it takes of others is fetched into BUILD/page with pip and npm. Pictures of the page go into BUILD/page/shots,
# and into the folder SHOTS if that is set. CHROMIUM: another browser.
# Exit 77: there is no Chromium, or something cannot be fetched.
set -u

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
shift
tools=$build/page
CHROMIUM=${CHROMIUM:-$(command -v chromium || echo /usr/bin/chromium)}
export CHROMIUM

peers=page
. "$here/../peers.sh"

[ -x "$build/libexec/breccia/serve" ] || cannot 'this build has no server: install libmicrohttpd-dev'
[ -x "$CHROMIUM" ] || cannot 'there is no Chromium: install chromium'
mkdir -p "$tools/shots"
python_peers "$tools/venv" "$here/requirements.txt"
npm_peers "$tools" "$here/package.json"
"$tools/venv/bin/python" "$here/page_test.py" "$build/breccia" "$tools/node_modules/axe-core/axe.min.js" \
    "$tools/shots" "$@" || exit 1
[ -z "${SHOTS:-}" ] || cp "$tools"/shots/page-*.png "$SHOTS"
