import { once } from 'node:events';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { openSocket, type RawAnswer, request } from '../support/gateway/raw.ts';
import { type Conversation, readAnswers } from '../support/gateway/raw-answers.ts';
import { BODY_ROWS, HEAD_ROWS, MESSAGE_ROWS, type RawRow } from '../support/gateway/raw-rows.ts';
import { usePortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { basicOf } from '../support/oauth/requests.ts';

const ROWS = [...HEAD_ROWS, ...BODY_ROWS, ...MESSAGE_ROWS];
const MESSAGES: Record<number, string> = { 400: 'invalid_request', 401: 'unauthorized', 404: 'not_found' };

const p = usePortcullis();
let basic: string;
/** By row: the correlation ids of what was sent and answered, and the statuses that must be on record. */
const sent = new Map<string, { ids: Set<string>; statuses: number[] }>();

beforeAll(async () => {
  basic = basicOf({ client_id: p.webhook.username, client_secret: p.webhook.password });
});

/** Fills in credentials and correlation ids, which it keeps. */
function filled({ name, bytes }: Pick<RawRow, 'name' | 'bytes'>): string {
  const ids = new Set<string>();
  const row = sent.size;
  const text = bytes.replaceAll('{basic}', basic).replaceAll('{id}', () => {
    const id = `raw-${row}-${ids.size}`;
    ids.add(id);
    return id;
  });
  sent.set(name, { ids, statuses: [] });
  return text;
}

async function conversation(row: RawRow): Promise<Conversation> {
  const text = filled(row);
  const socket = openSocket(p.url);
  socket.write(text + request('GET', '/v2/health', { 'X-Correlation-ID': `${sent.size}-behind` }), 'latin1');
  return readAnswers(socket, row.methods);
}

function expectDocumented({ status, headers, body }: RawAnswer, method: string | undefined): void {
  expect(headers['x-correlation-id']).toBeTruthy();
  if (status < 400 || method === 'HEAD') return;
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  expect(JSON.parse(body)).toMatchObject({ code: -1, domain: 0, message: MESSAGES[status] });
}

async function judge(row: RawRow): Promise<void> {
  const { answers, interim, rest } = await conversation(row);
  expect([answers.map(({ status }) => status), rest]).toEqual([[...row.answers, ...(row.goesOn ? [200] : [])], '']);
  expect(interim).toEqual(row.interim ?? []);
  const own = answers.slice(0, row.answers.length);
  for (const [at, answer] of own.entries()) expectDocumented(answer, row.methods?.[at]);
  const behind = answers.filter(({ headers }) => headers['x-correlation-id']?.endsWith('-behind'));
  expect(behind).toHaveLength(row.goesOn ? 1 : 0);
  const { ids, statuses } = sent.get(row.name) ?? { ids: new Set(), statuses: [] };
  for (const { headers } of own) ids.add(headers['x-correlation-id'] ?? '');
  statuses.push(...row.answers);
  expect((await p.call('GET', '/health')).status).toBe(200);
}

function named(some: readonly RawRow[]) {
  return some.map((row) => [row.name.slice(0, 80), row.answers.join(), row] as const);
}

describe('raw bytes on a connection', () => {
  it('D2-07: (there are at least 100 rows, with distinct names)', () => {
    expect(ROWS.length).toBeGreaterThanOrEqual(100);
    expect(new Set(ROWS.map(({ name }) => name)).size).toBe(ROWS.length);
  });

  it.each(named(HEAD_ROWS))('D2-06 D2-13: a head: %s: %s', (_name, _answers, row) => judge(row));

  it.each(named(BODY_ROWS))('D2-06 D2-13: a body: %s: %s', (_name, _answers, row) => judge(row));

  it.each(named(MESSAGE_ROWS))('D2-06 D2-13 D2-15 D2-16: messages: %s: %s', (_name, _answers, row) => judge(row));
});

const HEAD_LIMITS =
  'must have a head of at most 163840 bytes with at most 1000 header fields: send fewer or shorter ones';
const fieldsOf = (count: number, length = 1) =>
  Array.from({ length: count }, (_, at) => `a${at}: ${'x'.repeat(length)}\r\n`).join('');
/** A head with one field of its own, and what comes behind it. */
const beginning = (id: string, method = 'GET') =>
  `${method} /health HTTP/1.1\r\nHost: x\r\nX-Correlation-ID: ${id}\r\n`;

describe('a request beyond a limit of the parser', () => {
  it.each([
    ['as many fields as are allowed', `${beginning('most')}${fieldsOf(998)}\r\n`, 200, undefined],
    ['one field more', `${beginning('fields')}${fieldsOf(999)}\r\n`, 400, HEAD_LIMITS],
    ['thousands of fields', `${beginning('thousands')}${fieldsOf(9_000)}\r\n`, 400, HEAD_LIMITS],
    ['a head that is too long', `${beginning('long')}${fieldsOf(20, 9_000)}\r\n`, 400, HEAD_LIMITS],
    ['a target that is too long', `GET /${'x'.repeat(170_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 400, HEAD_LIMITS],
    [
      'chunk extensions that are too long',
      `${beginning('chunks', 'POST').replace('/health', '/v2/oauth/revoke')}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1;a=${'x'.repeat(40_000)}\r\n{\r\n`,
      400,
      'must have shorter chunk extensions, or none',
    ],
  ])('D2-13: %s gets a response that says what to change', async (_name, bytes, status, message) => {
    const socket = openSocket(p.url);
    socket.write(bytes, 'latin1');
    if (status === 200) socket.end();
    const { answers } = await readAnswers(socket);
    const [answer] = answers;
    expect([answers.length, answer?.status]).toEqual([1, status]);
    expect(JSON.parse(answer?.body ?? '').errors).toEqual(message && [{ path: '', message }]);
  });
});

/** A notification of which less comes than is announced. */
function unfinished(name: string, ...lines: string[]): string {
  const own = ['Host: x', `Authorization: ${basic}`, 'Content-Type: application/json', 'Expect: 100-continue'];
  const head = [...own, ...lines];
  sent.set(name, { ids: new Set([name]), statuses: [] });
  return `POST /v2/webhooks/custodial HTTP/1.1\r\nX-Correlation-ID: ${name}\r\n${head.join('\r\n')}\r\n\r\n`;
}

const PARTS: [name: string, lines: string[], body: string][] = [
  ['part-of-a-length', ['Content-Length: 100'], '{"id":'],
  ['a-length-without-a-byte', ['Content-Length: 100'], ''],
  ['part-of-a-chunk', ['Transfer-Encoding: chunked'], '9\r\n{"id":'],
  ['chunks-without-a-last-one', ['Transfer-Encoding: chunked'], '2\r\n{}\r\n'],
  ['part-of-trailers', ['Transfer-Encoding: chunked'], '2\r\n{}\r\n0\r\nX-A'],
];

describe('a client that disconnects', () => {
  it.each(PARTS)(
    'D2-07: after %s gets no response, and is recorded once as aborted, for either way to disconnect',
    async (name, lines, body) => {
      for (const way of ['end', 'resetAndDestroy'] as const) {
        const id = `${name}-${way}`;
        const socket = openSocket(p.url);
        socket.on('error', () => undefined).write(unfinished(id, ...lines));
        const left = readAnswers(socket);
        await once(socket, 'data');
        socket.write(body);
        socket[way]();
        expect(await left).toEqual({ answers: [], interim: [100], rest: '' });
        sent.get(id)?.statuses.push(499);
      }
      expect((await p.call('GET', '/health')).status).toBe(200);
    },
  );

  it.each(['GET /hea', 'GET /health HTTP/1.1\r\nHost: x\r\nX-Corr'])(
    'D2-07: within the head %j leaves no record',
    async (head) => {
      const socket = openSocket(p.url);
      socket.end(head);
      expect(await readAnswers(socket)).toEqual({ answers: [], interim: [], rest: '' });
    },
  );

  it('D2-07: right after a complete request is answered or aborted, and is recorded accordingly', async () => {
    const text = filled({
      name: 'half-closed',
      bytes: `GET /health HTTP/1.1\r\nHost: x\r\nX-Correlation-ID: {id}\r\n\r\n`,
    });
    const socket = openSocket(p.url);
    socket.end(text);
    const { answers, interim, rest } = await readAnswers(socket);
    expect({ count: answers.length < 2, interim, rest }).toEqual({ count: true, interim: [], rest: '' });
    sent.get('half-closed')?.statuses.push(answers[0]?.status ?? 499);
  });
});

describe('a slow client', () => {
  it('D2-13: that sends byte by byte is answered once', async () => {
    const text = filled({
      name: 'slow',
      bytes: `GET /health HTTP/1.1\r\nHost: x\r\nX-Correlation-ID: {id}\r\nConnection: close\r\n\r\n`,
    });
    const socket = openSocket(p.url).setNoDelay(true);
    const read = readAnswers(socket);
    for (const byte of text) {
      socket.write(byte);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await read).answers.map(({ status }) => status)).toEqual([200]);
    sent.get('slow')?.statuses.push(200);
  });
});

it('D2-07: every response has one record with its status, also for malformed requests', async () => {
  const { spool } = p.service.context;
  await vi.waitFor(() => expect(spool.pendingBytes).toBe(0));
  const records = await rows(p).run((k) => k.selectFrom('audit_records').select(['correlation_id', 'status_code']));
  const recorded = Map.groupBy(records, (record) => record.correlation_id);
  const sorted = (statuses: number[]) => statuses.toSorted((one, other) => one - other);
  for (const [name, { ids, statuses }] of sent) {
    const kept = [...ids].flatMap((id) => (recorded.get(id) ?? []).map((record) => record.status_code));
    expect([name, sorted(kept)]).toEqual([name, sorted(statuses)]);
  }
  expect(sent.size).toBeGreaterThanOrEqual(ROWS.length);
});
