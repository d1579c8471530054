import type { buildAccessPages } from '../../app/access.ts';
import type { PageKey } from '../../lib/keyset.ts';
import type { Db } from '../../platform/database/database.ts';
import type { KeysetList } from '../../platform/database/keyset-list.ts';
import { type CommandBody, CommandError } from './command.ts';
import { text, uuid } from './flags.ts';
import { nodesOf, openReading } from './open-services.ts';
import { type PrintedRows, printRows } from './print-rows.ts';

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
