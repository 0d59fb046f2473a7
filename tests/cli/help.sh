# The pages, and what is said of wrong commands.
. "$CLI_TESTS/common.inc"

breccia --version | sed 's/[0-9][0-9]*/N/g'
t help
t help diff
breccia help diff >page
breccia diff --help | cmp - page && echo 'diff --help is the same'
breccia diff -h r.brc | cmp - page && echo 'diff -h too'
t help help
echo '# every command has a page'
for command in $(breccia help | awk '/^  [a-z-]+ / && !/breccia/ { print $1 }'); do
    breccia help "$command" | head -n 1
done
echo '# usage'
t
t comit x.brc
t merge x.brc main
t xyzzy
t help xyzzy
t --jsn ls x.brc
