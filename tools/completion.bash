# SPDX-License-Identifier: MIT

# Completion of sar-train, sar-partition, sar-plan, sar-generate and sar-elastic in bash: the options, and the words that an option may be, of which the
# program's --help-all tells; else names of files.
_sar_program() {
  local help words=
  help=$("${1/#\~/$HOME}" --help-all 2>/dev/null) || return
  if [[ $2 == -* ]]; then
    words=$(grep -oE -- '^ +(-[a-z],)?-(-[a-z0-9-]+|[a-z]\b)' <<<"$help" | sed -E 's/^ +(-[a-z],)?//')
  elif [[ $3 == --* ]]; then  # "--model NAME   type: sage, gcn [sage]"
    words=$(sed -nE "s/^ +$3 NAME +.*: ([^:[]*).*/\1/p" <<<"$help" | tr , '\n' | grep -vE '[^ ] +[^ ]')
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$2")
}
complete -o default -F _sar_program sar-train sar-partition sar-plan sar-generate sar-elastic
