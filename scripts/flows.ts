import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import type { Profiler } from 'node:inspector';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { z } from 'zod';

const START_TIMEOUT_MS = 60_000;
const WARM_UPS = 10;
const REPEATS = 9;
/** Repeats begin so far apart that what runs each 0.2, 0.5 or 1 s falls into few of them. */
const PACE_MS = 618;
/** Longer than the interval of every frequent background task. */
const IDLE_MS = 3_000;
/** What ends with the answer, such as the audit record's way into the spool, has ended by then. */
const ENDED_MS = 20;
/** By then the audit record is in the database. */
const AUDITED_MS = 400;
const REGISTER =
  'mutation ($id: ID!) { registerTransaction(input: { id: $id, collection: OTC_TRANSACTIONS, type: 1 }) { __typename } }';
const READ = 'query ($id: ID!) { walletRule(id: $id) { id name status } }';
const SUBSCRIBE = 'subscription { transactionUpdates { transaction { id status } } }';

const demoFile = z.object({
  base_url: z.string(),
  client: z.object({ client_id: z.string(), client_secret: z.string() }),
  webhook: z.object({ username: z.string(), password: z.string() }),
  wallet_id: z.string(),
  target_wallet_id: z.string(),
  network_id: z.string(),
  network_currency_id: z.string(),
});
type Demo = z.output<typeof demoFile>;

interface Inspector extends Disposable {
  /** Starts to count the calls of every function. */
  start(): Promise<void>;
  /** The functions that have been called since the last call of this, as `file name@offset`. */
  called(): Promise<Set<string>>;
}

/** Gives a call that makes the service warm, and the one that is measured. */
type Flow = () => readonly [warming: () => Promise<unknown>, measured: () => Promise<unknown>];

const { values } = parseArgs({
  options: {
    of: { type: 'string', default: resolve(import.meta.dirname, '..') },
    files: { type: 'boolean', default: false },
    'functions-total': { type: 'boolean', default: false },
  },
});
const root = realpathSync(values.of);
const dataDir = mkdtempSync(join(tmpdir(), 'portcullis-flows-'));
try {
  const measured = await measure();
  const everywhere = new Set([...measured.values()].flatMap((functions) => [...functions]));
  process.stdout.write(values['functions-total'] ? `${everywhere.size}\n` : report(measured));
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}

