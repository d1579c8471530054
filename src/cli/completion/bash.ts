import type { Command } from '../command.ts';
import { firstWords, flagsOf, positionalOf, quoted, secondWords } from './words.ts';

const FOR_ALL = '--help --version';

/** The script for bash, 3.2 and later, made of the table of commands. */
export function bashCompletion(commands: readonly Command[]): string {
  const names = firstWords(commands).map(({ word }) => word);
  const groups = [...secondWords(commands)].map(
    ([first, words]) => `    ${first}) _portcullis_words ${quoted(words.map(({ word }) => word).join(' '))} ;;`,
  );
  return `# bash completion of portcullis: portcullis completion bash
_portcullis_words() {
  local IFS=$' \\t\\n' before= head=
  # Of a list only what comes after the last comma is completed.
  [[ $current == *,* ]] && before=\${current%,*},
  COMPREPLY=($(compgen -P "$before" -W "$1" -- "\${current##*,}"))
  # Of a word with colons bash replaces only what comes after the last one.
  if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
    head=\${current%"\${current##*:}"}
    COMPREPLY=("\${COMPREPLY[@]#"$head"}")
  fi
}

_portcullis_files() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -f -- "$current"))
  compopt -o filenames 2>/dev/null
}

_portcullis_second() {
  case $1 in
${groups.join('\n')}
  esac
}

_portcullis() {
  # COMP_WORDS would be split at = and : too.
  local line=\${COMP_LINE:0:COMP_POINT} current= previous= command= at=3
  local -a words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  local index=$((\${#words[@]} - 1))
  current=\${words[index]} previous=\${words[index - 1]}
  COMPREPLY=()
  if [[ $current == --*=* ]]; then
    previous=\${current%%=*} current=\${current#*=}
  fi
  if ((index == 1)); then
    _portcullis_words ${quoted([...names, FOR_ALL].join(' '))}
    return
  fi
  case "\${words[1]} \${words[2]}" in
${commands.map(commandCase).join('\n')}
  esac
  if [[ -z $command ]]; then
    ((index == 2)) && _portcullis_second "\${words[1]}"
    return
  fi
  ((index < at)) && { _portcullis_second "\${words[1]}"; return; }
  case "$command $previous" in
${commands.flatMap(valueCases).join('\n')}
  esac
  if [[ $current == -* ]]; then
    _portcullis_flags
    return
  fi
  case $command in
${commands.flatMap(positionalCase).join('\n')}
    *) _portcullis_flags ;;
  esac
}

_portcullis_flags() {
  case $command in
${commands.map((command) => `    ${quoted(command.name)}) _portcullis_words ${quoted(flagWords(command))} ;;`).join('\n')}
  esac
}

complete -F _portcullis portcullis
`;
}

function commandCase({ name }: Command): string {
  const hasTwo = name.includes(' ');
  return `    ${hasTwo ? quoted(name) : `${quoted(`${name} `)}*`}) command=${quoted(name)}${hasTwo ? '' : ' at=2'} ;;`;
}

/** After a flag that wants a value comes one that is known, or nothing. */
function valueCases(command: Command): string[] {
  return flagsOf(command)
    .filter(({ takesValue }) => takesValue)
    .map(({ word, choices }) => {
      const given = choices.length > 0 ? `_portcullis_words ${quoted(choices.join(' '))}; ` : '';
      return `    ${quoted(`${command.name} --${word}`)}) ${given}return ;;`;
    });
}

function positionalCase(command: Command): string[] {
  const positional = positionalOf(command);
  if (positional === 'file') return [`    ${quoted(command.name)}) _portcullis_files ;;`];
  if (positional.length === 0) return [];
  return [`    ${quoted(command.name)}) _portcullis_words ${quoted(positional.join(' '))} ;;`];
}

function flagWords(command: Command): string {
  return flagsOf(command)
    .map(({ word }) => `--${word}`)
    .join(' ');
}
