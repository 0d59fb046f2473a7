# Settings of users: the file in their home, the environment, aliases, and where each setting comes from.
. "$CLI_TESTS/common.inc"

XDG_CONFIG_HOME=$PWD/home
export XDG_CONFIG_HOME
q init r.brc

echo '# author'
t config --user
t config --user author 'Ada <ada@example.org>'
t config --user author
cat home/breccia/config.json
q create r.brc /a --shape 4 --dtype int16
q commit r.brc -m one
author() { breccia log r.brc -n 1 --json | sed 's/.*"author":"\([^"]*\)".*/\1/'; }
author
q write r.brc /a --value 1
BRECCIA_AUTHOR='Eve <eve@example.org>' q commit r.brc -m two
author
q write r.brc /a --value 2
BRECCIA_AUTHOR='Eve <eve@example.org>' q commit r.brc -m three --author 'Bob <bob@example.org>'
author

echo '# aliases'
t config --user alias.st status
t config --user alias.ci 'commit -m'
t config --user alias.say '["commit", "-m", "two words"]'
t st r.brc
q write r.brc /a --value 3
t ci 'by alias' r.brc --json | sed 's/"id":"[^"]*"/"id":ID/'
q write r.brc /a --value 4
breccia say r.brc | sed 's/ id[0-9]*\| [0-9a-f]\{8\}\]/ ID]/'
t -f r.brc st
t config --user alias.status log
t config --user alias.x 'nothing at all'
t x r.brc
t config --user alias.x --unset
t x r.brc

echo '# keys by other names, and in the other place'
t config --user user.name Ada
t config --user colour never
t config --user journal wal
t config r.brc user.email a@example.org
t config r.brc colour
t config r.brc threads 2
t config r.brc nothing
t config r.brc

echo '# threads and colours'
t config --user threads 2
t config --user color always
breccia diff r.brc HEAD~1 HEAD | grep -c "$(printf '\033')"
breccia diff r.brc HEAD~1 HEAD --color never | grep -c "$(printf '\033')"
BRECCIA_COLOR=never breccia diff r.brc HEAD~1 HEAD | grep -c "$(printf '\033')"
BRECCIA_COLOR=pink t status r.brc
BRECCIA_THREADS=many t status r.brc
t config --user threads x
t config --user threads 99999
t config --user cache-bytes 0
t config --user cache-bytes 1G
t config --user cache-bytes 1000000000
t config --user cache-bytes --unset
BRECCIA_CACHE_BYTES=much t status r.brc
t config --user color pink
t config --user color --unset

echo '# codecs of new repositories'
t config --user codecs '["gzip"]'
q init new.brc
t config new.brc codecs
q create new.brc /a --shape 4 --dtype int16
t codecs new.brc /a
t config r.brc codecs
t config --user codecs '["nope"]'
t init other.brc
rm -f other.brc
t config --user codecs zstd
t config --user codecs '["gzip"'
t config --user codecs --unset

echo '# origins'
t config r.brc --show-origin
BRECCIA_AUTHOR='Eve <eve@example.org>' t config --user --show-origin
t config r.brc --show-origin --json
t config --user --json

echo '# usage'
t config --user nothing
t config --user nothing 1
t config --user author ''
t config --user a b c
t config --user --unset
t config --user author x --unset
t config --show-origin author r.brc
t config
echo '{"author": 5, "later": {"a": [1]}, "threads": "3"}' >home/breccia/config.json
t config --user
t config --user color never
cat home/breccia/config.json

echo '{"color": "pink"}' >home/breccia/config.json
t status r.brc
t help slices | head -n 1
t config --user color auto
t status r.brc

echo '# a file that is damaged'
here() { t "$@" | sed "s|$PWD/||"; }
echo '{"author": ' >home/breccia/config.json
here status r.brc
here config --user author x
breccia --version | sed 's/ .*//'
echo '[1]' >home/breccia/config.json
here status r.brc
rm home/breccia/config.json
mkdir home/breccia/config.json
here status r.brc
rmdir home/breccia/config.json
t status r.brc

echo '# homes'
unset XDG_CONFIG_HOME
HOME=$PWD/person t config --user author 'Ann <ann@example.org>'
cat person/.config/breccia/config.json
HOME='' t config --user author x
HOME='' t status r.brc
