# The example of docs/STREAM.md: a command in Python that writes a stream.
. "$CLI_TESTS/common.inc"
command -v python3 >/dev/null || skip 'there is no python3'

sed -n '/^```python$/,/^```$/{/^```/d;p}' "$CLI_TESTS/../../docs/STREAM.md" >lines2zarr.py
printf 'a: 1 2.5 -3\nb: 7\n' >numbers.txt
printf 'a: 1 2.5 -3\nb 7\n' >bad.txt
q init c.brc
t import c.brc numbers.txt /numbers --with 'python3 lines2zarr.py "$1"' --quiet
t read c.brc /numbers/a
breccia import c.brc bad.txt /bad --with 'python3 lines2zarr.py "$1"' --quiet 2>said
show_status $?
grep -o 'bad.txt, line 2: NAME: NUMBER... is expected' said
t ls c.brc
