# F15: control characters in data and names do not reach a terminal; for programs csv
# and JSON give back the same text.
. "$CLI_TESTS/common.inc"

esc=$(printf '\033') c1=$(printf '\302\233') bidi=$(printf '\342\200\256') lrm=$(printf '\342\200\216')
bad="a${esc}[2Jb$(printf '\177')c${c1}d${bidi}e${lrm}f"
json="\"a\\u001b[2Jb\\u007fc${c1}d${bidi}e${lrm}f\""
q init r.brc
q create r.brc /s --shape 3 --dtype string --chunks 3
fill() { breccia write r.brc "$@" --quiet || echo "status $?"; }
fill /s '[0]' --value "$bad"
fill /s '[1]' --value '"nul \u0000 here"'
fill /s '[2]' --value "line
two, \"quoted\""
printf 'x\ry' >cr
q create r.brc /cr --shape 1 --dtype string
fill /cr --value "$(cat cr)"
q attrs r.brc /s k="$json"
commit r.brc "message $bad" 10

steering() { LC_ALL=C grep -c "$(printf '[\001-\010\013\014\016-\037\177]')\|$c1\|$bidi\|$lrm"; }
echo '# text and JSON: never'
for call in 'read r.brc /s' 'read r.brc /s --format json' 'attrs r.brc /s' 'info r.brc /s' \
    'info r.brc /s --json' 'log r.brc' 'log r.brc --json' 'log r.brc --oneline' 'show r.brc HEAD' \
    'ls r.brc' 'attrs r.brc /s k'; do
    breccia $call >said 2>&1
    [ "$(steering <said)" -eq 0 ] || echo "$call: $(cat -v said)"
done
breccia read r.brc "/$bad" 2>&1 | steering
breccia log r.brc "$bad" 2>&1 | steering
breccia "$bad" 2>&1 | steering
breccia ls "$bad" 2>&1 | steering
breccia ls r.brc "--$bad" 2>&1 | steering
t read r.brc /s
t read r.brc '/s' '[1]'
t read r.brc /s --format json
t attrs r.brc /s k

echo '# JSON says the same text'
q init s.brc
q create s.brc /s --shape 1 --dtype string
breccia attrs s.brc / k="$(breccia attrs r.brc /s k)" --quiet
breccia write s.brc /s --value "$(breccia attrs s.brc / k)" --quiet
breccia read s.brc /s --format csv | sed 's/^/  /' | cut -c 3- >two
printf '%s\n' "$bad" | cmp - two && echo 'the same'
breccia attrs r.brc /s k >one
breccia attrs s.brc / k | cmp - one && echo 'the same'

echo '# csv for programs: the bytes, quoted where they must be'
breccia read r.brc /s '[0:1]' --format csv >out.csv
printf '%s\n' "$bad" | cmp - out.csv && echo 'the same'
breccia read r.brc /cr --format csv | cat -v
breccia read r.brc /s '[2:]' --format csv

echo '# on a terminal'
terminal() { on_terminal 0 0 "$*" | tr -d '\r'; }
terminal breccia read r.brc /s --format csv --color never | cat -v
terminal breccia read r.brc /s --color never | cat -v
terminal breccia attrs r.brc /s --color never | cat -v
terminal breccia read r.brc /s --format raw --color never | cat -v
terminal breccia read r.brc /s --format npy --color never | cat -v

echo '# --json: an error is a document too'
t log none.brc --json
t comit none.brc --json
t log --nosuch --json
t read --json
