import { parse, print } from 'graphql';
import { beforeEach, describe, expect, it } from 'vitest';
import { SECRET, startAuditFixture } from '../support/graphql/audit-fixture.ts';
import { socketClient } from '../support/graphql/sockets.ts';
import { beforeTests } from '../support/harness/before-tests.ts';

const SET = `mutation ($p: String!) { setSupervisorPassword(id: "7", password: $p) }`;
const SET_MASKED = { query: SET, variables: { p: '***' } };
const CREATE = 'mutation { createClient(name: "kept") { x: clientSecret client { id } } }';
const LITERAL = `query { check(token: "${SECRET}", codes: ["kept"]) }`;
const LITERAL_MASKED = print(parse('query { check(token: "***", codes: ["kept"]) }'));

const fixture = beforeTests(startAuditFixture);
beforeEach(() => {
  fixture.records.length = 0;
  fixture.lines.length = 0;
});

/** The one record, which shows nothing of the secret, as no line of the log does. */
function onlyRecord() {
  const [record, ...more] = fixture.records;
  expect(more).toEqual([]);
  if (!record) throw new Error('there is one');
  expect(JSON.stringify(fixture.records) + fixture.lines.join()).not.toMatch(/ZQ-|hunter/);
  return record;
}

describe('an operation over HTTP', () => {
  it('D2-21: by POST is recorded without its secrets', async () => {
    await fixture.post({ query: SET, variables: { p: SECRET } });
    const record = onlyRecord();
    expect(JSON.parse(record.request_body ?? '')).toEqual(SET_MASKED);
    expect(record.response_body).toBe('{"data":{"setSupervisorPassword":true}}');
    expect(record.request_bytes).toBe(JSON.stringify({ query: SET, variables: { p: SECRET } }).length);
  });

  it('D2-21: a secret in its response is not in its record', async () => {
    const answer = await fixture.post({ query: CREATE });
    expect(answer).toContain(SECRET);
    const record = onlyRecord();
    expect(record.response_body).toBe('{"data":{"createClient":{"x":"***","client":{"id":"1"}}}}');
    expect(record.response_bytes).toBe(answer.length);
  });

  it('D2-21: the same document is masked again when it is repeated', async () => {
    for (let time = 0; time < 3; time += 1) await fixture.post({ query: LITERAL });
    expect(fixture.records.map((record) => JSON.parse(record.request_body ?? '').query)).toEqual(
      Array(3).fill(LITERAL_MASKED),
    );
  });

  it('D2-21: by GET is recorded without its secrets in the query string', async () => {
    const given = { query: `query Q($t: String) { check(token: $t) }`, operationName: 'Q' };
    const variables = encodeURIComponent(JSON.stringify({ t: SECRET, u: 'not declared' }));
    await fixture.get(`${new URLSearchParams(given)}&variables=${variables}`);
    const shown = Object.fromEntries(new URLSearchParams(onlyRecord().query ?? ''));
    expect(shown).toEqual({ ...given, variables: '{"t":"***"}' });
    fixture.records.length = 0;
    await fixture.get(new URLSearchParams({ query: LITERAL }).toString());
    expect(new URLSearchParams(onlyRecord().query ?? '').get('query')).toBe(LITERAL_MASKED);
  });

  it('D2-21: by GET is recorded without other query parameters', async () => {
    const query = new URLSearchParams({ query: `{ nothing(x: "${SECRET}") }`, 'variables[p]': SECRET });
    await fixture.get(`query=${encodeURIComponent(LITERAL)}&${query}&mutation{x(y:"${SECRET}")}`);
    expect(new URLSearchParams(onlyRecord().query ?? '').get('query')).not.toBeNull();
  });

  it.each([
    [
      'a document over a limit',
      JSON.stringify({
        query: `{ ${'a: '.repeat(1)}x(pasword: "${SECRET}") ${'{ owner '.repeat(20)}{ id } ${'}'.repeat(20)} }`,
      }),
    ],
    ['too large a batch', JSON.stringify(Array(11).fill({ query: SET, variables: { p: SECRET } }))],
    ['an empty batch', '[]'],
    ['a nested body', `{"query":"{ nothing }","variables":${'['.repeat(100_000)}"${SECRET}"${']'.repeat(100_000)}}`],
  ])('D2-21 D2-20: %s leaves one record with its length, and no secret in record or log', async (_fault, body) => {
    await fixture.post(body);
    const { request_body, request_bytes, response_body } = onlyRecord();
    expect([request_body, request_bytes]).toEqual([null, Buffer.byteLength(body)]);
    expect(response_body).toContain('"message"');
  });

  it('D2-21 D2-28: with a repeated member is recorded without its body', async () => {
    await fixture.post(`{"query":"mutation { x(pasword: \\"${SECRET}\\") }","query":"{ clients { id } }"}`);
    expect(onlyRecord().request_body).toBeNull();
  });

  it('D2-21: that becomes too large while it is read is recorded without its body', async () => {
    const body = new Blob([JSON.stringify({ query: `{ x(pasword: "${SECRET}") }`, filler: 'x'.repeat(1_100_000) })]);
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: body.stream(),
      duplex: 'half',
    };
    await fetch(fixture.url, init).catch(() => undefined);
    const { status_code, request_body } = onlyRecord();
    expect([status_code, request_body]).toEqual([413, null]);
  });

  it('D2-21: over 64 KiB is recorded without any part of a secret', async () => {
    const query = 'query ($t: String, $s: [String!]) { check(token: $t, codes: $s) }';
    const codes = Array(700).fill('x'.repeat(93));
    for (let pad = 0; pad < 8; pad += 1) {
      await fixture.post({ variables: { s: [...codes, 'x'.repeat(pad)], t: SECRET.repeat(20) }, query });
    }
    const shown = fixture.records.map((record) => record.request_body ?? '');
    expect(shown.map((body) => body.length)).toEqual(Array(8).fill(65_536));
    expect(shown.join()).not.toMatch(/ZQ-|hunter/);
  });

  it('D2-21: as a stream of events is recorded without its secrets', async () => {
    const query = `subscription { created(token: "${SECRET}") { y: clientSecret client { name } } }`;
    const answer = await fixture.post({ query }, { accept: 'text/event-stream' });
    expect(answer).toContain(SECRET);
    const record = onlyRecord();
    const next = 'event: next\ndata: {"data":{"created":{"y":"***","client":{"name":"Ada"}}}}\n\n';
    expect(record.response_body).toBe(`:\n\n${next}${next}event: complete\ndata:\n\n`);
    expect(record.request_body).toContain('created(token: \\"***\\")');
  });

  it('D2-21: that gets an error about a secret is recorded with the code of the error', async () => {
    const query = 'mutation ($in: SupervisorInput!) { createSupervisor(input: $in) }';
    const answer = await fixture.post({ query, variables: { in: { name: 'Ada', password: SECRET, x: 1 } } });
    expect(answer).not.toContain(SECRET);
    expect(answer).toContain('unknown field');
    const [error] = JSON.parse(answer).errors;
    expect(JSON.parse(onlyRecord().response_body ?? '')).toEqual({ errors: [{ ...error, message: '***' }] });
  });

  it('D2-21: whose execution fails is recorded except for its secrets', async () => {
    await fixture.post({
      query: 'query ($t: String) { missing { id } check(token: $t, codes: ["kept"]) }',
      variables: { t: SECRET },
    });
    expect(onlyRecord().request_body).toContain('kept');
    expect(onlyRecord().response_body).toContain('INTERNAL_SERVER_ERROR');
  });
});

