# fish completion of nexus: nexus completion fish | source
function __nexus_complete
    set -l line (commandline -cp)
    set -l reply (@BIN@ completion fish --line "$line" 2>/dev/null)
    switch "$reply[1]"
        case ''
        case :folders
            __fish_complete_directories (commandline -ct)
        case :files
            __fish_complete_path (commandline -ct)
        case '*'
            printf '%s\n' $reply
    end
end
complete -c nexus -f -a '(__nexus_complete)'
