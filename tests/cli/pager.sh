# The pager: which program it is, when there is one, and that the command ends as it would without.
. "$CLI_TESTS/common.inc"

unset PAGER
TERM=xterm
export TERM

q init r.brc
q create r.brc /a --shape 200000 --dtype int16
commit r.brc first 10
q write r.brc /a --value 1

# on ARGUMENT...: the call on a terminal, with the variables of $with.
on() {
    echo "\$ ${with:+$with }breccia $*"
    on_terminal 80 24 "${with:+env $with} breccia $*" >said
    status=$?
    tr -d '\r' <said | cat -v
    show_status $status
}

# A program of each name, which says its name, LESS and LV before what it is given.
mkdir bin
for name in less mine other; do
    printf '#!/bin/sh\necho "%s, LESS=${LESS-}, LV=${LV-}"\nsed "s/^/| /"\n' $name >bin/$name
    chmod +x bin/$name
done
PATH=$PWD/bin:$PATH

echo '# which pager'
on ls r.brc
with=LESS=-S on ls r.brc
with=PAGER=other on ls r.brc
with='PAGER=other BRECCIA_PAGER=mine' on ls r.brc
XDG_CONFIG_HOME=$PWD/home
export XDG_CONFIG_HOME
q config --user pager mine
with=PAGER=other on ls r.brc
with=BRECCIA_PAGER=other on ls r.brc
q config --user pager --unset

echo '# none'
for none in PAGER= PAGER=cat BRECCIA_PAGER= BRECCIA_PAGER=cat TERM=dumb; do
    with=$none on ls r.brc
done
on -P ls r.brc
on ls r.brc --no-pager
on read r.brc "'/a'" "'[0:4]'" --plot | tail -n 1
on status r.brc
echo '$ breccia ls r.brc, to a pipe'
breccia ls r.brc | cat
echo '$ breccia ls r.brc, on a terminal without less'
mkdir none
for program in breccia env; do ln -s "$(command -v $program)" none; done
with="PATH=$PWD/none" on ls r.brc | sed 1d
with=BRECCIA_PAGER=absent on ls r.brc

echo '# errors come without a pager where there is no output, and the status stays'
on ls r.brc /missing
on diff r.brc --exit-code
with='BRECCIA_PAGER="sed s/^/@/"' on ls r.brc
on log r.brc --json --color never | sed 's/[0-9a-f]\{64\}/ID/'
on show --help | head -n 3

echo '# a pager that ends early is not an error'
with='BRECCIA_PAGER="head -c 40"' on read r.brc /a --format csv
echo '# and nobody waits for the repository meanwhile'
cat >bin/writes <<'END'
#!/bin/sh
cat
breccia write r.brc /a '[0]' --value 2 --wait 0
END
chmod +x bin/writes
with=BRECCIA_PAGER=writes on ls r.brc
