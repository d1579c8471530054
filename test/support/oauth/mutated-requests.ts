import type { Log } from '../../../src/lib/log.ts';
import { type Portcullis, startPortcullis } from '../harness.ts';
import { rows } from './clients.ts';

interface Sent {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Buffer;
}

interface Outcome {
  /** How often each status was answered. */
  statuses: Map<number, number>;
  /** Requests that got a 5xx, or no answer. */
  failed: string[];
  /** Secrets a part of which stands in a log line or an audit record. */
  leaked: string[];
}

const AT_ONCE = 8;
const PIECE = 16;
const FORM = 'application/x-www-form-urlencoded';
const VALUES = ['null', '[]', '{}', '1e999', '-0', 'true', '"\\u0000"', '"\\ud800"', '""', '[[[[[[[[]]]]]]]]', '"§"'];
const TYPES = [FORM, 'application/json', 'text/plain', '', 'application/json; charset=utf-16', 'multipart/form-data'];

/** Sends requests that were right once and have been changed at random, always alike for a seed. */
export async function sendMutatedRequests(count: number, seed: number): Promise<Outcome> {
  const lines: string[] = [];
  await using p = await startPortcullis({ overrides: { log: collecting(lines) } });
  const { originals, secrets } = await originalsOf(p);
  const random = randomOf(seed);
  const outcome: Outcome = { statuses: new Map(), failed: [], leaked: [] };
  let left = count;
  const send = async () => {
    while (left > 0) {
      left -= 1;
      const sent = mutated(pick(originals, random), random);
      const status = await statusOf(p, sent);
      outcome.statuses.set(status, (outcome.statuses.get(status) ?? 0) + 1);
      if (status >= 500 || status === 0) outcome.failed.push(`${status} ${sent.method} ${sent.path} ${sent.body}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, send));
  while (p.service.context.spool.pendingBytes > 0) await new Promise((resolve) => setTimeout(resolve, 50));
  const records = await rows(p).run((k) => k.selectFrom('audit_records').selectAll());
  if (records.length < count) throw new Error(`${records.length} records of ${count} requests`);
  const told = `${lines.join('\n')}\n${records.map((record) => JSON.stringify(record)).join('\n')}`;
  outcome.leaked = secrets.filter((secret) => piecesOf(secret).some((piece) => told.includes(piece)));
  return outcome;
}

function collecting(lines: string[]): Log {
  const write = (fields: object, message: string) => {
    lines.push(`${message} ${JSON.stringify(fields, (_key, value) => (value instanceof Error ? value.stack : value))}`);
  };
  return { debug: write, info: write, warn: write, error: write };
}

async function originalsOf(p: Portcullis): Promise<{ originals: Sent[]; secrets: string[] }> {
  const { client, supervisor } = p.demo;
  const login = (
    await p.call('POST', '/v2/oauth/token', { json: { grant_type: 'password', ...client, ...supervisor } })
  ).json;
  const api = (await p.call('POST', '/v2/oauth/token', { json: { grant_type: 'client_credentials', ...client } })).json;
  const tokens: string[] = [login.access_token, login.refresh_token, api.access_token, api.refresh_token];
  const basic = `Basic ${Buffer.from(`${client.client_id}:${client.client_secret}`).toString('base64')}`;
  const grants = [
    { grant_type: 'client_credentials' },
    { grant_type: 'password', ...supervisor },
    { grant_type: 'refresh_token', refresh_token: api.refresh_token },
    { grant_type: 'refresh_token', refresh_token: login.refresh_token },
  ];
  const calls = [
    ...grants.map((body) => ['/v2/oauth/token', body] as const),
    ['/v2/oauth/introspect', { token: api.access_token }] as const,
    ['/v2/oauth/revoke', { token: 'unknown' }] as const,
  ];
  const bearer = { authorization: `Bearer ${login.access_token}` };
  return {
    originals: [
      ...calls.flatMap(([path, body]) => [
        post(path, { 'content-type': 'application/json' }, JSON.stringify({ ...client, ...body })),
        post(path, { 'content-type': FORM }, String(new URLSearchParams({ ...client, ...body }))),
        post(path, { 'content-type': FORM, authorization: basic }, String(new URLSearchParams(body))),
      ]),
      { method: 'GET', path: '/v1/accounts', headers: bearer, body: Buffer.alloc(0) },
      post('/graphql', { ...bearer, 'content-type': 'application/json' }, '{"query":"{me{subject permissions}}"}'),
    ],
    secrets: [
      client.client_secret,
      supervisor.password,
      ...tokens.flatMap((token) => token.split('.').slice(1)),
      basic,
    ],
  };
}

function post(path: string, headers: Record<string, string>, body: string): Sent {
  return { method: 'POST', path, headers, body: Buffer.from(body) };
}

function mutated(original: Sent, random: () => number): Sent {
  const headers = { ...original.headers };
  let { body } = original;
  const isHeader = body.length === 0 || random() < 0.3;
  const name = pick(Object.keys(headers), random);
  if (isHeader && name === 'content-type') headers[name] = pick(TYPES, random);
  else if (isHeader) headers[name] = headerText(mutatedBytes(Buffer.from(headers[name] ?? ''), random));
  else if (random() < 0.3) body = Buffer.from(withAnotherValue(body.toString(), random));
  else body = mutatedBytes(body, random);
  return { ...original, headers, body };
}

/** Replaces a JSON string by another value. */
function withAnotherValue(text: string, random: () => number): string {
  const strings = [...text.matchAll(/"[^"]*"(?!:)/g)];
  const chosen = strings[Math.floor(random() * strings.length)];
  if (!chosen) return `${text}&${text}`;
  const value = pick(VALUES, random).replace('§', 'x'.repeat(5_000));
  return text.slice(0, chosen.index) + value + text.slice(chosen.index + chosen[0].length);
}

function mutatedBytes(bytes: Buffer, random: () => number): Buffer {
  const at = Math.floor(random() * bytes.length);
  const length = Math.floor(random() * 8) + 1;
  const [before, piece, after] = [bytes.subarray(0, at), bytes.subarray(at, at + length), bytes.subarray(at + length)];
  const noise = Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
  switch (Math.floor(random() * 4)) {
    case 0:
      return Buffer.concat([before, after]);
    case 1:
      return Buffer.concat([before, piece, piece, after]);
    case 2:
      return Buffer.concat([before, noise, after]);
    default:
      return Buffer.concat([before, noise, piece, after]);
  }
}

/** What fetch can send: anything else never leaves a client. */
function headerText(bytes: Buffer): string {
  return bytes.toString('latin1').replace(/[^ -~¡-ÿ]/g, ' ');
}

async function statusOf(p: Portcullis, { method, path, headers, body }: Sent): Promise<number> {
  try {
    const answer = await p.call(method, path, { headers, ...(body.length > 0 ? { body } : {}) });
    return answer.status;
  } catch {
    return 0;
  }
}

function piecesOf(secret: string): string[] {
  const starts = [0, Math.floor((secret.length - PIECE) / 2), secret.length - PIECE];
  return starts.filter((start) => start >= 0).map((start) => secret.slice(start, start + PIECE));
}

function pick<Item>(items: readonly Item[], random: () => number): Item {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new Error('nothing to choose from');
  return item;
}

/** mulberry32: numbers from 0 up to 1 that a seed decides. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
