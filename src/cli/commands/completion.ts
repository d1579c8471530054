import { bashCompletion, fishCompletion, zshCompletion } from '../completion/shells.ts';
import { type Command, UsageError } from '../kit/command.ts';

const SHELLS: Readonly<Record<string, (commands: readonly Command[]) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};
const NAMES = Object.keys(SHELLS);

/**
 * Returns `portcullis completion`, the command that prints the script by which a shell completes the `others` and
 * itself.
 */
export function completionOf(others: () => Promise<readonly Command[]>): Command {
  const completion: Command = {
    name: 'completion',
    summary: 'print the script that makes a shell complete commands and flags',
    description: [
      'Prints a completion script for bash, zsh or fish: commands, flags, files, and the values of flags that have',
      'known ones. It completes nothing that the program would have to be asked for: no server is called.',
    ].join('\n'),
    positionals: ['SHELL'],
    choices: NAMES,
    examples: [
      'portcullis completion bash > ~/.local/share/bash-completion/completions/portcullis',
      'portcullis completion zsh > ~/.zfunc/_portcullis',
      'portcullis completion fish > ~/.config/fish/completions/portcullis.fish',
    ],
    async run({ positionals: [shell = ''], answer }) {
      const written = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
      if (written === undefined) throw new UsageError(`SHELL must be one of ${NAMES.join(', ')}`);
      const script = written([...(await others()), completion]);
      return answer({ shell, script }, script);
    },
  };
  return completion;
}
