import type { Command } from '../kit/command.ts';
import { flagHelp } from '../kit/usage.ts';

/** A word that may come next, and its meaning. */
interface CompletionWord {
  word: string;
  meaning: string;
}

/** Returns the possible first words: the commands of one word, and the first words of the others. */
function completionWords(commands: readonly Command[]): CompletionWord[] {
  const groups = Map.groupBy(commands, ({ name }) => name.split(' ')[0] ?? name);
  return [...groups].map(([word, [only, ...others]]) => ({
    word,
    meaning: only?.name === word ? only.summary : [only, ...others].map((one) => one?.name.split(' ')[1]).join(', '),
  }));
}

/** Returns the words that may follow a first word which is not a command itself, by that first word. */
function secondWords(commands: readonly Command[]): Map<string, CompletionWord[]> {
  const seconds = new Map<string, CompletionWord[]>();
  for (const { name, summary } of commands) {
    const [first = '', word] = name.split(' ');
    if (word !== undefined) seconds.set(first, [...(seconds.get(first) ?? []), { word, meaning: summary }]);
  }
  return seconds;
}

interface CompletedFlag extends CompletionWord {
  takesValue: boolean;
  /** The known values of the flag; empty if any value is possible. */
  choices: readonly string[];
  /** Whether the value may be a comma-separated list of the choices. */
  isList: boolean;
}

/** Returns the flags of a command, including the common ones. */
function flagsOf(command: Command): CompletedFlag[] {
  return Object.entries(flagHelp(command)).map(([word, meaning]) => {
    const { isSwitch = false, choices = [], isList = false } = command.flags?.[word] ?? { isSwitch: true };
    return { word, meaning, takesValue: !isSwitch, choices, isList };
  });
}

/** Returns the positional of a command and its values: files, known values, or an empty list if they are unknown. */
function positionalOf(command: Command): { name: string; values: 'file' | readonly string[] } {
  const name = command.positionals?.[0]?.replace(/^\[|\]$/g, '') ?? '';
  return { name, values: name === 'FILE' ? 'file' : (command.choices ?? []) };
}

/** Returns a text in single quotes, for bash and zsh. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * Returns pairs of a context in the line and the words that bash offers there. A context is empty, the first word of a
 * group of commands, a command with a flag that takes a value, a command and `:` for its positional, or a command and
 * `--` for its flags.
 */
function offersOf(commands: readonly Command[]): [key: string, offer: 'file' | readonly string[]][] {
  const wordsOf = (words: readonly CompletionWord[]) => words.map(({ word }) => word);
  return [
    ['', [...wordsOf(completionWords(commands)), '--help', '--version']],
    ...Array.from(secondWords(commands), ([first, words]): [string, string[]] => [first, wordsOf(words)]),
    ...commands.flatMap((command): [string, 'file' | readonly string[]][] => {
      const { values } = positionalOf(command);
      const valued = flagsOf(command).filter(({ takesValue }) => takesValue);
      return [
        ...valued.map(({ word, choices }): [string, readonly string[]] => [`${command.name} --${word}`, choices]),
        ...(values.length > 0 ? [[`${command.name} :`, values] as [string, typeof values]] : []),
        [`${command.name} --`, flagsOf(command).map(({ word }) => `--${word}`)],
      ];
    }),
  ];
}

/** Returns the completion script for bash 3.2 and later. */
export function bashCompletion(commands: readonly Command[]): string {
  const offers = offersOf(commands).map(([key, offer]) => {
    const call = offer === 'file' ? '_portcullis_files' : `_portcullis_words ${quoted(offer.join(' '))}`;
    return `    ${quoted(key)}) ${offer.length > 0 ? `${call} ` : ''};;`;
  });
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
  return 0
}

_portcullis_files() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -f -- "$current"))
  compopt -o filenames 2>/dev/null
  return 0
}

_portcullis_offer() {
  case $1 in
${offers.join('\n')}
    *) return 1 ;;
  esac
}

