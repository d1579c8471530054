import { request } from 'undici';
import { withPostgres } from '../../test/support/services/pg-client.ts';
import { applying, publish } from '../consume/measure.ts';
import { SIGNING_SECRET, tokenOf } from '../gateway/contenders.ts';
import { backendCpu, spentBetween } from '../graphql/postgres-cpu.ts';
import { ID_IN_SQL, STEPS } from '../lib/notifications.ts';
import { runEach } from '../lib/pairs.ts';
import { threadsMs } from '../lib/process-stats.ts';
import { readDemoFile, type Server, startProduct } from '../lib/product.ts';
import { tell } from '../lib/report.ts';
import { deleteTopics, migrateWorld } from '../lib/topics.ts';
import { seedWorld, type World } from '../lib/world.ts';
import { costOfLoad, gatewayOn } from './cost.ts';
import { type Costs, type Curve, type Effort, measureSizes, wideRowOf } from './rounds.ts';

const CONNECTIONS = 8;
/** So many of each question at once, so that each connection has its statement prepared. */
const WARM_UP = 60;
const NAMES = ['CPU of the product, µs', 'of PostgreSQL, µs'];
const APPLIED = 'a notification, applied';
/** As many transactions are told of in all rounds, each of all its steps: those that are done take no more. */
const TOLD = 1_000;

/**
 * Those of a year, the last one now. One of a hundred failed, two of a thousand wait since their registration, and the
 * others are done. Foreign keys are not checked: that is most of the time of an insert.
 */
const FILL = [
  'set session_replication_role = replica',
  `insert into transaction_ids (id) select ${ID_IN_SQL} from generate_series(1, $1::integer) n`,
  `insert into transactions (id, node_id, collection, registered_type, registered_by, type, status, error,
      transaction_hash, contract_address, updated_text, updated_seconds, updated_nanos, done_seen, error_seen,
      registered_at)
    select ${ID_IN_SQL}, $2::uuid, case when n % 2 = 0 then 'node_transactions' else 'user_transactions' end, 1, 'topic',
      1 + n % 9, status, case when status = 4 then 'reason ' || n % 7 end,
      '0x' || md5(n::text) || md5('t' || n), '0x' || substr(md5('c' || n % 1000), 1, 40),
      to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), floor(extract(epoch from at)), 0, status = 3,
      status = 4, at
    from generate_series(1, $1::integer) n,
      lateral (select now() - ($1::integer - n) * (interval '365 days' / $1::integer) as at,
        case when n % 100 = 1 then 4 when n % 1000 = 2 then 2 when n % 1000 = 3 then 5 else 3 end as status) made`,
  'set session_replication_role = origin',
  'vacuum (analyze) transaction_ids',
];

/** Those of transactions that no constraint needs. */
const INDEXES = `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition from pg_index
  where indrelid = 'transactions'::regclass and not indisunique`;

interface Side {
  world: World;
  server: Server;
  token: string;
}

const PAGE =
  'pageInfo { hasNextPage hasPreviousPage } edges { cursor node { id type status transactionHash updatedAt } }';
const HOUR_MS = 3_600_000;
const ago = (hours: number) => new Date(Date.now() - hours * HOUR_MS).toISOString();
/** The overview's numbers, as the console asks for them. */
const COUNTS = {
  started: '{ status: STARTED }',
  inProgress: '{ status: IN_PROGRESS }',
  waiting: '{ status: PENDING_RECEIPT }',
  done: '{ status: DONE }',
  failed: `{ status: ERROR, updatedSince: "${ago(24)}" }`,
  conflict: '{ conflict: true }',
  flagged: '{ flagged: true }',
  stuck: `{ status: IN_PROGRESS, updatedUntil: "${ago(1)}" }`,
};

