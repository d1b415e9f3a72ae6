#compdef nexus
# zsh completion of nexus: source <(nexus completion zsh)
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
_nexus() {
    local reply
    reply=$(@BIN@ completion zsh --line "${(j: :)words[1,CURRENT-1]} $PREFIX" 2>/dev/null)
    [[ $PREFIX == --*=* ]] && compset -P '*='
    case $reply in
    '') ;;
    :folders) _files -/ ;;
    :files) _files ;;
    *) compadd -- ${(f)reply} ;;
    esac
}
compdef _nexus nexus
