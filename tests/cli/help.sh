# The pages, and what is said of wrong commands.
. "$CLI_TESTS/common.inc"

breccia --version | sed 's/[0-9][0-9]*/N/g'
t help
breccia help >all
t help diff
breccia help diff >page
breccia diff --help | cmp - page && echo 'diff --help is the same'
breccia diff -h r.brc | cmp - page && echo 'diff -h too'
t help help
echo '# every command has a page'
for command in $(breccia help | awk '/^  [a-z-]+ / && !/breccia/ { print $1 }'); do
    breccia help "$command" | head -n 1
done
echo '# no line of a page is longer than 80 columns'
for command in '' $(breccia help | awk '/^  [a-z-]+ / && !/breccia/ { print $1 }'); do
    breccia help $command | awk -v page="$command" 'length > 80 { print page ": " $0 }'
done
echo '# without arguments: all commands'
breccia | cmp - all && echo 'as help says'
t -V
echo '# usage'
t comit x.brc
t merge x.brc main
t xyzzy
t help xyzzy
t --jsn ls x.brc
