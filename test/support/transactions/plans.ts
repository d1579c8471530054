import pg from 'pg';
import { vi } from 'vitest';
import type { PostgresClient } from '../services/pg-client.ts';

/** A statement as the product sends it; PostgreSQL plans one without a name for its values, each time. */
interface Statement {
  name?: string;
  text: string;
  values: unknown[];
}

/** Returns the statements about transactions that some work sends to PostgreSQL. */
async function statementsOf(work: () => Promise<unknown>): Promise<Statement[]> {
  const submit = vi.spyOn(pg.Query.prototype, 'submit');
  await work();
  // A new connection sends a statement of its own first.
  const sent = (submit.mock.contexts as unknown as Statement[]).filter(({ text }) => text.includes('"transactions"'));
  submit.mockRestore();
  if (sent.length === 0) throw new Error('no statement');
  return sent;
}

interface PlanNode {
  'Node Type': string;
  'Index Name'?: string;
  'Index Cond'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Heap Fetches'?: number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
  Plans?: PlanNode[];
}

interface Plan {
  scans: PlanNode[];
  /** The number of rows that its scans read, without those that the conditions of an index leave out. */
  read: number;
  /** The number of pages of 8 kB that it reads, from memory or from disk. */
  buffers: number;
}

const scansOf = (node: PlanNode): PlanNode[] => [
  ...(/(?<!Subquery )Scan$/.test(node['Node Type']) ? [node] : []),
  ...(node.Plans ?? []).flatMap(scansOf),
];

const readBy = (scan: PlanNode) =>
  scan['Actual Loops'] *
  (scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0) + (scan['Rows Removed by Index Recheck'] ?? 0));

const literal = (value: unknown) => `'${String(value).replaceAll("'", "''")}'`;

/** Runs a statement with each plan that the product can get: one for its values and, if it has a name, one for all values. */
async function explained(client: PostgresClient, { name, text, values }: Statement): Promise<Plan[]> {
  const plans: Plan[] = [];
  await client.query(`prepare explained as ${text}`);
  for (const mode of name ? ['custom', 'generic'] : ['custom']) {
    await client.query(`set plan_cache_mode = force_${mode}_plan`);
    const { rows } = await client.query(
      `explain (analyze, buffers, timing off, format json) execute explained (${values.map(literal).join(', ')})`,
    );
    const [top] = rows.flatMap((row) => (row['QUERY PLAN'] as { Plan: PlanNode }[]).map(({ Plan: node }) => node));
    if (!top) throw new Error('no plan');
    const scans = scansOf(top);
    const ofRows = scans.filter((scan) => scan['Node Type'] !== 'Bitmap Index Scan');
    const read = ofRows.reduce((sum, scan) => sum + readBy(scan), 0);
    plans.push({ scans, read, buffers: top['Shared Hit Blocks'] + top['Shared Read Blocks'] });
  }
  await client.query('deallocate explained');
  return plans;
}

/** Returns the plans of all statements about transactions that some work sends to PostgreSQL, after it has run them. */
export async function plansOf(client: PostgresClient, work: () => Promise<unknown>): Promise<Plan[]> {
  const plans: Plan[] = [];
  for (const statement of await statementsOf(work)) plans.push(...(await explained(client, statement)));
  return plans;
}
