import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, it, vi } from 'vitest';
import { writeDemo } from '../../src/app/demo/demo.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { usePortcullis } from '../support/harness.ts';
import { emptyFolder } from '../support/start/folders.ts';

const SIMULATE = ['simulate', 'transaction'];

const p = usePortcullis();
let env: NodeJS.ProcessEnv;
let token: string;

beforeAll(async () => {
  // The instance of a database server writes no addresses.
  writeDemo(p.dataDir, p.demo, { baseUrl: p.url, webhook: p.service.context.secrets.webhook });
  env = { DATA_DIR: p.dataDir };
  token = await p.clientToken();
});

async function statusOf(id: string): Promise<string | null | undefined> {
  const query = 'query ($id: ID!) { transaction(id: $id) { status transactionHash error } }';
  const { json } = await p.call('POST', '/graphql', { token, json: { query, variables: { id } } });
  return json.data.transaction?.status;
}

it('D1-12: posts the statuses in order to the webhook, and prints each response', async () => {
  const simulated = await portcullis(SIMULATE, env);
  const id = p.demo.transactions.token_transactions;
  const steps = ['Started', 'InProgress', 'PendingReceipt', 'Done'].map((status) => `notify ${status}: 200\n`);
  expect(simulated).toEqual({ code: 0, out: `${id}\n${steps.join('')}`, err: '' });
  await vi.waitFor(async () => expect(await statusOf(id)).toBe('DONE'));
});

it('D1-12: registers a new transaction with --register', async () => {
  const args = ['--register', 'otc_transactions', '--path', '1,4', '--json'];
  const { code, out } = await portcullis([...SIMULATE, ...args], env);
  const { id, steps } = JSON.parse(out);
  expect([code, steps.map(({ step }: { step: string }) => step)]).toEqual([
    0,
    ['register in otc_transactions', 'notify Started', 'notify Error'],
  ]);
  await vi.waitFor(async () => expect(await statusOf(id)).toBe('ERROR'));
});

it('D1-12: stops at the first request that is rejected, and exits with 1', async () => {
  const taken = ['--register', 'otc_transactions', '--id', p.demo.transactions.token_transactions];
  const refused = await portcullis([...SIMULATE, ...taken], env);
  expect(refused).toMatchObject({ code: 1, out: expect.stringMatching(/DuplicateError.*\n$/) });
  expect(refused.out).not.toContain('notify');
  const long = await portcullis([...SIMULATE, '--id', 'x'.repeat(129), '--path', '1,3'], env);
  expect(long).toMatchObject({ code: 1, out: expect.stringMatching(/^x+\nnotify Started: 400 .*\n$/) });
  const hidden = await portcullis([...SIMULATE, '--id', '\u001b[2Jx'], env);
  expect(hidden.out).toMatch(/^\\u\{1b\}\[2Jx\n/);
});

it.each<[string, string[], object]>([
  ['a status that does not exist', ['--path', '1,6'], { code: 2, err: expect.stringContaining('--path has "6"') }],
  ['no status', ['--path', ''], { code: 2, err: expect.stringContaining('--path has no status') }],
  ['a collection that does not exist', ['--register', 'x'], { code: 2, err: expect.stringContaining('--register') }],
])('D1-12: rejects %s', async (_what, args, result) => {
  expect(await portcullis([...SIMULATE, ...args], env)).toMatchObject({ out: '', ...result });
});

it('D1-12: posts nothing in production', async () => {
  const production = { ...env, ...p.env, NODE_ENV: 'production' };
  const { code, out, err } = await portcullis([...SIMULATE, '--id', randomUUID()], production);
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err).toMatch(/production/);
});

it('D1-12: says so if no instance answers', async () => {
  await using folder = await emptyFolder();
  const { code, err } = await portcullis(SIMULATE, { DATA_DIR: folder.path });
  expect([code, err]).toEqual([1, expect.stringContaining('demo.json is missing')]);
  const gone = { ...p.demo, base_url: 'http://127.0.0.1:1', webhook: { username: 'u', password: 'p' } };
  await writeFile(join(folder.path, 'demo.json'), JSON.stringify(gone));
  const unanswered = await portcullis(SIMULATE, { DATA_DIR: folder.path });
  expect(unanswered).toMatchObject({ code: 1, out: '', err: expect.stringContaining('no instance answers') });
});
