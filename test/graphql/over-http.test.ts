import { serverAudits } from 'graphql-http';
import { afterAll, describe, expect, it } from 'vitest';
import { closeSockets, rawSocket } from '../support/graphql/sockets.ts';
import { CSV, filePart, formHeaders, formOf, MAP, OPERATIONS, sendRaw } from '../support/graphql/upload-requests.ts';
import { usePortcullis } from '../support/harness.ts';

const p = usePortcullis();
const QUERY = 'query A { me { __typename } }';
const TWO = `${QUERY} query B { me { __typename } }`;
const DATA = { data: { me: { __typename: 'Viewer' } } };
const GRAPHQL = 'application/graphql-response+json; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';
afterAll(closeSockets);

const post = async (json: unknown, headers: Record<string, string> = {}) =>
  p.call('POST', '/graphql', { token: await p.clientToken(), json, headers });

/** What clients add to a body. */
const EXTRAS: Record<string, unknown>[] = [
  { foo: 1 },
  { id: 'q1', operationType: 'query' },
  { key: 123, context: { url: '/graphql', preferGetMethod: false } },
  { doc_id: '1', documentHash: 'abc', hash: null },
  { locale: 'en', timestamp: 1, flags: [true, { a: null }] },
  { constructor: 1, toString: {}, hasOwnProperty: 'x' },
  { Query: 'x', operation_name: 'y', Variables: {} },
];
/** Members that have no effect. */
const ABSENT: Record<string, unknown>[] = [
  { operationName: '' },
  { operationName: null },
  { variables: null },
  { extensions: null },
  { extensions: {} },
  { documentId: null },
  { documentId: 'abc' },
  { operationName: '', variables: null, extensions: null, foo: null },
];

describe('a request body', () => {
  it.each([...EXTRAS, ...ABSENT])('D2-32: with %j is executed as it would be without', async (extras) => {
    const answer = await post({ query: QUERY, ...extras });
    expect([answer.status, answer.json]).toEqual([200, DATA]);
    const batch = await post([
      { query: QUERY, ...extras },
      { ...extras, query: QUERY },
    ]);
    expect([batch.status, batch.json]).toEqual([200, [DATA, DATA]]);
  });

  it('D2-32: with __proto__ as an unknown member is executed as it would be without', async () => {
    const body = `{"query":"{ me { __typename } }","__proto__":{"operationName":"X"}}`;
    const headers = { 'content-type': 'application/json' };
    const answer = await p.call('POST', '/graphql', { token: await p.clientToken(), body, headers });
    expect([answer.status, answer.json]).toEqual([200, DATA]);
  });

  it.each<[body: object, message: RegExp]>([
    [{ query: TWO, operationName: '' }, /what operation/],
    [{ query: null }, /query/],
    [{ query: '' }, /Unexpected <EOF>/],
    [{ foo: 1 }, /query/],
    [{ query: QUERY, operationName: 'X' }, /operation/i],
    [{ query: QUERY, variables: 'x' }, /variables/],
    [{ query: QUERY, variables: [] }, /variables/],
  ])('D2-32: %j is rejected', async (body, message) => {
    const answer = await post(body, { accept: 'application/graphql-response+json' });
    expect([answer.status, answer.text]).toEqual([400, expect.stringMatching(message)]);
  });

  it.each([
    'application/json',
    'APPLICATION/JSON',
    'application/json;charset=utf-8',
    'Application/Json ; Charset="UTF-8"',
  ])('D2-32: of the content type %s is accepted', async (type) => {
    const body = JSON.stringify({ query: QUERY });
    const answer = await p.call('POST', '/graphql', {
      token: await p.clientToken(),
      body,
      headers: { 'content-type': type },
    });
    expect([answer.status, answer.json]).toEqual([200, DATA]);
  });

  it('D2-32: of a GET is read from the query string, and other parameters are ignored', async () => {
    for (const more of [
      '',
      '&operationName=',
      '&variables=',
      '&variables=null',
      '&extensions=null',
      '&foo=1&_=2',
      '&operationName=A',
    ]) {
      const path = `/graphql?query=${encodeURIComponent(QUERY)}${more}`;
      const answer = await p.call('GET', path, { token: await p.clientToken() });
      expect([more, answer.status, answer.json]).toEqual([more, 200, DATA]);
    }
  });

  it('D2-32: of a WebSocket may have unknown members and an empty operationName', async () => {
    using socket = await rawSocket(p);
    socket.init(await p.clientToken());
    await expect.poll(() => socket.received.map(({ type }) => type), { timeout: 10_000 }).toEqual(['connection_ack']);
    const all = [...EXTRAS, ...ABSENT];
    for (const [at, extras] of all.entries())
      socket.send({ type: 'subscribe', id: `s${at}`, payload: { query: QUERY, ...extras } });
    await expect
      .poll(() => socket.received.filter(({ type }) => type === 'next').map(({ payload }) => payload), {
        timeout: 10_000,
      })
      .toEqual(all.map(() => DATA));
  });
});

