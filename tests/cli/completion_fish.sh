# Completion in a real fish.
. "$CLI_TESTS/common.inc"

command -v fish >/dev/null || skip 'there is no fish'
completable
breccia completion fish >words.fish
HOME=$PWD XDG_CONFIG_HOME=$PWD fish --no-config -c '
    source words.fish
    for line in "breccia swi" "breccia read r.brc /images/t" "breccia switch r.brc si"
        complete -C $line
    end'