_portcullis() {
  # COMP_WORDS would be split at = and : too.
  local line=\${COMP_LINE:0:COMP_POINT} current= previous= command=
  local -a words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  local index=$((\${#words[@]} - 1))
  current=\${words[index]} previous=\${words[index - 1]} command=\${words[1]}
  COMPREPLY=()
  if [[ $current == --*=* ]]; then
    previous=\${current%%=*} current=\${current#*=}
  fi
  ((index == 1)) && { _portcullis_offer ''; return; }
  ((index == 2)) && _portcullis_offer "$command" && return
  case $command in
    ${[...secondWords(commands).keys()].join('|')}) command="$command \${words[2]}" ;;
  esac
  _portcullis_offer "$command $previous" && return
  [[ $current != -* ]] && _portcullis_offer "$command :" && return
  _portcullis_offer "$command --"
}

complete -F _portcullis portcullis
`;
}

/** Returns the completion script for fish 3.0 and later. */
export function fishCompletion(commands: readonly Command[]): string {
  const seconds = [...secondWords(commands)].flatMap(([first, words]) =>
    words.map(
      ({ word, meaning }) =>
        `complete -c portcullis -n ${fishQuoted(`__portcullis_is ${first}`)} -a ${word} -d ${fishQuoted(meaning)}`,
    ),
  );
  return `# fish completion of portcullis: portcullis completion fish
# Whether just these words have been written.
function __portcullis_is
    set -l words (commandline -opc)
    set -e words[1]
    test "$words" = "$argv"
end

# Whether what has been written begins with these words.
function __portcullis_has
    set -l words (commandline -opc)
    set -e words[1]
    set -l wanted (count $argv)
    test (count $words) -ge $wanted; and test "$words[1..$wanted]" = "$argv"
end

# What comes next in a list between commas.
function __portcullis_list
    set -l before (string replace -r '[^,]*$' '' -- (commandline -ct | string replace -r '^--[^=]*=' ''))
    printf '%s\\n' $before$argv
end

complete -c portcullis -f
complete -c portcullis -n '__portcullis_is' -l help -d 'show the help'
complete -c portcullis -n '__portcullis_is' -l version -d 'show the version'
${completionWords(commands)
  .map(({ word, meaning }) => `complete -c portcullis -n '__portcullis_is' -a ${word} -d ${fishQuoted(meaning)}`)
  .join('\n')}
${seconds.join('\n')}
${commands.flatMap(commandLines).join('\n')}
`;
}

function commandLines(command: Command): string[] {
  const begin = `complete -c portcullis -n ${fishQuoted(`__portcullis_has ${command.name}`)}`;
  const { values } = positionalOf(command);
  const flags = flagsOf(command).map((flag) => `${begin} ${flagOptions(flag)}`);
  if (values === 'file') return [...flags, `${begin} -F`];
  return values.length === 0 ? flags : [...flags, `${begin} -a ${fishQuoted(values.join(' '))}`];
}

function flagOptions({ word, meaning, takesValue, choices, isList }: CompletedFlag): string {
  const known = choices.join(' ');
  const action = isList ? `(__portcullis_list ${known})` : known;
  const values = known === '' ? '' : ` -a ${fishQuoted(action)}`;
  return `-l ${word}${takesValue ? ' -x' : ''}${values} -d ${fishQuoted(meaning)}`;
}

/** Returns a text in single quotes for fish, where backslashes must be escaped too. */
function fishQuoted(text: string): string {
  return `'${text.replace(/[\\']/g, (character) => `\\${character}`)}'`;
}

/** Returns the completion script for zsh, to be saved as `_portcullis` in a folder of `fpath`. */
export function zshCompletion(commands: readonly Command[]): string {
  const groups = [...secondWords(commands)].map(
    ([first, words]) => `    ${first})\n${described(words, `${first} command`, 6)}\n      ;;`,
  );
  return `#compdef portcullis
# zsh completion of portcullis: portcullis completion zsh
_portcullis_second() {
  local -a known
  case $1 in
${groups.join('\n')}
  esac
}

_portcullis() {
  local curcontext=$curcontext state line
  local -a known
  if ((CURRENT == 2)); then
${described([...completionWords(commands), { word: '--help', meaning: 'show the help' }, { word: '--version', meaning: 'show the version' }], 'command', 4)}
    return
  fi
  case "$words[2] $words[3]" in
${commands.map(zshCase).join('\n')}
    *) ((CURRENT == 3)) && _portcullis_second $words[2] ;;
  esac
}

if [[ $funcstack[1] == _portcullis ]]; then
  _portcullis "$@"
else
  compdef _portcullis portcullis
fi
`;
}

function described(words: readonly CompletionWord[], what: string, indent: number): string {
  const lines = [
    `known=(${words.map(({ word, meaning }) => quoted(`${word}:${meaning}`)).join(' ')})`,
    `_describe ${quoted(what)} known`,
  ];
  return lines.map((line) => `${' '.repeat(indent)}${line}`).join('\n');
}

/**
 * Returns the branch of the script for a command. It removes the words of the command's name, so that `_arguments` sees
 * only what follows them.
 */
function zshCase(command: Command): string {
  const hasTwo = command.name.includes(' ');
  const words = hasTwo ? 2 : 1;
  const pattern = hasTwo ? quoted(command.name) : `${quoted(`${command.name} `)}*`;
  const asked = hasTwo ? `      ((CURRENT == 3)) && { _portcullis_second $words[2]; return; }\n` : '';
  const specs = [...flagsOf(command).map(flagSpec), ...positionalSpec(command)].map(quoted).join(' ');
  return `    ${pattern})
${asked}      shift ${words} words
      ((CURRENT -= ${words}))
      _arguments -s ${specs}
      ;;`;
}

function flagSpec({ word, meaning, takesValue, choices, isList }: CompletedFlag): string {
  const text = meaning.replace(/[[\]:\\]/g, (character) => `\\${character}`);
  if (!takesValue) return `--${word}[${text}]`;
  const known = choices.map((one) => one.replaceAll(':', '\\:')).join(' ');
  const one = choices.length > 0 ? `(${known})` : ' ';
  const values = isList ? `_sequence compadd - ${known}` : one;
  return `--${word}=[${text}]:${word}:${values}`;
}

function positionalSpec(command: Command): string[] {
  const { name, values } = positionalOf(command);
  if (values === 'file') return [`1:${name}:_files`];
  return values.length === 0 ? [] : [`1:${name}:(${values.join(' ')})`];
}
