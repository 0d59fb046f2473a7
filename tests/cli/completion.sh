# Completion in real shells, and manual pages, both made from the tables of options.
. "$CLI_TESTS/common.inc"

completable
q tag r.brc v1
w() {
    echo "> $*"
    breccia completion words -- "$@"
}

echo '# words'
w st
w read r.brc ''
w read r.brc /im
w read r.brc /images/
w read r.brc images/t
w read r.brc images
w read r.brc /labels --form
w read r.brc /labels --format ''
w read r.brc /labels --at ''
w read --at v1 r.brc /l
w read r.brc@v1 /l
w switch r.brc s
w -f r.brc ls /l
BRECCIA_FILE=r.brc w ls /l
w diff r.brc s
w diff r.brc side -- /l
w log r.brc v
w branch r.brc -d s
w mv r.brc /labels /im
w config r.brc v
w help conf
w completion ''
w bisect r.brc ''
w gc r.brc --dr
w -
echo '# of these nothing is known: shells complete files'
w import r.brc x
w init ''
w nothing ''
w read none.brc ''
echo x >text.brc
w read text.brc ''
w commit r.brc -m ''

echo '# usage'
t completion
t completion ksh
t completion bash zsh

echo '# bash'
breccia completion bash >words.bash
bash -c '
    . ./words.bash
    complete -p breccia
    words() { COMP_WORDS=(breccia "$@"); COMP_CWORD=$#; _breccia; printf "<%s>\n" "${COMPREPLY[@]}"; }
    words sw
    words read r.brc /images/t
    words read r.brc /im
    words switch r.brc ""
'
echo '# manual pages'
breccia help --man | grep -c '^\.SH'
for command in $(breccia completion words -- '' | cut -f 1); do
    breccia help --man "$command" >page.1
    for part in NAME SYNOPSIS; do
        grep -q "^.SH $part" page.1 || echo "$command has no $part"
    done
    if command -v groff >/dev/null; then
        groff -man -Tascii -P-cbou -ww page.1 2>&1 >page.txt | head -n 3
        breccia help "$command" | sed -n -e '/^breccia help /q' -e 's/^ *\(-[a-zA-Z], \)*\(--[a-z-]*\).*/\2/p' |
            while read -r option; do
                grep -q -- "$option" page.txt || echo "$command: the page lacks $option"
            done
    fi
done
breccia help --man gc | grep -e '^\.TH' -e 'gc . remove'
t help nothing --man
