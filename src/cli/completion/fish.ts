import type { Command } from '../command.ts';
import { type Flag, firstWords, flagsOf, positionalOf, secondWords } from './words.ts';

/** The script for fish, 3.0 and later, made of the table of commands. */
export function fishCompletion(commands: readonly Command[]): string {
  const seconds = [...secondWords(commands)].flatMap(([first, words]) =>
    words.map(
      ({ word, meaning }) =>
        `complete -c portcullis -n ${quoted(`__portcullis_is ${first}`)} -a ${word} -d ${quoted(meaning)}`,
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
${firstWords(commands)
  .map(({ word, meaning }) => `complete -c portcullis -n '__portcullis_is' -a ${word} -d ${quoted(meaning)}`)
  .join('\n')}
${seconds.join('\n')}
${commands.flatMap(commandLines).join('\n')}
`;
}

function commandLines(command: Command): string[] {
  const begin = `complete -c portcullis -n ${quoted(`__portcullis_has ${command.name}`)}`;
  const positional = positionalOf(command);
  const flags = flagsOf(command).map((flag) => `${begin} ${flagOptions(flag)}`);
  if (positional === 'file') return [...flags, `${begin} -F`];
  return positional.length === 0 ? flags : [...flags, `${begin} -a ${quoted(positional.join(' '))}`];
}

function flagOptions({ word, meaning, takesValue, choices, isList }: Flag): string {
  const known = choices.join(' ');
  const action = isList ? `(__portcullis_list ${known})` : known;
  const values = known === '' ? '' : ` -a ${quoted(action)}`;
  return `-l ${word}${takesValue ? ' -x' : ''}${values} -d ${quoted(meaning)}`;
}

/** A text between single quotes, in which fish reads a backslash too. */
function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, (character) => `\\${character}`)}'`;
}