describe('a batch', () => {
  it('D2-20 D2-21: leaves a record for each operation, with its own document, variables and response', async () => {
    const batch = [
      { query: SET, variables: { p: SECRET } },
      { query: CREATE },
      { query: '{ clients(name: "kept") { id } }' },
      { query: `{ nothing(x: "${SECRET}") }` },
      { qurey: SECRET },
      SECRET,
    ];
    const answer = await fixture.post(batch);
    const { records } = fixture;
    expect(records.map(({ request_body }) => JSON.parse(request_body ?? 'null'))).toEqual([
      SET_MASKED,
      { query: CREATE },
      { query: '{ clients(name: "kept") { id } }' },
      null,
      null,
      null,
    ]);
    const masked = answer.replaceAll(SECRET, '***');
    const answers: unknown[] = JSON.parse(masked.replaceAll(/"message":"[^"\\]*(?:\\.[^"\\]*)*"/g, '"message":"***"'));
    expect(records.map(({ response_body }) => JSON.parse(response_body ?? ''))).toEqual(answers);
    // An unknown member is neither kept nor counted.
    const known = batch.map((one) => (typeof one === 'object' && 'qurey' in one ? {} : one));
    expect(records.map(({ request_bytes }) => request_bytes)).toEqual(known.map((one) => JSON.stringify(one).length));
    expect(new Set(records.map(({ id }) => id)).size).toBe(batch.length);
    expect(new Set(records.map(({ status_code }) => status_code))).toEqual(new Set([200]));
    expect(fixture.lines).toHaveLength(batch.length);
    expect(JSON.stringify(records) + fixture.lines.join()).not.toContain(SECRET);
  });

  it('D2-20: of one operation leaves one record', async () => {
    await fixture.post([{ query: CREATE }]);
    expect(onlyRecord().response_body).toBe('{"data":{"createClient":{"x":"***","client":{"id":"1"}}}}');
  });
});

describe('an operation on a WebSocket', () => {
  async function run(payload: { query: string; variables?: Record<string, unknown> }): Promise<string> {
    const client = socketClient(fixture, 'x');
    const got: unknown[] = [];
    try {
      for await (const result of client.iterate(payload)) got.push(result);
    } catch (error) {
      got.push(error);
    }
    await client.dispose();
    return JSON.stringify(got);
  }

  it('D2-20 D2-21: is recorded without its secrets', async () => {
    const query = 'subscription ($t: String) { created(token: $t) { y: clientSecret client { name } } }';
    expect(await run({ query, variables: { t: SECRET } })).toContain(SECRET);
    const record = onlyRecord();
    expect([record.method, JSON.parse(record.request_body ?? '')]).toEqual(['WS', { query, variables: { t: '***' } }]);
    const line = '{"data":{"created":{"y":"***","client":{"name":"Ada"}}}}';
    expect(record.response_body).toBe(`${line}\n${line}`);
  });
});
