# serve and ui: arguments, the address, an answer, the end.
. "$CLI_TESTS/common.inc"

breccia serve 2>&1
echo "status $?"
breccia serve a.brc --root . 2>&1
echo "status $?"
breccia serve a.brc --public 2>&1
echo "status $?"
program=$(dirname "$(readlink -f "$(command -v breccia)")")/libexec/breccia/serve
[ -x "$program" ] || { echo 'breccia was built without libmicrohttpd'; exit 77; }
command -v python3 >/dev/null || { echo 'there is no python3'; exit 77; }
timeout 20 breccia serve gone.brc
echo "status $?"
breccia init a.brc
timeout 20 breccia serve a.brc --port 70000
echo "status $?"
timeout 20 breccia serve a.brc --token short
echo "status $?"
timeout 20 breccia serve a.brc --bind 0.0.0.0
echo "status $?"
if [ -w /dev/full ]; then
    timeout 20 breccia serve a.brc --watch-stdin </dev/null >/dev/full 2>full
    echo "status $?, $(grep -c 'standard output cannot be written' full)"
else
    echo 'status 1, 1'
fi
mkdir b && cp a.brc b/a.brc
timeout 20 breccia serve a.brc b/a.brc
echo "status $?"
breccia create a.brc /x --shape 4 --dtype uint8 --chunks 2 --compress none
breccia write a.brc /x --value 7
breccia commit a.brc -m one

# get URL...: status, some headers and the body of each.
cat >get.py <<'P'
import sys, urllib.request, urllib.error
for url in sys.argv[1:]:
    try:
        answer = urllib.request.urlopen(url)
    except urllib.error.HTTPError as e:
        answer = e
    print(answer.status, answer.headers['Access-Control-Allow-Origin'], answer.headers['Cache-Control'].replace('31536000', 'YEAR'), answer.read())
P
# serve ARGUMENTS...: starts the server; its address is in $url.
serve() {
    rm -f end url
    mkfifo end
    breccia "$@" --watch-stdin <end >url &
    server=$!
    exec 9>end
    while [ ! -s url ] && kill -0 "$server"; do sleep 0.05; done
    url=$(cat url)
}
ended() {
    exec 9>&-
    wait "$server"
    echo "status $?"
}
serve serve a.brc
case $url in http://127.0.0.1:*/????????????????????????????????/) echo 'an address' ;; *) echo "$url" ;; esac
python3 get.py "${url}main/a.zarr/x/c/1" "${url}$(breccia log a.brc -n 1 --json | sed -n 's/.*"id": *"\([0-9a-f]*\)".*/\1/p' | head -n 1)/a.zarr/x/c/1" \
    "${url}main/a.zarr/x/c/2"
ended
serve serve --root . --json --token 0123456789abcdef
echo "$url" | sed 's/:[0-9][0-9]*\//:PORT\//'
url=$(echo "$url" | sed 's/.*"\(http[^"]*\)".*/\1/')
python3 get.py "${url}main/b/" "${url}main/a.zarr/x/c/0" "${url}main/b/a.zarr/x/c/0" "${url%/*/}/0123456789abcdeg/main/a.zarr/x/c/0"
kill "$server"
wait "$server"
echo "status $?"
exec 9>&-
BROWSER=$PWD/browser
export BROWSER
printf '#!/bin/sh\necho "$1" >opened\n' >browser
chmod +x browser
serve ui a.brc@main~0 --token 0123456789abcdef
while [ ! -s opened ] && kill -0 "$server"; do sleep 0.05; done
sed 's/:[0-9][0-9]*\//:PORT\//' opened
ended