/** What is asked, by its name; `cursor` is of the middle of the list, `id` of a transaction there. */
const QUESTIONS: Record<string, (at: { cursor: string; id: string }) => string> = {
  'the newest 20': () => `transactions(last: 20) { ${PAGE} }`,
  '20 in the middle, by cursor': ({ cursor }) => `transactions(last: 20, before: "${cursor}") { ${PAGE} }`,
  '20 failed': () => `transactions(last: 20, filter: { status: ERROR }) { ${PAGE} }`,
  '20 stuck': () => `transactions(last: 20, filter: { status: IN_PROGRESS, updatedUntil: "${ago(1)}" }) { ${PAGE} }`,
  'one by id': ({ id }) => `transaction(id: "${id}") { id type status transactionHash updatedAt }`,
  'the counts of the overview': () =>
    Object.entries(COUNTS)
      .map(([name, filter]) => `${name}: transactions(first: 0, filter: ${filter}) { totalCount }`)
      .join(' '),
  'what needs attention': () => 'needsAttention { id kind reason count since ids }',
  'the last 24 hours by hour': () =>
    `transactionStats(since: "${ago(24)}", until: "${ago(0)}", bucket: HOUR) { at status count }`,
  'the exact total': () => 'transactions(first: 0) { totalCount }',
};

/** Reads and applied notifications among so many transactions of one tenant. */
export const measureTransactions: Curve = async (open, effort) => {
  await using stack = new AsyncDisposableStack();
  const worlds = new Map<number, World>();
  for (const count of effort.transactions) {
    const world = stack.use(await open());
    await seedWorld(world);
    await migrateWorld(world);
    stack.defer(() => deleteTopics(world));
    tell(`inserting ${count.toLocaleString('en')} transactions …`);
    await fill(world, count);
    worlds.set(count, world);
  }
  const measured = new Map<string, Measured>();
  const parts = [
    { title: 'reads', measure: () => measureReads(worlds, effort, measured) },
    { title: 'notifications', measure: async () => measureApplied(worlds, effort.rounds, measured) },
  ];
  const left = await runEach(parts, ({ measure }) => measure());
  if (left.length < parts.length) process.exitCode = 1;
  const sizes = effort.transactions.map((count) => count.toLocaleString('en'));
  return NAMES.map((name) => ({
    head: [`${name}, of so many transactions`, ...sizes, 'last ÷ first'],
    rows: Array.from(measured, ([title, costs]) => wideRowOf(title, costs, name)),
  }));
};

type Measured = ReadonlyMap<number, readonly Costs[]>;

async function fill({ dataDir, servers }: World, count: number): Promise<void> {
  const { node_id: nodeId } = readDemoFile(dataDir);
  await withPostgres(servers.DATABASE_URL ?? '', async (client) => {
    // Indexes are built faster than they are kept up.
    const { rows: indexes } = await client.query(INDEXES);
    for (const { name } of indexes) await client.query(`drop index ${name}`);
    for (const statement of FILL) {
      const values = [count, nodeId].slice(0, new Set(statement.match(/\$\d/g)).size);
      await client.query(statement, values);
    }
    for (const { definition } of indexes) await client.query(String(definition));
    await client.query('vacuum (analyze) transactions');
  });
}

async function measureReads(
  worlds: ReadonlyMap<number, World>,
  { rounds, requests }: Effort,
  results: Map<string, Measured>,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const sides = new Map<number, Side & { at: { cursor: string; id: string } }>();
  for (const [count, world] of worlds) {
    const server = stack.adopt(await startProduct(gatewayOn(world)), (started) => started.stop());
    const side = { world, server, token: await tokenOf(server, world) };
    sides.set(count, { ...side, at: await middleOf(side) });
  }
  for (const [title, documentOf] of Object.entries(QUESTIONS)) {
    const measured = await measureSizes(title, [...sides.keys()], rounds, async (count, round) => {
      const { world, server, token, at } = sides.get(count) as Side & { at: { cursor: string; id: string } };
      const load = {
        ...{ url: `${server.url}/graphql`, method: 'POST' as const, body: bodyOf(documentOf(at)) },
        headers: headersOf(token),
      };
      if (round === 0) {
        await Promise.all(Array.from({ length: WARM_UP }, () => answerOf(load)));
        return {};
      }
      const asked = { ...load, connections: CONNECTIONS, requests };
      const { productUs, postgresUs } = await costOfLoad(world, server, asked);
      return { [NAMES[0] ?? '']: productUs, [NAMES[1] ?? '']: postgresUs };
    });
    results.set(title, measured);
  }
}

