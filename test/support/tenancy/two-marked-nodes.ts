import { type Portcullis, startPortcullis } from '../harness.ts';
import { rows } from '../oauth/clients.ts';
import { markedNode, type Things } from './marked-node.ts';
import type { Call } from './surface-row.ts';

/** An embedded instance with two nodes, each of which has one of everything. */
export interface TwoMarkedNodes extends AsyncDisposable {
  p: Portcullis;
  mine: Things;
  theirs: Things;
  /** Calls with a node's token, always under one correlation id. */
  as(node: Things): Call;
  /** A digest of every row of a node, by table. */
  contentOf(nodeId: string): Promise<unknown>;
}

/** Starts it; disposing stops it. */
export async function twoMarkedNodes(): Promise<TwoMarkedNodes> {
  // A query of everything counts every list.
  const p = await startPortcullis({ env: { GRAPHQL_MAX_COST: '10000' } });
  const { demo } = p;
  const { node_id: nodeId, client } = demo.other_node;
  const theirs = await markedNode(p, { nodeId: demo.node_id, client: demo.client, networkId: demo.second_network_id });
  const mine = await markedNode(p, { nodeId, client, networkId: demo.network_id });
  return {
    ...{ p, mine, theirs },
    as: (node) => callerOf(p, node),
    contentOf: (id) => contentOf(p, id),
    [Symbol.asyncDispose]: () => p[Symbol.asyncDispose](),
  };
}

/** Calls with a node's token, always under one correlation id. */
function callerOf(p: Portcullis, { token }: Things): Call {
  return (method, path, { headers = {}, ...options } = {}) => {
    const { authorization = `Bearer ${token}`, ...rest } = headers as Record<string, string>;
    return p.call(method, path, { ...options, headers: { 'x-correlation-id': 'surface', authorization, ...rest } });
  };
}

/** A digest of every row of a node, by table; without what is written later by itself. */
async function contentOf(p: Portcullis, nodeId: string): Promise<unknown> {
  const door = rows(p);
  const tables = await door.raw(
    (sql) => sql<{ name: string }>`select table_name as name from information_schema.columns
      where table_schema = current_schema() and column_name = 'node_id' and table_name not like 'audit_records%' order by 1`,
  );
  const digests: [string, unknown][] = [];
  for (const { name } of tables) {
    const content = await door.raw(
      (sql) => sql<{ digest: string; count: string }>`select count(*), md5(string_agg(row, '|' order by row)) as digest
        from (select (to_jsonb(t) - 'last_used_at')::text as row from ${sql.table(name)} t where node_id = ${nodeId}) as rows`,
    );
    digests.push([name, content[0]]);
  }
  return Object.fromEntries(digests);
}
