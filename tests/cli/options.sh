# How arguments are read.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /a --shape 6 --dtype int32 --chunks 4
i4 0 1 2 3 4 5 | breccia write r.brc a --from - --quiet

echo '# options stand anywhere, with = or a space, short ones together'
t read --format json r.brc /a
t read r.brc --format=json /a
t --json read r.brc /a
t ls -rl r.brc
t ls r.brc --recursive --long
t log r.brc -n1
t log r.brc -n 1

echo '# what begins with - and a digit is an operand; behind -- everything is'
t read r.brc /a -2:
t read r.brc /a '[-1]'
t read r.brc /a -- -3:-1
t write r.brc /a '[0]' --value -5
t write r.brc /a '[1]' --value=-6
t read r.brc /a

echo '# wrong ones'
t ls r.brc --lang
t ls r.brc -x
t ls r.brc -rx
t ls r.brc --long=1
t read r.brc /a --format
t read r.brc /a --format xml
t log r.brc -n x
t log r.brc -n -1
t log r.brc -n 99999999999999999999
t ls r.brc --threads 1.5
t ls r.brc --threads 9999
t ls r.brc --wait soon
t ls r.brc --wait -1
t ls r.brc --color blue
t ls
t ls r.brc / more
t mv r.brc /a
t ls ''

echo '# --threads changes nothing, --verbose and --no-progress are taken'
t read r.brc /a --threads 1
t read r.brc /a --threads 3 --verbose --no-progress --wait 0.5