describe('a multipart form', () => {
  const json = 'Content-Type: application/json';
  const part = (name: string, more: string, ...lines: string[]) =>
    [`Content-Disposition: form-data; name="${name}"${more}`, ...lines].join('\r\n');
  const FORMS: [what: string, operations: string, map: string, file: string][] = [
    ['Blobs', part('operations', '; filename="blob"', json), part('map', '; filename="blob"', json), ''],
    ['a type and no file name', part('operations', '', json), part('map', '', `${json}; charset=utf-8`), ''],
    ['the type application/octet-stream', part('operations', '', 'Content-Type: application/octet-stream'), '', ''],
    ['only a file name', part('operations', '; filename="operations.json"'), part('map', '; filename=""'), ''],
    ['a map as a Blob', '', part('map', '; filename="blob"', json), ''],
    ['a file with an empty name', '', '', part('0', '; filename=""', 'Content-Type: text/csv')],
  ];

  it.each(FORMS)('D2-32 DG-09: with %s is an upload: parts count by order', async (_what, operations, map, file) => {
    const parts = [
      { value: OPERATIONS, head: operations || part('operations', '') },
      { value: MAP, head: map || part('map', '') },
      file === '' ? filePart : { value: CSV, head: file },
    ];
    const answer = await sendRaw(p.url, formHeaders(await p.clientToken()), formOf(parts));
    expect([answer.status, answer.json.errors]).toEqual([200, undefined]);
    expect(JSON.stringify(answer.json)).toContain('"id"');
  });

  it('D2-32 DG-09: may have unknown members in its operations, and an empty operationName', async () => {
    const value = JSON.stringify({ ...JSON.parse(OPERATIONS), operationName: '', extensions: null, foo: [1], id: 'x' });
    const parts = [{ name: 'operations', value }, { name: 'map', value: MAP }, filePart];
    const answer = await sendRaw(p.url, formHeaders(await p.clientToken()), formOf(parts));
    expect([answer.status, answer.json.errors]).toEqual([200, undefined]);
  });

  it('D2-32 DG-09: from a browser may have Blobs', async () => {
    const form = new FormData();
    form.set('operations', new Blob([OPERATIONS], { type: 'application/json' }));
    form.set('map', new Blob([MAP], { type: 'application/json' }), 'map.json');
    form.set('0', new Blob([CSV]));
    const headers = { authorization: `Bearer ${await p.clientToken()}` };
    const response = await fetch(`${p.url}/graphql`, { method: 'POST', body: form, headers });
    expect([response.status, await response.json()]).toEqual([200, { data: expect.any(Object) }]);
  });

  it('D2-32 DG-09: with its parts in another order is rejected', async () => {
    const operations = { name: 'operations', value: OPERATIONS };
    const map = { name: 'map', value: MAP };
    for (const parts of [
      [map, operations, filePart],
      [filePart, operations, map],
      [operations, filePart, map],
    ]) {
      const answer = await sendRaw(p.url, formHeaders(await p.clientToken()), formOf(parts));
      expect([answer.status, JSON.stringify(answer.json)]).toEqual([400, expect.stringContaining('in this order')]);
    }
  });
});

/** Accept headers, the type of a result, and the status of a document that does not validate. */
const ACCEPTS: [accept: string, type: string, invalid: number][] = [
  ['application/graphql-response+json', GRAPHQL, 400],
  ['application/json', JSON_TYPE, 200],
  ['application/graphql-response+json, application/json;q=0.9', GRAPHQL, 400],
  ['application/json;q=0.9, application/graphql-response+json', GRAPHQL, 400],
  ['application/json, application/graphql-response+json;q=0.5', JSON_TYPE, 200],
  ['application/graphql-response+json;q=0.5, application/json', JSON_TYPE, 200],
  ['application/graphql-response+json;q=0, application/json', JSON_TYPE, 200],
  ['application/json, application/graphql-response+json;q=0', JSON_TYPE, 200],
  ['application/json;q=0, application/graphql-response+json', GRAPHQL, 400],
  ['application/json;q=0, */*', GRAPHQL, 400],
  ['application/json;q=0.0, application/*;q=0.1', GRAPHQL, 400],
  ['application/graphql-response+json;q=0, */*', JSON_TYPE, 400],
  ['application/graphql-response+json, application/json', GRAPHQL, 400],
  ['application/json, application/graphql-response+json', JSON_TYPE, 200],
  ['application/json, multipart/mixed', JSON_TYPE, 200],
  ['application/json, text/event-stream', JSON_TYPE, 200],
  ['text/event-stream;q=0.5, application/json', JSON_TYPE, 200],
  ['text/event-stream;q=0, application/json;q=0.1', JSON_TYPE, 200],
  ['text/html, application/xhtml+xml, application/xml;q=0.9, application/json;q=0.8', JSON_TYPE, 200],
  ['APPLICATION/JSON', JSON_TYPE, 200],
  ['application/json; charset=utf-8', JSON_TYPE, 200],
  ['application/json;charset=UTF-8;q=1, */*;q=0.1', JSON_TYPE, 200],
  ['application/graphql-response+json ; charset=utf-8 ; q=0.9 , application/json ; q=0.8', GRAPHQL, 400],
  ['application/graphql-response+json;Q=0.1, application/json;Q=0.9', JSON_TYPE, 200],
  ['*/*', JSON_TYPE, 400],
  ['application/*', JSON_TYPE, 400],
  ['*/*;q=0.001', JSON_TYPE, 400],
  ['', JSON_TYPE, 400],
  ['text/plain', JSON_TYPE, 400],
  ['text/plain, */*;q=0.1', JSON_TYPE, 400],
];

