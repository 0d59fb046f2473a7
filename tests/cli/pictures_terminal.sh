# Pictures on terminals of 60, 80 and 200 columns, with 24-bit colours, with 256, and without.
. "$CLI_TESTS/common.inc"


q init r.brc
q create r.brc /t --shape 300,700 --dtype float32 --chunks 100,100
q write r.brc /t --value 1
q write r.brc /t '[0:150, 350:]' --value 2
q create r.brc /line --shape 5000 --dtype float32
q write r.brc /line '[2500:]' --value 1
commit r.brc first 10
q write r.brc /t '[100:200, 100:200]' --value 3

# on COLUMNS ROWS ARGUMENT...: what the command writes to a terminal of this size.
on() {
    columns=$1 rows=$2
    shift 2
    on_terminal $columns $rows "${with:-} breccia $*" | tr -d '\r'
}

# Without colours and escapes, and with one byte for each character.
bare() { sed 's/\x1b\[[0-9;]*m//g; s/\xe2[\x80-\xbf][\x80-\xbf]/#/g; s/\xc3\x97/x/g'; }
shape() { bare | awk '{ n = length($0); if (n > most) most = n } END { print NR " lines, " most " columns" }'; }
colors() { grep -o "$1" | sort -u | wc -l; }

for columns in 60 80 200; do
    for term in 'TERM=xterm COLORTERM=truecolor' TERM=xterm TERM=dumb 'TERM=xterm NO_COLOR=1'; do
        echo "# $columns columns, $term"
        export $term
        on $columns 30 read r.brc /t --image >said
        shape <said
        echo "24-bit colours: $(colors '48;2;[0-9;]*' <said), of 256: $(colors '48;5;[0-9;]*' <said)"
        tail -n 2 said | bare
        on $columns 30 diff r.brc --image -- /t | shape
        on $columns 30 read r.brc /line --plot | shape
        unset COLORTERM NO_COLOR
    done
done
TERM=dumb
export TERM

echo '# COLUMNS and LINES come before the size of the terminal, and colours are a choice'
with='env COLUMNS=30 LINES=10' on 80 24 read r.brc /t --image
with='env COLUMNS=20 LINES=10 TERM=xterm' on 80 24 read r.brc /t --image --color never
with='env COLUMNS=20 LINES=10 TERM=xterm' on 80 24 read r.brc /t --image --draw text
with='env COLUMNS=10 LINES=10' on 80 24 read r.brc /t --image --color always | cat -v

# kind: which way of drawing it is, by the first bytes.
kind() { head -c 12 | cat -v | sed 's/^\^\[_G.*/kitty/; s/^\^\[P0;1.*/sixel/; s/^\^\[\[[34]8.*/blocks/; s/^[-.:=+*#%@].*/text/'; }
echo '# the way of drawing, by the environment'
for term in TERM=xterm-kitty TERM=xterm-ghostty 'TERM=xterm KITTY_WINDOW_ID=1' TERM=foot TERM=mlterm-256color \
    'TERM=xterm TERM_PROGRAM=WezTerm' 'TERM=xterm TERM_PROGRAM=iTerm.app' TERM=xterm-256color TERM=dumb \
    'TERM=tmux-256color KITTY_WINDOW_ID=1 TERM_PROGRAM=ghostty' 'TERM=screen TERM_PROGRAM=WezTerm'; do
    echo "$term: $(on_terminal 80 24 "$term breccia read r.brc /t --image" | kind)"
done
echo "TERM=xterm-kitty, colours off: $(TERM=xterm-kitty NO_COLOR=1 on 80 24 read r.brc /t --image | kind)"
echo "a pipe: $(TERM=xterm-kitty breccia read r.brc /t --image | kind)"
echo "a pipe, --color always: $(TERM=xterm-kitty breccia read r.brc /t --image --color always | kind)"
for how in kitty sixel blocks text; do
    echo "--draw $how: $(breccia read r.brc /t --image --draw $how | kind)"
done

echo '# a PNG does not go to a terminal'
on 80 24 read r.brc /t --format png
