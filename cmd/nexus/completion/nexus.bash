# bash completion of nexus: source <(nexus completion bash)
_nexus() {
    local reply
    COMPREPLY=()
    reply=$(@BIN@ completion bash --line "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    case $reply in
    '') ;;
    :folders) compopt -o dirnames ;;
    :files) compopt -o default ;;
    *) mapfile -t COMPREPLY <<<"$reply" ;;
    esac
}
complete -F _nexus nexus
