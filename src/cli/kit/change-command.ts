import type { CommandBody, CommandInput } from './command.ts';
import { uuid } from './flags.ts';
import { changed, type openAdministration } from './open-services.ts';

/** Makes the command of a change. */
export function changeCommand<Given, Row extends object>(
  change: Pick<CommandBody, 'description' | 'flags' | 'examples'> & {
    noun: 'client' | 'supervisor' | 'user';
    /** What the id is called in the usage. */
    positional?: string;
    /** Reads the flags. @throws UsageError for invalid ones. */
    readFlags(input: CommandInput): Given;
    change(
      services: Awaited<ReturnType<typeof openAdministration>>,
      nodeId: string,
      id: string,
      values: Given,
    ): Promise<Row>;
    /** Returns what the row is now, behind its name. */
    now(row: Row): string;
  },
): CommandBody {
  const { noun, positional = 'ID', readFlags, now, ...body } = change;
  return {
    ...body,
    positionals: [positional],
    async run(input) {
      const id = uuid(positional, input.positionals[0]);
      const read = readFlags(input);
      const row = await changed(input, noun, id, (services, nodeId) => change.change(services, nodeId, id, read));
      return input.answer(row, `${noun.charAt(0).toUpperCase()}${noun.slice(1)} ${id} is ${now(row)}.\n`);
    },
  };
}
