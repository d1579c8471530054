import { type Command, type CommandBody, UsageError } from '../kit/command.ts';
import { flagHelp } from '../kit/usage.ts';

/** Returns `portcullis completion`, which prints the script by which a shell completes every command. */
export function completionOf(loadCommands: () => Promise<readonly Command[]>): CommandBody {
  return {
    description: [
      'Prints a completion script for bash, or for zsh: commands, their flags, and files. It does not call a server,',
      'so ids and names are not completed. The folder of the script for zsh must be in fpath, before compinit runs.',
    ].join(' '),
    positionals: ['[SHELL]'],
    examples: [
      'portcullis completion > ~/.local/share/bash-completion/completions/portcullis',
      'portcullis completion zsh > ~/.zfunc/_portcullis',
    ],
    async run({ positionals: [shell = 'bash'], answer }) {
      const script = SCRIPTS[shell];
      if (!script) throw new UsageError(`SHELL must be ${Object.keys(SCRIPTS).join(' or ')}`);
      const text = script(casesOf(await loadCommands()));
      return answer({ script: text }, text);
    },
  };
}

/** Returns the script of each shell, which sets `offered` by the cases; where they set nothing, it offers files. */
const SCRIPTS: Readonly<Record<string, ((cases: string) => string) | undefined>> = {
  bash: (cases) => `# completion of portcullis for bash: portcullis completion
_portcullis() {
  local offered=
  case "\${COMP_WORDS[*]:1:COMP_CWORD-1}" in
${cases}
  esac
  COMPREPLY=($(compgen -W "$offered" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _portcullis portcullis
`,
  zsh: (cases) => `#compdef portcullis
# completion of portcullis for zsh: portcullis completion zsh
_portcullis() {
  local offered=
  case "\${(j: :)words[2,CURRENT-1]}" in
${cases}
  esac
  compadd -- \${=offered} || _files
}
if [[ "\${funcstack[1]}" == _portcullis ]]; then _portcullis "$@"; else compdef _portcullis portcullis; fi
`,
};

/** Returns the words that a shell offers after each beginning of a line, as the cases of a `case`. */
function casesOf(commands: readonly Command[]): string {
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
  return offers.map(({ after, words }) => `    ${after}) offered='${words.join(' ')}' ;;`).join('\n');
}