it('D2-15: HEAD of /graphql is rejected with 404', async () => {
  for (const headers of [{}, { accept: 'text/html' }]) {
    expect((await p.call('HEAD', '/graphql', { token: await p.clientToken(), headers })).status).toBe(404);
  }
});

/** Documents that are not executed: no GraphQL, an unknown field, a missing argument, a variable of another type. */
const INVALID = ['{ me {', '{ nothing }', '{ account { id } }', 'query ($id: ID!) { account(id: $id) { id } }'];

describe('Accept', () => {
  it.each(ACCEPTS)('D2-32 DG-06: %j: %s; %i for an invalid document', async (accept, type, invalid) => {
    const answer = await post({ query: QUERY }, { accept });
    expect([answer.status, answer.headers.get('content-type'), answer.json]).toEqual([200, type, DATA]);
    for (const query of INVALID) {
      const wrong = await post({ query, variables: { id: {} } }, { accept });
      expect([query, wrong.status, wrong.headers.get('content-type')]).toEqual([query, invalid, type]);
      expect(wrong.json).toEqual({ errors: expect.any(Array) });
    }
  });

  it('D2-32: several Accept lines count as one list', async () => {
    const token = await p.clientToken();
    const body = Buffer.from(JSON.stringify({ query: QUERY }));
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const accept = ['application/json;q=0.1', 'application/graphql-response+json'];
    const answer = await sendRaw(p.url, { ...headers, accept } as never, body);
    expect(answer.headers['content-type']).toBe(GRAPHQL);
  });

  it('D2-32: a weight can select an event stream', async () => {
    for (const accept of ['text/event-stream', 'text/event-stream, application/json;q=0.9', 'text/*, */*;q=0.1']) {
      const answer = await post({ query: QUERY }, { accept });
      expect([accept, answer.headers.get('content-type')]).toEqual([accept, 'text/event-stream']);
    }
  });

  const NONE = [
    'application/json;q=0',
    'application/graphql-response+json;q=0',
    'application/json;q=0, application/graphql-response+json;q=0.000',
    '*/*;q=0',
    'application/*;q=0',
    'application/json;q=0, text/plain',
  ];

  it.each(NONE)(
    'D2-32: %j gets 406 with the error envelope and all headers, and nothing is executed',
    async (accept) => {
      const origin = 'https://app.example';
      const query = 'mutation { changeOwnPassword(currentPassword: "x", newPassword: "y") { __typename } }';
      for (const answer of [await post({ query }, { accept, origin }), await post([{ query }], { accept, origin })]) {
        expect([answer.status, answer.json]).toEqual([406, { code: -1, domain: 0, message: 'not_acceptable' }]);
        expect(answer.headers.get('content-type')).toBe(JSON_TYPE);
        expect(answer.headers.get('access-control-allow-origin')).toBe('*');
        expect(answer.headers.get('x-correlation-id')).toBeTruthy();
        expect(answer.headers.get('accept')).toBeNull();
      }
    },
  );

  it('D2-32: a subscription without text/event-stream accepted gets 406 with the error envelope', async () => {
    const query = 'subscription { transactionUpdates { cursor } }';
    for (const accept of [
      'application/json',
      'text/event-stream;q=0',
      'text/event-stream;q=0, */*',
      'multipart/mixed',
    ]) {
      const answer = await post({ query }, { accept, origin: 'https://app.example' });
      expect([accept, answer.status, answer.json]).toEqual([
        accept,
        406,
        { code: -1, domain: 0, message: 'not_acceptable' },
      ]);
      expect(answer.headers.get('accept')).toBeNull();
      expect(answer.headers.get('vary')).toContain('Origin');
    }
  });
});

const audits = serverAudits({
  url: () => `${p.url}/graphql`,
  fetchFn: async (url: string, init: RequestInit = {}) =>
    fetch(url, { ...init, headers: { ...init.headers, authorization: `Bearer ${await p.clientToken()}` } }),
});

describe('GraphQL over HTTP', () => {
  it.each(audits.map(({ id, name, fn }) => [id, name, fn] as const))(
    'DG-08: passes audit %s: %s',
    async (_id, _name, fn) => {
      expect(await fn()).toMatchObject({ status: 'ok' });
    },
  );
});
