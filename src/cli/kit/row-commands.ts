import type { buildAccessPages } from '../../app/access.ts';
import type { PageKey } from '../../lib/keyset.ts';
import type { Db } from '../../platform/database/database.ts';
import type { KeysetList } from '../../platform/database/keyset-list.ts';
import { type CommandBody, CommandError, type CommandInput, type PrintedRows, printRows } from './command.ts';
import { text, uuid } from './flags.ts';
import { changed, nodesOf, type openAdministration, openReading } from './open-services.ts';

const PAGE_SIZE = 500;

/** A command that lists the rows of one tenant or of all. */
interface List<Row> extends Omit<PrintedRows<Row>, 'rows'> {
  name: 'clients' | 'supervisors';
  description: string;
  pages(pages: ReturnType<typeof buildAccessPages>): Pick<KeysetList<Row, object>, 'page'>;
}

/** Makes the command of a list. */
export function listCommand<Row extends { id: string; created_at: string }>(of: List<Row>): CommandBody {
  const command = `portcullis ${of.name.slice(0, -1)} list`;
  return {
    description: of.description,
    flags: { node: { help: `limit to ${of.name} of this tenant` } },
    examples: [command, `${command} --node ID --json`],
    async run(input) {
      const node = text(input.flags, 'node');
      const nodeId = node === undefined ? undefined : uuid('--node', node);
      const db = await openReading(input);
      const nodes = await nodesOf(db, nodeId);
      if (nodeId !== undefined && nodes.length === 0) throw new CommandError(`there is no node ${nodeId}`);
      return printRows(input, { ...of, rows: rowsOf(db, nodes, of) });
    },
  };
}

/** Yields the rows of the tenants page by page, so that only one page is in memory. */
async function* rowsOf<Row extends { id: string; created_at: string }>(
  db: Db,
  nodes: readonly { id: string }[],
  { pages }: List<Row>,
): AsyncGenerator<Row> {
  const listed = pages((await import('../../app/access.ts')).buildAccessPages(db));
  for (const { id: nodeId } of nodes) {
    let after: PageKey | undefined;
    for (;;) {
      const request = { size: PAGE_SIZE, backward: false, after, before: undefined };
      const { rows, hasMore } = await listed.page(nodeId, {}, request);
      yield* rows;
      const last = rows.at(-1);
      if (!hasMore || !last) break;
      after = { at: last.created_at, id: last.id };
    }
  }
}

/** Makes the command that disables or enables a client or a supervisor. */
export function statusCommand<Row extends object>(
  command: Omit<Parameters<typeof changeCommand<undefined, Row>>[0], 'examples' | 'readFlags' | 'now'>,
  status: 'active' | 'disabled',
): CommandBody {
  const name = `portcullis ${command.noun} ${status === 'active' ? 'enable' : 'disable'} ${command.positional ?? 'ID'}`;
  return changeCommand<undefined, Row>({
    ...command,
    examples: [name, `${name} --json`],
    readFlags: () => undefined,
    now: () => status,
  });
}

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
