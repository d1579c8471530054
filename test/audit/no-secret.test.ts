import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { type Keys, operations, type Telling, tellings } from '../support/audit/secret-requests.ts';
import { anySecret, plainSecret, SHOWN, traceIn } from '../support/audit/secret-traces.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { renameTable } from '../support/harness/database-roles.ts';
import { startPortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { writtenLog } from '../support/observability/written-log.ts';

const { log, lines } = writtenLog();
const p = beforeTests(() => startPortcullis({ overrides: { log } }));
let keys: Keys;
let token: string;
let logged = 0;
let spooled = 0;

beforeAll(async () => {
  token = await p.clientToken();
  const { username, password } = p.webhook;
  keys = {
    bearer: `Bearer ${token}`,
    basic: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
    agent: `Bearer ${p.demo.client.client_secret}`,
    grants: await grants(),
  };
  // Records stay in the files until everything has been asked.
  await p.service.context.auditWriter.flush();
  vi.spyOn(p.service.context.spool, 'drain').mockResolvedValue(0);
});
afterAll(async () => {
  vi.restoreAllMocks();
});

/** Good requests for a token. */
async function grants(): Promise<object[]> {
  const { client, supervisor } = p.demo;
  const login = { grant_type: 'password', ...client, ...supervisor };
  const { refresh_token } = (await p.call('POST', '/v2/oauth/token', { json: login })).json;
  return [
    { grant_type: 'client_credentials', ...client },
    login,
    { grant_type: 'refresh_token', ...client, refresh_token },
  ];
}

/** What has been logged and spooled since the last time. */
function told(): string {
  const log = lines.slice(logged).join('');
  logged = lines.length;
  const spool = spoolText();
  const news = spool.slice(spooled);
  spooled = spool.length;
  return `${log}\n${news}`;
}

function spoolText(): string {
  const folder = join(p.dataDir, 'audit');
  const names = readdirSync(folder).filter((name) => name.endsWith('.seg'));
  return names
    .sort()
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('');
}

/** Sends a request, and leaves or reads the answer to its end; the status, if there was one. */
async function tell({ text, leavesAt }: Telling): Promise<number> {
  const { hostname, port } = new URL(p.url);
  const socket = connect({ host: hostname, port: Number(port) });
  const closed = new Promise((resolve) => socket.on('close', resolve));
  let answer = '';
  socket
    .on('error', () => undefined)
    .on('data', (chunk) => {
      answer += chunk;
    });
  if (leavesAt === undefined) socket.write(text);
  else socket.write(text.slice(0, Math.floor(text.length * leavesAt)), () => socket.destroy());
  await closed;
  return Number(answer.split(' ')[1] ?? 0);
}

/** Says things over a socket until it is closed, or everything has been answered. */
async function talk(path: string, headers: Record<string, string>, messages: readonly string[]): Promise<void> {
  const socket = new WebSocket(`${p.url.replace('http', 'ws')}${path}`, 'graphql-transport-ws', { headers });
  const closed = new Promise((resolve) => socket.on('close', resolve));
  let at = 0;
  const next = () => (at < messages.length ? socket.send(messages[at++] ?? '') : socket.close());
  socket.on('error', () => undefined);
  socket.on('open', next);
  socket.on('message', (data) => {
    if (JSON.parse(String(data)).type !== 'next') next();
  });
  await closed;
}

describe('secrets in requests', () => {
  it('7.2-01 7.2-02 D2-08 D2-21: are in no log line and no spool file, and no random request gets a 5xx', async () => {
    const one = fc.oneof({ weight: 3, arbitrary: tellings(keys) }, { weight: 1, arbitrary: operations(keys) });
    const property = fc.asyncProperty(fc.array(one, { minLength: 6, maxLength: 12 }), async (all) => {
      const statuses = await Promise.all(all.map(tell));
      expect(statuses.filter((status) => status >= 500)).toEqual([]);
      expect(traceIn(told())).toBeUndefined();
    });
    await fc.assert(property, { numRuns: inject('isThorough') ? 400 : 12 });
  });

  it('D2-21: are not recorded from a WebSocket upgrade, its connection_init and its operations', async () => {
    const property = fc.asyncProperty(plainSecret, anySecret, async (plain, secret) => {
      const upgrade = { cookie: `session=${plain}`, 'x-api-token': plain };
      const init = (payload: object) => JSON.stringify({ type: 'connection_init', payload });
      const operation = (id: string, query: string, variables: object) =>
        JSON.stringify({ id, type: 'subscribe', payload: { query, variables } });
      const set = `mutation ($p: String!) { setSupervisorPassword(id: "x", password: $p) { __typename } }`;
      const literal = `mutation { a: setSupervisorPassword(id: "x", password: ${JSON.stringify(secret)}) { __typename } }`;
      const said = [
        operation('1', set, { p: secret }),
        operation('2', literal, {}),
        operation('3', `{ ${literal}`, {}),
      ];
      await talk(`/graphql?token=${plain}`, upgrade, [init({ authorization: `Bearer ${plain}`, password: secret })]);
      await talk('/graphql', upgrade, [init({ authorization: keys.bearer, password: secret }), ...said]);
      await talk('/graphql', upgrade, [init({ authorization: keys.bearer }), `{"token":${JSON.stringify(secret)}`]);
      await talk('/graphql', { ...upgrade, authorization: `Bearer ${plain}` }, []);
      await talk('/nowhere', upgrade, []);
      expect(traceIn(told())).toBeUndefined();
    });
    await fc.assert(property, { numRuns: inject('isThorough') ? 8 : 4 });
  });

  it('D2-12: are not in the log of an internal error', async () => {
    const [secret = ''] = fc.sample(anySecret, 1);
    await renameTable(p, 'supervisors', 'away');
    const { client } = p.demo;
    const login = { grant_type: 'password', ...client, username: SHOWN, password: secret };
    const statuses = [(await p.call('POST', '/v2/oauth/token', { json: login })).status];
    const query = `mutation ($input: SupervisorInput!) { createSupervisor(input: $input) { __typename } }`;
    const input = { username: SHOWN, password: 'ZQXJKVZQXJKV', role: 'viewer' };
    const made = await p.call('POST', '/graphql', { token, json: { query, variables: { input } } });
    await renameTable(p, 'away', 'supervisors');
    expect([...statuses, made.json.errors?.length]).toEqual([500, 1]);
    const text = told();
    expect(text).toContain('"level":50');
    expect(traceIn(text)).toBeUndefined();
  });
});

it('D2-07: non-secret values are recorded, and no column of a record contains a secret', async () => {
  const { spool } = p.service.context;
  const files = spoolText();
  vi.restoreAllMocks();
  await vi.waitFor(() => expect(spool.pendingBytes).toBe(0));
  const records = await rows(p).raw(
    (sql) => sql<{ text: string }>`select audit_records::text as text from audit_records`,
  );
  expect(records.length).toBeGreaterThan(100);
  const text = records.map((record) => record.text).join('\n');
  expect(traceIn(text)).toBeUndefined();
  for (const one of [files, text]) expect(one).toContain(SHOWN);
  const { client, supervisor } = p.demo;
  const own = [client.client_secret, supervisor.password, p.webhook.password, token.split('.').at(-1) ?? ''];
  const pieces = own.flatMap((secret) => [secret.slice(0, 16), secret.slice(-16)]);
  for (const piece of pieces) for (const one of [files, text, lines.join('')]) expect(one.includes(piece)).toBe(false);
});
