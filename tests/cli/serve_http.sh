# HTTP as serve promises it, tried with sockets: headers, damaged requests, 2,000 slow clients, versions that move.
. "$CLI_TESTS/common.inc"
program=$(dirname "$(readlink -f "$(command -v breccia)")")/libexec/breccia/serve
[ -x "$program" ] || skip 'breccia was built without libmicrohttpd'
command -v python3 >/dev/null || skip 'there is no python3'
[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge 4096 ] || skip 'too few files may be open at once'
python3 -B "$CLI_TESTS/../serve/clients/http_check.py" 2>&1