function bodyOf(fields: string): string {
  return JSON.stringify({ query: `{ ${fields} }` });
}

function headersOf(token: string) {
  return { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
}

/** @throws unless the answer has data and no errors. */
async function answerOf({ url, ...options }: { url: string; method: 'POST'; body: string; headers: object }) {
  const { body } = await request(url, options as Parameters<typeof request>[1]);
  const text = await body.text();
  const { data, errors } = JSON.parse(text) as { data?: Record<string, unknown>; errors?: unknown };
  if (data === undefined || errors !== undefined) throw new Error(`answered ${text.slice(0, 500)}`);
  return data;
}

/** The last one of before half a year ago. */
async function middleOf({ server, token }: Side): Promise<{ cursor: string; id: string }> {
  const fields = `transactions(last: 1, filter: { updatedUntil: "${ago((365 / 2) * 24)}" }) { ${PAGE} }`;
  const data = await answerOf({
    ...{ url: `${server.url}/graphql`, method: 'POST', body: bodyOf(fields) },
    headers: headersOf(token),
  });
  const { edges } = data.transactions as { edges: { cursor: string; node: { id: string } }[] };
  const [edge] = edges;
  if (edge === undefined) throw new Error('there is no transaction of half a year ago');
  return { cursor: edge.cursor, id: edge.node.id };
}

async function measureApplied(
  worlds: ReadonlyMap<number, World>,
  rounds: number,
  results: Map<string, Measured>,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const servers = new Map<number, Server>();
  for (const [count, world] of worlds) {
    const env = { JWT_SECRET_USER: SIGNING_SECRET, PORTCULLIS_ROLE: 'worker', PGAPPNAME: 'portcullis' };
    servers.set(
      count,
      stack.adopt(await startProduct({ ...world, env }), (started) => started.stop()),
    );
  }
  const measured = await measureSizes(APPLIED, [...worlds.keys()], rounds, async (count, round) => {
    const [world, { pid }] = [worlds.get(count) as World, servers.get(count) as Server];
    const costs = await applyRound(world, { pid, count, round, told: Math.floor(TOLD / (rounds + 1)) });
    return Object.fromEntries(NAMES.map((name, index) => [name, costs[index]]));
  });
  results.set(APPLIED, measured);
}

interface ApplyRound {
  pid: number;
  count: number;
  round: number;
  told: number;
}

/** Microseconds of CPU a notification, of the worker and of its connections. */
function applyRound(world: World, { pid, count, round, told }: ApplyRound) {
  // Of two that follow each other one is of each topic.
  const stride = Math.max(1, Math.floor(count / TOLD) - 1) | 1;
  const notifications = told * STEPS;
  return withPostgres(world.servers.DATABASE_URL ?? '', async (client) => {
    const before = await applying(world, 0);
    const [postgres, productMs] = [await backendCpu(client, 'portcullis'), threadsMs(pid)];
    await publish(world, { notifications, stride, skipped: round * told });
    const { applied } = await applying(world, before.applied + notifications);
    if (applied !== before.applied + notifications) throw new Error(`${applied - before.applied} were applied`);
    const spent = spentBetween(postgres, await backendCpu(client, 'portcullis'));
    return [((threadsMs(pid) - productMs) * 1_000) / notifications, (spent * 1_000) / notifications];
  });
}
