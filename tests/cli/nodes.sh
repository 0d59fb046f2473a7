# group, rm, mv, cp, ls, info.
. "$CLI_TESTS/common.inc"

q init r.brc
t group r.brc /a/b --attrs '{"k": 1}'
t group r.brc a/c --json
t group r.brc /a/b
t group r.brc /x --attrs nope
q create r.brc /a/b/data --shape 4,4 --dtype int16 --chunks 2,2 --compress none --fill -1
q write r.brc /a/b/data '[:2, :2]' --value 5

echo '# ls'
t ls r.brc
t ls r.brc /a
t ls r.brc a/b/
t ls r.brc -r
t ls r.brc /a/b/data
t ls r.brc -rl
t ls r.brc -r --json
t ls r.brc -l /a/b --json
t ls r.brc /nowhere

echo '# info'
t info r.brc /a/b --json
t info r.brc /a/b/data --json
t info r.brc /a/b/data
t info r.brc / --json
t info r.brc /nowhere
t info r.brc --at main
breccia info r.brc --json | sed 's/_bytes":[0-9]*/_bytes":N/g; s/"objects":[0-9]*/"objects":N/'
breccia info r.brc | sed 's/[0-9][0-9.]* \(bytes.*\|times\)$/N \1/; s/(.*)/(N)/; s/^\(objects *\)[0-9]*/\1N/'

echo '# mv and cp copy no chunk'
t cp r.brc /a/b /copy
t mv r.brc /a/b /a/moved
t mv r.brc /a/moved/data top --json
t cp r.brc /copy/data /again --json
t ls r.brc -r
t read r.brc /top
breccia info r.brc --json | sed 's/.*"chunks":\([0-9]*\).*/chunks stored: \1/'
t mv r.brc /nowhere /y
t mv r.brc /copy /again
t mv r.brc /a /a/below
t cp r.brc /copy /top
t mv r.brc / /y

echo '# rm'
t rm r.brc /copy
t rm r.brc /again --json
t rm r.brc /again
t rm r.brc /
t ls r.brc -r

echo '# names that would steer a terminal are shown escaped'
t group r.brc "/$(printf 'red\033[31mname')"
t ls r.brc
t ls r.brc --json
