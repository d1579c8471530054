import { ClientPages, type ClientRow } from '../../clients/client-pages.service.ts';
import type { Db } from '../../db.ts';
import type { PageKey } from '../../lib/keyset.ts';
import { openReading } from '../administration.ts';
import { clientView } from '../client-view.ts';
import { type Command, CommandError, EXIT_OK } from '../command.ts';
import { text, uuid } from '../flags.ts';
import { printable } from '../printable.ts';

const PAGE_SIZE = 500;

/** `portcullis client list`: the clients of a node, or of all. */
export const clientList: Command = {
  name: 'client list',
  summary: 'list the clients of a node, or of every node',
  description: [
    'Lists clients, active or not: of each node the oldest first. No secret is shown: none is kept.',
    'The columns are the client, its node, its status, its grants and its name.',
  ].join('\n'),
  positionals: [],
  flags: { node: { type: 'string' } },
  flagHelp: { node: 'the clients of this node alone' },
  examples: ['portcullis client list', 'portcullis client list --node ID --json'],
  async run({ flags, env, json, print }) {
    const given = text(flags, 'node');
    const nodeId = given === undefined ? undefined : uuid('--node', given);
    await using stack = new AsyncDisposableStack();
    const db = await openReading(env, 'query clients', stack);
    const nodes = await nodesOf(db, nodeId);
    if (nodeId !== undefined && nodes.length === 0) throw new CommandError(`there is no node ${nodeId}`);
    let count = 0;
    if (json) print('{"clients":[');
    for await (const row of rowsOf(db, nodes)) {
      print(json ? `${count === 0 ? '' : ','}${JSON.stringify(clientView(row))}` : line(row));
      count += 1;
    }
    if (json) print(']}\n');
    else if (count === 0) print('No clients.\n');
    return EXIT_OK;
  },
};

async function nodesOf(db: Db, nodeId: string | undefined): Promise<string[]> {
  const rows = await db.unscoped('the operator lists every node').run((k) =>
    k
      .selectFrom('nodes')
      .select('id')
      .$if(nodeId !== undefined, (query) => query.where('id', '=', nodeId ?? ''))
      .orderBy('id'),
  );
  return rows.map(({ id }) => id);
}

/** Page by page: however many there are, few are held. */
async function* rowsOf(db: Db, nodes: readonly string[]): AsyncGenerator<ClientRow> {
  const pages = new ClientPages(db);
  for (const nodeId of nodes) {
    let after: PageKey | undefined;
    for (;;) {
      const { rows, hasMore } = await pages.page(nodeId, {
        size: PAGE_SIZE,
        backward: false,
        after,
        before: undefined,
      });
      yield* rows;
      const last = rows.at(-1);
      if (!hasMore || !last) break;
      after = { at: last.created_at, id: last.id };
    }
  }
}

function line({ id, node_id: nodeId, status, grant_types: grants, name }: ClientRow): string {
  return `${id}  ${nodeId}  ${status.padEnd('disabled'.length)}  ${grants.join(',')}  ${printable(name)}\n`;
}
