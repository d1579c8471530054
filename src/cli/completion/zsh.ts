import type { Command } from '../command.ts';
import { type Flag, firstWords, flagsOf, positionalOf, quoted, secondWords, type Word } from './words.ts';

/** The script for zsh's completion system, made of the table of commands: a file `_portcullis` in a folder of `fpath`. */
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
${described([...firstWords(commands), { word: '--help', meaning: 'show the help' }, { word: '--version', meaning: 'show the version' }], 'command', 4)}
    return
  fi
  case "$words[2] $words[3]" in
${commands.map(commandCase).join('\n')}
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

function described(words: readonly Word[], what: string, indent: number): string {
  const lines = [
    `known=(${words.map(({ word, meaning }) => quoted(`${word}:${meaning}`)).join(' ')})`,
    `_describe ${quoted(what)} known`,
  ];
  return lines.map((line) => `${' '.repeat(indent)}${line}`).join('\n');
}

/** The words of the name are taken away, so that `_arguments` sees what comes after them. */
function commandCase(command: Command): string {
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

function flagSpec({ word, meaning, takesValue, choices, isList }: Flag): string {
  const text = meaning.replace(/[[\]:\\]/g, (character) => `\\${character}`);
  if (!takesValue) return `--${word}[${text}]`;
  const known = choices.map((one) => one.replaceAll(':', '\\:')).join(' ');
  const one = choices.length > 0 ? `(${known})` : ' ';
  const values = isList ? `_sequence compadd - ${known}` : one;
  return `--${word}=[${text}]:${word}:${values}`;
}

function positionalSpec(command: Command): string[] {
  const positional = positionalOf(command);
  const name = command.positionals[0]?.replace(/^\[|\]$/g, '');
  if (positional === 'file') return [`1:${name}:_files`];
  return positional.length === 0 ? [] : [`1:${name}:(${positional.join(' ')})`];
}
