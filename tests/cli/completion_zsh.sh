# Completion in a real zsh, behind a pseudo-terminal.
. "$CLI_TESTS/common.inc"

command -v zsh >/dev/null || skip 'there is no zsh'
completable
breccia completion zsh >words.zsh
cat >pty.zsh <<'Z'
zmodload zsh/zpty
: >lines
n=0
zpty shell "TERM=dumb zsh -f -i"
zpty -w shell 'PS1=; autoload -U compinit; compinit -u -d ./dump; source words.zsh'
zpty -w shell 'show() { print -r -- "<$BUFFER>" >>lines; BUFFER= }; zle -N show; bindkey "^X" show; echo rea""dy'
zpty -r shell text '*ready*'
for line in "breccia swi" "breccia read r.brc /la" "breccia read r.brc /im" "breccia switch r.brc si"; do
    zpty -w -n shell "$line"$'\t'$'\x18'
    for ((i = 0; i < 100; i++)); do [ "$(wc -l <lines 2>/dev/null || echo 0)" -gt $n ] && break; sleep 0.1; done
    n=$((n + 1))
done
zpty -d shell
cat lines
Z
timeout 60 zsh -f pty.zsh