/** The functions that run for each flow, in a service that is started for it as `npm start` starts it. */
async function measure(): Promise<Map<string, Set<string>>> {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const [, start] = String(scripts.start).split(' exec node ');
  if (start === undefined) throw new Error(`the service is no longer started by node: ${scripts.start}`);
  const none = { NODE_ENV: '', DATABASE_URL: '', REDIS_URL: '', KAFKA_BROKERS: '' };
  const service = spawn(process.execPath, ['--inspect=127.0.0.1:0', ...start.split(' ')], {
    cwd: root,
    env: { ...process.env, ...none, DATA_DIR: dataDir, PORT: '0', ADMIN_PORT: '0' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(service, 'exit');
  try {
    const [listening] = await once(service.stderr.setEncoding('utf8'), 'data');
    const [address] = /ws:\S+/.exec(listening) ?? [];
    if (address === undefined) throw new Error(`the service did not start: ${listening}`);
    service.stderr.resume();
    using inspector = await inspect(address);
    const flows = await flowsOf(await startedDemo());
    await inspector.start();
    for (let i = 0; i < WARM_UPS; i += 1) for (const flow of flows.values()) for (const call of flow()) await call();
    await delay(IDLE_MS);
    await inspector.called();
    await delay(IDLE_MS);
    const idle = await inspector.called();
    const measured = new Map<string, Set<string>>();
    for (const [name, flow] of flows) measured.set(name, await functionsOf(flow, idle, inspector));
    return measured;
  } finally {
    service.kill('SIGTERM');
    await ended;
  }
}

async function startedDemo(): Promise<Demo> {
  for (const deadline = performance.now() + START_TIMEOUT_MS; performance.now() < deadline; await delay(50)) {
    try {
      const demo = demoFile.parse(JSON.parse(readFileSync(join(dataDir, 'demo.json'), 'utf8')));
      if ((await fetch(`${demo.base_url}/health`)).status === 200) return demo;
    } catch {
      // There is no demo yet, or no server is listening.
    }
  }
  throw new Error('the service did not start: `npm start` there says why');
}

/** The functions that run in all repeats but one: until the answer, and after it those that never run in idleness. */
async function functionsOf(flow: Flow, idle: ReadonlySet<string>, { called }: Inspector): Promise<Set<string>> {
  const times = new Map<string, number>();
  const begun = performance.now();
  for (let i = 0; i < REPEATS; i += 1) {
    await delay(Math.max(0, begun + i * PACE_MS - performance.now()));
    const [warming, measured] = flow();
    await warming();
    await called();
    await measured();
    await delay(ENDED_MS);
    const before = await called();
    await delay(AUDITED_MS);
    const after = (await called()).difference(idle);
    for (const each of before.union(after)) times.set(each, (times.get(each) ?? 0) + 1);
  }
  return new Set([...times].filter(([, count]) => count >= REPEATS - 1).map(([each]) => each));
}

/** The inspector of a Node process, by the Chrome DevTools protocol. */
async function inspect(address: string): Promise<Inspector> {
  const socket = new WebSocket(address);
  await once(socket, 'open');
  let last = 0;
  const call = async (method: string, params = {}): Promise<unknown> => {
    last += 1;
    socket.send(JSON.stringify({ id: last, method, params }));
    for (;;) {
      const [{ data }] = await once(socket, 'message');
      const { id, result, error } = JSON.parse(data);
      if (id === last && error) throw new Error(`${method}: ${error.message}`);
      if (id === last) return result;
    }
  };
  return {
    start: async () => {
      await call('Profiler.enable');
      await call('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    },
    called: async () => {
      const coverage = (await call('Profiler.takePreciseCoverage')) as Profiler.TakePreciseCoverageReturnType;
      return new Set(coverage.result.flatMap(calledIn));
    },
    [Symbol.dispose]: () => socket.close(),
  };
}

/** The functions of a file of `src` that were called; its top level is none. */
function calledIn({ url, functions }: Profiler.ScriptCoverage): string[] {
  const src = `${pathToFileURL(join(root, 'src')).href}/`;
  if (!url.startsWith(src)) return [];
  return functions.flatMap(({ functionName, ranges: [{ startOffset, count } = { startOffset: 0, count: 0 }] }) =>
    count === 0 || (functionName === '' && startOffset === 0)
      ? []
      : [`${url.slice(src.length)} ${functionName}@${startOffset}`],
  );
}

async function flowsOf(demo: Demo): Promise<Map<string, Flow>> {
  const { base_url, client, webhook, wallet_id, target_wallet_id, network_id, network_currency_id } = demo;
  const send = async (status: number, path: string, authorization: string, body: object, accept = '*/*') => {
    const isForm = body instanceof URLSearchParams;
    const headers = { authorization, accept, ...(isForm ? {} : { 'content-type': 'application/json' }) };
    const init = { method: 'POST', headers, body: isForm ? body : JSON.stringify(body) };
    const answer = await fetch(`${base_url}${path}`, init);
    if (answer.status !== status) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  const token = async () => {
    const form = new URLSearchParams({ grant_type: 'client_credentials' });
    const answer = await send(200, '/v2/oauth/token', basic(client.client_id, client.client_secret), form);
    return z.object({ access_token: z.string() }).parse(await answer.json()).access_token;
  };
  const bearer = `Bearer ${await token()}`;
  const graphql = async (query: string, variables: object) => {
    const answer = await send(200, '/graphql', bearer, { query, variables });
    return z.object({ data: z.record(z.string(), z.unknown()) }).parse(await answer.json()).data;
  };
  const rule_logic = { field: 'wallet.balance', op: 'less_than', value: 100, network_currency_id };
  const auto_transfer_rule = { type: 'auto_with_approve', amount: 250.5, target_wallet_id, rule_logic };
  const rule = { name: 'Top up', type: 'auto_transfer', network_id, network_currency_id, auto_transfer_rule };
  const createAndRead = async () => {
    const created = await send(201, `/v1/wallets/${wallet_id}/rules`, bearer, rule);
    const id = created.headers.get('location')?.split('/').at(-1);
    const { walletRule } = await graphql(READ, { id });
    if (!walletRule) throw new Error('the rule that was created is not there');
  };
  const ids = Array.from({ length: WARM_UPS + REPEATS }, (_, index) => `flow-${index}`);
  for (const id of ids) await graphql(REGISTER, { id });
  const told = await send(200, '/graphql', bearer, { query: SUBSCRIBE }, 'text/event-stream');
  const reader = told.body?.pipeThrough(new TextDecoderStream()).getReader();
  const notify = async (id: string, status: number, name: string) => {
    const created_at = new Date().toISOString();
    const body = { id, type: 1, status, created_at, updated_at: created_at };
    await send(200, '/v2/webhooks/custodial', basic(webhook.username, webhook.password), body);
    for (let text = ''; !text.includes(`{"id":"${id}","status":"${name}"}`); ) {
      const { value } = (await reader?.read()) ?? {};
      if (value === undefined) throw new Error('the subscription has ended');
      text += value;
    }
  };
  const notifyTwice = (id = ids.pop() ?? '') =>
    [() => notify(id, 1, 'STARTED'), () => notify(id, 2, 'IN_PROGRESS')] as const;
  return new Map<string, Flow>([
    ['a token by client credentials', () => [token, token]],
    ['a wallet rule, created by REST and read by GraphQL', () => [createAndRead, createAndRead]],
    ['a notification, until a subscriber has its event', () => notifyTwice()],
  ]);
}

function basic(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
}

function report(measured: ReadonlyMap<string, ReadonlySet<string>>): string {
  const lines = ['| one warm request | files of `src` | functions | layers |', '|---|---|---|---|'];
  const lists: string[] = [];
  for (const [name, functions] of measured) {
    const byFile = Map.groupBy([...functions].sort(), (each) => each.slice(0, each.indexOf(' ')));
    const entries = new Set(Array.from(byFile.keys(), (file) => file.split('/')[0]));
    lines.push(`| ${name} | ${byFile.size} | ${functions.size} | ${entries.size} |`);
    const files = [...byFile].map(([file, own]) => `- ${file}: ${own.map((each) => nameOf(file, each)).join(', ')}`);
    lists.push('', `## ${name}`, '', ...files);
  }
  return `${[...lines, ...(values.files ? lists : [])].join('\n')}\n`;
}

/** A function's name, or the line where one without a name is. */
function nameOf(file: string, called: string): string {
  const [, name, offset] = / (.*)@(\d+)$/.exec(called) ?? [];
  const text = readFileSync(join(root, 'src', file), 'utf8').slice(0, Number(offset));
  return name || `line ${text.split('\n').length}`;
}
