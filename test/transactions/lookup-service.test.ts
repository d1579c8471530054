import { randomUUID } from 'node:crypto';
import { rename } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { afterEach, expect, it, vi } from 'vitest';
import { TOPICS } from '../../src/events/bus/topics.ts';
import { listening } from '../support/gateway/forwarder.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { scrape } from '../support/observability/scrape.ts';
import { writtenLog } from '../support/observability/written-log.ts';
import { notify } from '../support/realtime/live.ts';

const TOKEN = 'the-token-of-the-owner';

const open: AsyncDisposable[] = [];

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

function opened<Kept extends AsyncDisposable>(kept: Kept): Kept {
  open.push(kept);
  return kept;
}

async function ownerThat(answer: RequestListener): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((req, res) => {
    asked.push(`${req.url} ${req.headers.authorization}`);
    answer(req, res);
  });
  opened({ [Symbol.asyncDispose]: async () => void server.close().closeAllConnections() });
  return { url: await listening(server), asked };
}

/** An embedded instance, and everything that it has logged. */
async function instance(lookup: object | undefined, env: Record<string, string> = {}) {
  const more = lookup === undefined ? {} : { transactions_lookup: lookup };
  const file = opened(await gatewayFile({}, [], more));
  const { log, lines } = writtenLog();
  const started = startPortcullis({ env: { GATEWAY_CONFIG: file.path, ...env }, overrides: { log } });
  return { p: opened(await started), lines, path: file.path };
}

async function statusOf({ service }: Portcullis, id: string): Promise<number | null | undefined> {
  const door = service.context.database.db.unscoped('test');
  const [row] = await door.run((k) => k.selectFrom('transactions').select('status').where('id', '=', id));
  return row?.status;
}

const metricsOf = async ({ service }: Portcullis) => (await scrape(service)).text;

it('D6-20: a notification of an id that only the owner knows is applied, and the bearer token is not logged', async () => {
  const id = `o/${randomUUID()}`;
  let nodeId = '';
  const owner = await ownerThat((req, res) => {
    if (owner.asked.length === 1) return void res.writeHead(500).end(req.headers.authorization);
    res.end(JSON.stringify({ id, collection: 'token_transactions', type: 1, node_id: nodeId }));
  });
  const lookup = { url: owner.url, bearer_env: 'OWNER_TOKEN' };
  const { p, lines } = await instance(lookup, { OWNER_TOKEN: TOKEN });
  nodeId = p.demo.node_id;
  await notify(p, id, 3);
  await vi.waitFor(async () => expect(await statusOf(p, id)).toBe(3), { interval: 50 });
  expect(owner.asked).toEqual(Array(2).fill(`/${encodeURIComponent(id)} Bearer ${TOKEN}`));
  // The lookup is counted once it has ended, which the row that it writes does not wait for.
  const registered = 'portcullis_transaction_lookups_total{outcome="registered"} 1\n';
  await vi.waitFor(async () => expect(await metricsOf(p)).toContain(registered), { interval: 50 });
  const metrics = await metricsOf(p);
  expect(metrics).toContain('portcullis_transactions_unregistered 0\n');
  expect(metrics).toContain('portcullis_transaction_lookups_total{outcome="failed"} 1\n');
  const told = lines.filter((line) => line.includes('could not look up a transaction'));
  expect(told.join()).toMatch(/the response has status 500/);
  expect(lines.join()).not.toContain(TOKEN);
});

it('D6-20: without the setting no lookup is made: the notification stays parked and is counted in a metric', async () => {
  const { p } = await instance(undefined);
  const id = randomUUID();
  await notify(p, id, 3);
  await vi.waitFor(async () => expect(await metricsOf(p)).toContain('portcullis_transactions_unregistered 1\n'));
  const { db } = p.service.context.database;
  const rows = await db.unscoped('test').run((k) => k.selectFrom('transaction_lookups').select(['id', 'attempts']));
  expect(rows).toEqual([{ id, attempts: 0 }]);
  expect(await metricsOf(p)).not.toContain('lookups_total');
  await p.service.context.bus.publish(
    [
      {
        topic: TOPICS.registered,
        key: id,
        value: Buffer.from(JSON.stringify({ id, collection: 'token_transactions', type: 1, node_id: p.demo.node_id })),
        headers: {},
      },
    ],
    { deadlineMs: 4_000 },
  );
  await vi.waitFor(async () => expect(await statusOf(p, id)).toBe(3), { interval: 50 });
  await vi.waitFor(async () => expect(await metricsOf(p)).toContain('portcullis_transactions_unregistered 0\n'));
});

it.each([
  ['is missing', {}, 'OWNER_TOKEN is missing: transactions_lookup in gateway.yaml requires it'],
  ['is malformed', { OWNER_TOKEN: `${TOKEN}\n` }, 'OWNER_TOKEN must be a token of visible ASCII characters'],
])(
  'D6-20: a start whose variable for the bearer %s names the variable, and not its value',
  async (_name, env, fault) => {
    const started = instance({ url: 'http://127.0.0.1:1', bearer_env: 'OWNER_TOKEN' }, env);
    await expect(started).rejects.toMatchObject({ cause: { faults: [fault] } });
  },
);

it('D6-20: a reload that would change the lookup logs once that it needs a restart', async () => {
  const { p, lines, path } = await instance({ url: 'http://127.0.0.1:1' });
  const changed = opened(await gatewayFile({}, [], { transactions_lookup: { url: 'http://127.0.0.1:2' } }));
  await rename(changed.path, path);
  await p.service.reload();
  await p.service.reload();
  expect(lines.filter((line) => line.includes('restart to apply it'))).toHaveLength(1);
});
