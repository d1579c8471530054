import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { envelope } from '../support/gateway/envelopes.ts';
import { type Answer, type Portcullis, startPortcullis } from '../support/harness.ts';
import { basicOf, basicText, FORM, oauthEnvelope, postForm } from '../support/oauth/requests.ts';

const MEMBERS = ['access_token', 'refresh_token', 'expires_in', 'token_type', 'scope', 'created_at'];
const TOKEN = '/v2/oauth/token';

let p: Portcullis;
beforeAll(async () => {
  p = await startPortcullis();
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => p[Symbol.asyncDispose]());

const post = (form: Record<string, string> | string, authorization?: string) => postForm(p, TOKEN, form, authorization);
const json = (body: object, authorization: string) => p.call('POST', TOKEN, { json: body, headers: { authorization } });
const CLIENT_CREDENTIALS = { grant_type: 'client_credentials' };

function unstored({ headers }: Answer): void {
  expect([headers.get('cache-control'), headers.get('pragma')]).toEqual(['no-store', 'no-cache']);
}

describe('a standard client', () => {
  it('D3-11 4.1-01: gets a pair for every grant, by form or JSON, with Basic or its credentials in the body', async () => {
    const { client, supervisor } = p.demo;
    const refresh_token = async () => (await post(CLIENT_CREDENTIALS, basicOf(client))).json.refresh_token;
    const grants = [
      CLIENT_CREDENTIALS,
      { grant_type: 'password', ...supervisor },
      { grant_type: 'refresh_token', refresh_token: await refresh_token() },
    ];
    for (const grant of grants) {
      const answers = [
        await post({ ...grant, ...client }),
        await post(grant, basicOf(client)),
        await post({ ...grant, client_id: client.client_id.toUpperCase() }, basicOf(client)),
        await json(grant, basicOf(client)),
      ];
      for (const answer of answers) {
        expect([answer.status, Object.keys(answer.json)]).toEqual([200, MEMBERS]);
        unstored(answer);
      }
    }
  });

  it.each([
    ['plain', (id: string, secret: string) => `${id}:${secret}`],
    ['escaped throughout', (id: string, secret: string) => `${escaped(id)}:${escaped(secret)}`],
    ['in upper case', (id: string, secret: string) => `${id.toUpperCase()}:${secret}`],
  ])('D3-11: may write the halves of Basic %s', async (_name, text) => {
    const { client_id, client_secret } = p.demo.client;
    expect((await post(CLIENT_CREDENTIALS, basicText(text(client_id, client_secret)))).status).toBe(200);
  });

  it.each([`${FORM};charset=UTF-8`, `${FORM} ; charset=utf-8`, FORM.toUpperCase()])(
    'D3-11: may send the type %s',
    async (type) => {
      const body = new URLSearchParams({ ...CLIENT_CREDENTIALS, ...p.demo.client }).toString();
      expect((await p.call('POST', TOKEN, { body, headers: { 'content-type': type } })).status).toBe(200);
    },
  );

  it.each(['Bearer x', 'Bearer', 'Token x', 'Basicx', 'x', 'Negotiate YII='])(
    'D3-11 D2-06: with the Authorization "%s" is judged by the body alone',
    async (authorization) => {
      expect((await post({ ...CLIENT_CREDENTIALS, ...p.demo.client }, authorization)).status).toBe(200);
      const refused = await json({ ...CLIENT_CREDENTIALS, ...p.demo.client, client_secret: 'x' }, authorization);
      expect([refused.status, refused.text]).toEqual([401, envelope('invalid_request')]);
      expect(refused.headers.get('www-authenticate')).toBeNull();
    },
  );

  it('D3-11: gives no weight to a scope or to the query', async () => {
    const answer = await postForm(
      p,
      `${TOKEN}?grant_type=x&client_id=y`,
      { ...CLIENT_CREDENTIALS, scope: 'x y' },
      basicOf(p.demo.client),
    );
    expect([answer.status, answer.json.scope]).toEqual([
      200,
      (await p.call('POST', TOKEN, { json: own() })).json.scope,
    ]);
  });

  function own() {
    return { ...CLIENT_CREDENTIALS, ...p.demo.client };
  }

  function escaped(text: string): string {
    return Buffer.from(text).toString('hex').replace(/../g, '%$&');
  }
});

describe('400 to a standard client', () => {
  const NO_UUID = 'client_id must be a UUID: 8-4-4-4-12 hexadecimal digits';
  const ESCAPED = 'the body must have % only in escapes of UTF-8, such as %25';
  const badForms: [string, string, () => string][] = [
    ['no parameter', 'grant_type is required: a string', () => ''],
    ['no grant type', 'grant_type is required: a string', () => `client_id=${p.demo.client.client_id}&client_secret=x`],
    ['an empty grant type', 'grant_type is required: a string', () => `grant_type=&${credentials()}`],
    [
      'no credentials',
      'client_id is required: a UUID; client_secret is required: a string',
      () => 'grant_type=client_credentials',
    ],
    [
      'no secret',
      'client_secret is required: a string',
      () => `grant_type=client_credentials&client_id=${p.demo.client.client_id}`,
    ],
    ['a client_id that is no UUID', NO_UUID, () => 'grant_type=client_credentials&client_id=demo&client_secret=x'],
    [
      'a grant type twice',
      'grant_type must be given once',
      () => `grant_type=client_credentials&grant_type=client_credentials&${credentials()}`,
    ],
    [
      'an unknown parameter twice',
      'x must be given once',
      () => `grant_type=client_credentials&x=1&x=&${credentials()}`,
    ],
    ['a broken escape', ESCAPED, () => `grant_type=client_credentials&x=%zz&${credentials()}`],
    ['an escape that is no UTF-8', ESCAPED, () => `grant_type=client_credentials&x=%ff&${credentials()}`],
    [
      'U+0000 in the secret',
      'client_secret must not contain U+0000 or a lone surrogate',
      () => `grant_type=client_credentials&client_id=${randomUUID()}&client_secret=%00`,
    ],
    ['no username', 'username is required: a string', () => `grant_type=password&password=x&${credentials()}`],
    ['no refresh token', 'refresh_token is required: a string', () => `grant_type=refresh_token&${credentials()}`],
    [
      'JSON in a form',
      'grant_type is required: a string',
      () => JSON.stringify({ ...CLIENT_CREDENTIALS, ...p.demo.client }),
    ],
  ];

  it.each(badForms)('7.2-01 D3-11 D3-29: a form with %s: %s', async (_name, told, form) => {
    const answer = await post(form());
    expect([answer.status, answer.text]).toEqual([400, oauthEnvelope('invalid_request', 'invalid_request', told)]);
    expect(answer.headers.get('www-authenticate')).toBeNull();
    unstored(answer);
  });

  it.each([
    [
      'a secret in the body',
      'client_secret must not be given twice',
      () => ({ client_secret: p.demo.client.client_secret }),
    ],
    ['the same credentials in the body', 'client_secret must not be given twice', () => p.demo.client],
    ['another client_id', 'client_id must be the one of HTTP Basic', () => ({ client_id: randomUUID() })],
    ['a client_id that is no UUID', NO_UUID, () => ({ client_id: 'demo' })],
  ])('D3-29: %s beside Basic, whatever the Basic is: %s', async (_name, told, more) => {
    for (const authorization of [basicOf(p.demo.client), basicOf({ ...p.demo.client, client_secret: 'wrong' })]) {
      for (const answer of [
        await post({ ...CLIENT_CREDENTIALS, ...more() }, authorization),
        await json({ ...CLIENT_CREDENTIALS, ...more() }, authorization),
      ]) {
        expect([answer.status, answer.text]).toEqual([400, oauthEnvelope('invalid_request', 'invalid_request', told)]);
        unstored(answer);
      }
    }
  });

  it('D3-29 7.2-01: a member of a JSON object twice, with the three members alone', async () => {
    const { client_id, client_secret } = p.demo.client;
    const id = `"client_id":"${client_id}"`;
    const body = `{"grant_type":"client_credentials",${id},${id},"client_secret":"${client_secret}"}`;
    const answer = await p.call('POST', TOKEN, { body, headers: { 'content-type': 'application/json' } });
    expect([answer.status, answer.text]).toEqual([400, envelope('invalid_request')]);
    unstored(answer);
  });

  it('7.2-01: another content type, with the members of RFC 6749 where there is Basic', async () => {
    for (const type of ['text/plain', 'multipart/form-data; boundary=x', `${FORM}x`]) {
      const options = { body: 'grant_type=client_credentials', headers: { 'content-type': type } };
      const plain = await p.call('POST', TOKEN, options);
      expect([plain.status, plain.text]).toEqual([400, envelope('invalid_request')]);
      const headers = { ...options.headers, authorization: basicOf(p.demo.client) };
      const basic = await p.call('POST', TOKEN, { ...options, headers });
      const told = 'Content-Type must be application/json or application/x-www-form-urlencoded';
      expect([basic.status, basic.text]).toEqual([400, oauthEnvelope('invalid_request', 'invalid_request', told)]);
    }
  });

  function credentials(): string {
    return new URLSearchParams({ ...p.demo.client }).toString();
  }
});
