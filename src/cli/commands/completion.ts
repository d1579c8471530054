import type { Command, CommandBody } from '../kit/command.ts';
import { flagHelp } from '../kit/usage.ts';

/** Returns `portcullis completion`, which prints the script by which bash completes every command. */
export function completionOf(loadCommands: () => Promise<readonly Command[]>): CommandBody {
  return {
    description: [
      'Prints a completion script for bash: commands, their flags, and files. It does not call a server,',
      'so ids and names are not completed.',
    ].join('\n'),
    examples: ['portcullis completion > ~/.local/share/bash-completion/completions/portcullis'],
    async run({ answer }) {
      const script = scriptOf(await loadCommands());
      return answer({ script }, script);
    },
  };
}

/** Returns the script: the words that bash offers after each beginning of a line, and files where it offers none. */
function scriptOf(commands: readonly Command[]): string {
  const groups = Map.groupBy(commands, ({ name }) => name.split(' ')[0] ?? name);
  const offers = [
    ...commands.map((command) => {
      const flags = Object.keys(flagHelp(command)).map((flag) => `--${flag}`);
      return { after: `'${command.name}' | '${command.name} '*`, words: flags };
    }),
    ...Array.from(groups, ([first, group]) => ({
      after: `'${first}'`,
      words: group.flatMap(({ name }) => name.split(' ')[1] ?? []),
    })),
    { after: "''", words: [...groups.keys(), '--help', '--version'] },
  ];
  return `# completion of portcullis for bash: portcullis completion
_portcullis() {
  local offered=
  case "\${COMP_WORDS[*]:1:COMP_CWORD-1}" in
${offers.map(({ after, words }) => `    ${after}) offered='${words.join(' ')}' ;;`).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$offered" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _portcullis portcullis
`;
}
