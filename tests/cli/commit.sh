# status and commit.
. "$CLI_TESTS/common.inc"

me="--author=Ada <ada@example.org>"
q init r.brc
t status r.brc
q create r.brc /a --shape 4 --dtype int32 --chunks 2 --attrs '{"k": 1}'
q write r.brc /a '[:3]' --value 5
q group r.brc /g
t status r.brc
t status r.brc --json

echo '# commit'
t commit r.brc -m 'first
with a second line' "$me" --date 2026-11-20T12:00:00Z
t status r.brc
t status r.brc --json
t log r.brc
q write r.brc /a '[0]' --value 6
t commit r.brc -m second "$me" --date 2026-11-20T14:30:00.25+02:00 --meta run='{"seed": 7}' \
    --meta n=1 --meta n=2 --json
t log r.brc -n 1
t log r.brc -n 1 --json
q write r.brc /a '[1]' --value 6
t commit r.brc -m 'a date alone' "$me" --date 2026-11-21
q write r.brc /a '[2]' --value 6
t commit r.brc -m seconds "$me" --date @1800000000.5
q write r.brc /a '[3]' --value 6
t commit r.brc -m quietly "$me" --date @1800000001 --quiet
t log r.brc -n 3 | grep Date
BRECCIA_AUTHOR='Grace <grace@example.org>' breccia commit r.brc -m 'by the environment' \
    --allow-empty --date @1800000002
t log r.brc -n 1
breccia commit r.brc -m 'by nobody in particular' --allow-empty --quiet
breccia log r.brc -n 1 --json | grep -c '"author":"[^"]* <[^"]*@[^"]*>"'

echo '# amend, empty'
t commit r.brc -m nothing "$me"
t commit r.brc -m 'nothing, but said' "$me" --allow-empty --date @1800000003 --meta why='"said"'
t commit r.brc --amend --date @1800000004
t log r.brc -n 1
q write r.brc /a '[0]' --value 9
t commit r.brc --amend -m 'said otherwise' --date @1800000005
t log r.brc -n 1
t log r.brc --oneline

echo '# usage'
t commit r.brc
t commit r.brc -m ''
t commit r.brc -m ' '
t commit r.brc -m
t commit r.brc -m x --date yesterday
t commit r.brc -m x --date 2026-02-30
t commit r.brc -m x --date 2026-11-20T25:00:00Z
t commit r.brc -m x --date @
t commit r.brc -m x --meta run
t commit r.brc -m x --meta run=seven
t commit r.brc -m x --author ''
t status r.brc extra

echo '# what a message says cannot steer the terminal'
q commit r.brc --allow-empty -m "$(printf 'bell\007 and \033[31mred')" "$me" --date @1800000006
t log r.brc -n 1 --oneline
t log r.brc -n 1
t log r.brc -n 1 --json
