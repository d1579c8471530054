/** What reference data is of, parents before children. */
export const REFERENCE_KINDS = ['nodes', 'chains', 'networks', 'currencies', 'accounts', 'wallets', 'assets'] as const;

export type ReferenceKind = (typeof REFERENCE_KINDS)[number];

/** A reference from a row to another: the column, and what it names. */
export interface ParentColumn {
  column: string;
  kind: ReferenceKind;
}

interface KindTable {
  table: string;
  /** Beside `id` and `version`. An update writes all of them but `node_id`. */
  columns: Readonly<Record<string, 'uuid' | 'text' | 'integer' | 'timestamptz'>>;
  parents: readonly ParentColumn[];
}

const KIND_OF_TOPIC = new Map<string, ReferenceKind>(REFERENCE_KINDS.map((kind) => [`reference.${kind}`, kind]));

const times = { created_at: 'timestamptz', updated_at: 'timestamptz' } as const;
const node: ParentColumn = { column: 'node_id', kind: 'nodes' };

/** Where the rows of each kind are kept. */
export const TABLES: Readonly<Record<ReferenceKind, KindTable>> = {
  nodes: { table: 'nodes', columns: { name: 'text' }, parents: [] },
  chains: { table: 'chains', columns: { name: 'text' }, parents: [] },
  networks: {
    table: 'networks',
    columns: { chain_id: 'uuid', name: 'text' },
    parents: [{ column: 'chain_id', kind: 'chains' }],
  },
  currencies: {
    table: 'network_currencies',
    columns: { network_id: 'uuid', symbol: 'text' },
    parents: [{ column: 'network_id', kind: 'networks' }],
  },
  accounts: {
    table: 'accounts',
    columns: { node_id: 'uuid', name: 'text', type: 'text', status: 'integer', ...times, deleted_at: 'timestamptz' },
    parents: [node],
  },
  wallets: {
    table: 'wallets',
    columns: { node_id: 'uuid', account_id: 'uuid', chain_id: 'uuid', ...times },
    parents: [node, { column: 'chain_id', kind: 'chains' }, { column: 'account_id', kind: 'accounts' }],
  },
  assets: {
    table: 'assets',
    columns: {
      node_id: 'uuid',
      name: 'text',
      symbol: 'text',
      type: 'text',
      network_id: 'uuid',
      contract_address: 'text',
      status: 'text',
      ...times,
    },
    parents: [node, { column: 'network_id', kind: 'networks' }],
  },
};

/** Whether the rows of a kind belong to a node: they never move to another. */
export function isOfNode(kind: ReferenceKind): boolean {
  return 'node_id' in TABLES[kind].columns;
}

/** Whether rows of other kinds refer to those of this one. */
export function isParent(kind: ReferenceKind): boolean {
  return Object.values(TABLES).some(({ parents }) => parents.some((parent) => parent.kind === kind));
}

/** The kind that a topic carries; undefined for every other topic. */
export function kindOfTopic(topic: string): ReferenceKind | undefined {
  return KIND_OF_TOPIC.get(topic);
}

/** A row's columns beside its id and version, as they are written; times are ISO 8601 in UTC, to the microsecond. */
export type ReferenceRow = Readonly<Record<string, string | number | null>>;

/** Where a change stands in its topic's log. */
export interface LogPosition {
  offset: bigint;
  timeMs: bigint;
}

/** A row at a version, or, without one, a tombstone. Those of one key come in the order in which they were written. */
export interface ReferenceChange {
  kind: ReferenceKind;
  id: string;
  version: bigint | undefined;
  row: ReferenceRow | undefined;
  /** Known for what came by a topic: a repeated tombstone is told from a new one. */
  place?: LogPosition | undefined;
  /** Given once more out of its order: what came after it in the log may have been applied. */
  isLate?: boolean;
}

/** What no repeat makes applicable. */
export class UnfitReferenceError extends Error {
  override name = 'UnfitReferenceError';
}
