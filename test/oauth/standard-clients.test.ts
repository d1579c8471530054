import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { serviceUnavailable } from '../../src/platform/errors.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { type Answer, usePortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';
import { basicOf, basicText, FORM, oauthEnvelope, postForm } from '../support/oauth/requests.ts';

const MEMBERS = ['access_token', 'refresh_token', 'expires_in', 'token_type', 'scope', 'created_at'];
const TOKEN = '/v2/oauth/token';
const CHALLENGE = 'Basic realm="portcullis", charset="UTF-8"';
const GRANT = { grant_type: 'client_credentials' };

const p = usePortcullis();
let id: string;
let secret: string;
beforeAll(async () => {
  ({ client_id: id, client_secret: secret } = p.demo.client);
});
afterEach(() => vi.restoreAllMocks());

const post = (form: Record<string, string> | string, authorization?: string) => postForm(p, TOKEN, form, authorization);
const json = (body: object, authorization: string) => p.call('POST', TOKEN, { json: body, headers: { authorization } });
const plain = (client: object) => p.call('POST', TOKEN, { json: { ...GRANT, ...client } });

function unstored({ headers }: Answer): void {
  expect([headers.get('cache-control'), headers.get('pragma')]).toEqual(['no-store', 'no-cache']);
}

/** Expects a refusal in the members of RFC 6749, with a challenge or without. */
function refused(answer: Answer, status: number, text: string, challenge: string | null = null): void {
  expect([answer.status, answer.text]).toEqual([status, text]);
  expect(answer.headers.get('www-authenticate')).toBe(challenge);
  unstored(answer);
}

describe('a standard client', () => {
  it('D3-11 4.1-01: gets a pair for every grant, by form or JSON, with Basic or its credentials in the body', async () => {
    const { client, supervisor } = p.demo;
    const { refresh_token } = (await post(GRANT, basicOf(client))).json;
    for (const grant of [
      GRANT,
      { grant_type: 'password', ...supervisor },
      { grant_type: 'refresh_token', refresh_token },
    ]) {
      const answers = [
        await post({ ...grant, ...client }),
        await post(grant, basicOf(client)),
        await post({ ...grant, client_id: id.toUpperCase() }, basicOf(client)),
        await json(grant, basicOf(client)),
      ];
      for (const answer of answers) {
        expect([answer.status, Object.keys(answer.json)]).toEqual([200, MEMBERS]);
        unstored(answer);
      }
    }
  });

  it('D3-11: may percent-encode Basic credentials, write its id in capitals, and vary the form content type', async () => {
    const escaped = (text: string) => Buffer.from(text).toString('hex').replace(/../g, '%$&');
    for (const text of [`${id}:${secret}`, `${escaped(id)}:${escaped(secret)}`, `${id.toUpperCase()}:${secret}`]) {
      expect((await post(GRANT, basicText(text))).status).toBe(200);
    }
    const body = new URLSearchParams({ ...GRANT, ...p.demo.client }).toString();
    for (const type of [`${FORM};charset=UTF-8`, `${FORM} ; charset=utf-8`, FORM.toUpperCase()]) {
      expect((await p.call('POST', TOKEN, { body, headers: { 'content-type': type } })).status).toBe(200);
    }
  });

  it('D3-11 D3-29: may send resource several times (RFC 8707), in a form or JSON, to each endpoint', async () => {
    const RESOURCES = [
      'resource=https%3A%2F%2Fa.example%2Fv2%2Fmcp&resource=https%3A%2F%2Fb.example',
      'resource=https://a.example&%72esource=https://a.example&resource=',
      'resource=&resource=',
    ];
    const basic = { authorization: basicOf(p.demo.client), 'content-type': FORM };
    for (const resources of RESOURCES) {
      for (const form of [`grant_type=client_credentials&${resources}`, `${resources}&grant_type=client_credentials`]) {
        const answer = await p.call('POST', TOKEN, { body: form, headers: basic });
        expect([form, answer.status, Object.keys(answer.json)]).toEqual([form, 200, MEMBERS]);
      }
      for (const path of ['/v2/oauth/introspect', '/v2/oauth/revoke']) {
        expect((await p.call('POST', path, { body: `token=x&${resources}`, headers: basic })).status).toBe(200);
      }
    }
    for (const resource of [
      '"resource":"a","resource":"b"',
      '"resource":["a","b"]',
      '"resource":null,"resource":"a"',
    ]) {
      const body = `{"grant_type":"client_credentials",${resource}}`;
      const headers = { ...basic, 'content-type': 'application/json' };
      expect([body, (await p.call('POST', TOKEN, { body, headers })).status]).toEqual([body, 200]);
    }
  });

  it.each(['Bearer x', 'Bearer', 'Token x', 'Basicx', 'x', 'Negotiate YII='])(
    'D3-11 D2-06: a client that sends Authorization "%s" is authenticated by the body alone',
    async (authorization) => {
      expect((await post({ ...GRANT, ...p.demo.client }, authorization)).status).toBe(200);
      const answer = await json({ ...GRANT, ...p.demo.client, client_secret: 'x' }, authorization);
      refused(answer, 401, envelope('invalid_request'));
    },
  );

  it('D3-11: gets tokens regardless of unknown scopes and query parameters', async () => {
    const path = `${TOKEN}?grant_type=x&client_id=y`;
    const answer = await postForm(p, path, { ...GRANT, scope: 'x y' }, basicOf(p.demo.client));
    expect([answer.status, answer.json.scope]).toEqual([200, (await plain(p.demo.client)).json.scope]);
  });
});

describe('400 to a standard client', () => {
  const NO_UUID = 'client_id must be a UUID: 8-4-4-4-12 hexadecimal digits';
  const ESCAPED = 'the body must have % only in UTF-8 escapes such as %25';
  const NO_GRANT = 'grant_type is required: a string';
  const OWN = 'grant_type=client_credentials';
  const demo = () => new URLSearchParams({ ...p.demo.client }).toString();
  const badForms: [string, string, () => string][] = [
    ['no parameter', NO_GRANT, () => ''],
    ['an empty grant type', NO_GRANT, () => `grant_type=&${demo()}`],
    ['no credentials', 'client_id is required: a UUID; client_secret is required: a string', () => OWN],
    ['no secret', 'client_secret is required: a string', () => `${OWN}&client_id=${id}`],
    ['a client_id that is not a UUID', NO_UUID, () => `${OWN}&client_id=demo&client_secret=x`],
    ['a grant type twice', 'grant_type must be given once', () => `${OWN}&${OWN}&${demo()}`],
    [
      'resource and another parameter twice',
      'scope must be given once',
      () => `${OWN}&resource=a&scope=a&resource=b&scope=a&${demo()}`,
    ],
    [
      'a parameter of another case twice',
      'the body must have each parameter once',
      () => `${OWN}&Resource=a&Resource=b&${demo()}`,
    ],
    ['an unknown parameter twice', 'x must be given once', () => `${OWN}&x=1&x=&${demo()}`],
    ['a broken escape', ESCAPED, () => `${OWN}&x=%zz&${demo()}`],
    ['an escape that is not UTF-8', ESCAPED, () => `${OWN}&x=%ff&${demo()}`],
    [
      'U+0000 in the secret',
      'client_secret must not contain U+0000 or a lone surrogate',
      () => `${OWN}&client_id=${randomUUID()}&client_secret=%00`,
    ],
    ['no username', 'username is required: a string', () => `grant_type=password&password=x&${demo()}`],
    ['no refresh token', 'refresh_token is required: a string', () => `grant_type=refresh_token&${demo()}`],
    ['JSON in a form', NO_GRANT, () => JSON.stringify({ ...GRANT, ...p.demo.client })],
  ];

  it.each(badForms)('7.2-01 D3-11 D3-29: a form with %s is a 400: %s', async (_name, told, form) => {
    refused(await post(form()), 400, oauthEnvelope('invalid_request', 'invalid_request', told));
  });

  it.each([
    ['a secret in the body', 'client_secret must not be given twice', () => ({ client_secret: secret })],
    ['the same credentials in the body', 'client_secret must not be given twice', () => p.demo.client],
    ['another client_id', 'client_id must be the same as in HTTP Basic', () => ({ client_id: randomUUID() })],
    ['a client_id that is not a UUID', NO_UUID, () => ({ client_id: 'demo' })],
  ])('D3-29: %s in addition to Basic is a 400, whether Basic is valid or not: %s', async (_name, told, more) => {
    for (const authorization of [basicOf(p.demo.client), basicOf({ ...p.demo.client, client_secret: 'wrong' })]) {
      for (const send of [post, json]) {
        const answer = await send({ ...GRANT, ...more() }, authorization);
        refused(answer, 400, oauthEnvelope('invalid_request', 'invalid_request', told));
      }
    }
  });

  it('D3-29 7.2-01: a repeated JSON member is a 400 with only code, domain and message', async () => {
    const body = `{"grant_type":"client_credentials","client_id":"${id}","client_id":"${id}","client_secret":"${secret}"}`;
    const answer = await p.call('POST', TOKEN, { body, headers: { 'content-type': 'application/json' } });
    refused(answer, 400, envelope('invalid_request'));
  });

  it('7.2-01: another content type is a 400, with the members of RFC 6749 if Basic was used', async () => {
    const told = 'Content-Type must be application/json or application/x-www-form-urlencoded';
    for (const type of ['text/plain', 'multipart/form-data; boundary=x', `${FORM}x`]) {
      const send = (headers = {}) =>
        p.call('POST', TOKEN, { body: 'x', headers: { 'content-type': type, ...headers } });
      refused(await send(), 400, envelope('invalid_request'));
      const basic = await send({ authorization: basicOf(p.demo.client) });
      refused(basic, 400, oauthEnvelope('invalid_request', 'invalid_request', told));
    }
  });
});

describe('401 to a standard client', () => {
  const INVALID_CLIENT = oauthEnvelope('invalid_request', 'invalid_client');
  const badBasics: [string, () => string][] = [
    ['a wrong secret', () => basicOf({ ...p.demo.client, client_secret: 'wrong' })],
    ['an unknown client', () => basicOf({ ...p.demo.client, client_id: randomUUID() })],
    ['a client_id that is not a UUID', () => basicText('s6BhdRkqt3:7Fjfp0ZBr1KtDRbnfVdmIw')],
    ['no colon', () => basicText(id)],
    ['an empty secret', () => basicText(`${id}:`)],
    ['an empty id', () => basicText(`:${secret}`)],
    ['no credentials', () => 'Basic'],
    ['malformed base64', () => 'Basic %%%'],
    ['two words', () => `${basicOf(p.demo.client)} x`],
    ['a broken escape', () => basicText(`${id}:%zz${secret}`)],
    ['an escape that is not UTF-8', () => basicText(`${id}:%ff`)],
    ['bytes that are not UTF-8', () => basicText(Buffer.from([...Buffer.from(`${randomUUID()}:`), 0xff]))],
    ['a plus, which decodes to a space', () => basicText(`${id}:${secret}+`)],
  ];

  it.each(badBasics)('7.2-02 D3-11: Basic with %s is a 401 with a challenge', async (_name, authorization) => {
    refused(await post(GRANT, authorization()), 401, INVALID_CLIENT, CHALLENGE);
    refused(await post({ grant_type: 'unheard_of' }, authorization()), 401, INVALID_CLIENT, CHALLENGE);
    refused(await json(GRANT, authorization()), 401, INVALID_CLIENT, CHALLENGE);
  });

  /** The headers of programs and of pages, as they send them. */
  const callers: [who: string, isChallenged: boolean, headers: Record<string, string>][] = [
    ["Node's fetch", true, { 'user-agent': 'node', 'sec-fetch-mode': 'cors' }],
    ['a program with the agent of a browser', true, { 'user-agent': 'Mozilla/5.0', 'sec-fetch-mode': 'cors' }],
    ['openid-client in Electron', true, { 'user-agent': 'Mozilla/5.0 Electron/38', origin: 'app://acme' }],
    ['curl', true, { 'user-agent': 'curl/8.5.0', accept: '*/*' }],
    ['an extension, or a typed address', true, { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'cors' }],
    ['a page of this origin in Chrome', false, { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' }],
    ['a page of this site in Firefox', false, { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' }],
    ['a page of another site in Safari', false, { 'sec-fetch-site': 'cross-site', 'user-agent': 'node' }],
    ['a form of a page', false, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }],
  ];

  it.each(callers)(
    'D2-31 D3-11 5.4-01: with wrong Basic credentials, %s gets a challenge: %s (%j)',
    async (_who, isChallenged, headers) => {
      for (const path of [TOKEN, '/v2/oauth/revoke', '/v2/oauth/introspect', '/v2/webhooks/custodial']) {
        const answer = await p.call('POST', path, {
          json: { ...GRANT, token: 'x' },
          headers: { authorization: basicText('somebody:wrong'), 'user-agent': 'x', ...headers },
        });
        expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, isChallenged ? CHALLENGE : null]);
      }
    },
  );

  it('7.2-02 D3-11: wrong credentials in a form are a 401 without a challenge', async () => {
    refused(await post({ ...GRANT, ...p.demo.client, client_secret: 'wrong' }), 401, INVALID_CLIENT);
  });

  it('7.2-02 D3-11 D2-31: a wrong password or refresh token is a 401 invalid_grant without a challenge', async () => {
    const wrong = { grant_type: 'password', username: 'nobody', password: 'wrong' };
    for (const grant of [wrong, { grant_type: 'refresh_token', refresh_token: 'x' }]) {
      // Clients of OAuth would take a challenge for the client's own failure, and not read the error.
      refused(await post(grant, basicOf(p.demo.client)), 401, oauthEnvelope('invalid_request', 'invalid_grant'));
    }
  });
});

describe('other errors for a standard client', () => {
  it('7.2-03 D3-11: an unknown grant is unsupported_grant_type, and one not allowed is unauthorized_client', async () => {
    for (const grant_type of ['authorization_code', 'toString', '__proto__', 'Password']) {
      const answer = await post({ grant_type }, basicOf(p.demo.client));
      refused(answer, 403, oauthEnvelope('invalid_request', 'unsupported_grant_type'));
    }
    const answer = await post(GRANT, basicOf(await addClient(p, { grant_types: ['password'] })));
    refused(answer, 403, oauthEnvelope('invalid_request', 'unauthorized_client'));
  });

  const guarded: [string, 'invalid_client' | 'access_denied', Parameters<typeof addClient>[1]][] = [
    ['mtls_required', 'invalid_client', { require_certificate: true, cert_fingerprint: 'ab' }],
    ['ip_not_allowed', 'access_denied', { allowed_ips: ['198.51.100.7'] }],
  ];

  it.each(guarded)('7.2-04 7.2-05 D3-11: %s is %s', async (message, error, settings) => {
    const client = await addClient(p, settings);
    refused(await post(GRANT, basicOf(client)), 403, oauthEnvelope(message, error));
    refused(await plain(client), 403, envelope(message));
  });

  it('7.2-06 D3-11 D3-16: over a limit the error is temporarily_unavailable, and limit headers are sent as on success', async () => {
    const client = await addClient(p, { requests_per_hour: 1 });
    const first = await post(GRANT, basicOf(client));
    expect([first.status, first.headers.get('x-ratelimit-remaining')]).toEqual([200, '0']);
    const second = await post(GRANT, basicOf(client));
    refused(second, 429, oauthEnvelope('rate_limit_exceeded', 'temporarily_unavailable'));
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(second.headers.get('x-ratelimit-limit-hour')).toBe('1');
    refused(await plain(client), 429, envelope('rate_limit_exceeded'));
  });

  it('D3-18: the 21st wrong secret in a minute is a 429; a correct one is still accepted', async () => {
    const client = await addClient(p);
    const wrong = { ...client, client_secret: 'wrong' };
    const statuses: number[] = [];
    for (let time = 0; time < 21; time += 1) statuses.push((await post(GRANT, basicOf(wrong))).status);
    expect(statuses).toEqual([...Array(20).fill(401), 429]);
    refused(await plain(wrong), 429, envelope('rate_limit_exceeded'));
    for (const path of ['revoke', 'introspect']) {
      const answer = await postForm(p, `/v2/oauth/${path}`, { token: 'x' }, basicOf(wrong));
      expect([answer.status, answer.json.error]).toEqual([429, 'temporarily_unavailable']);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    }
    expect((await post(GRANT, basicOf(client))).status).toBe(200);
  });

  it('D3-11 D2-12: an unavailable dependency is temporarily_unavailable, an error is server_error, without details', async () => {
    const authenticate = vi.spyOn(p.service.context.directory, 'authenticate');
    authenticate.mockRejectedValueOnce(serviceUnavailable());
    const away = await post(GRANT, basicOf(p.demo.client));
    refused(away, 503, oauthEnvelope('service_unavailable', 'temporarily_unavailable'));
    expect(away.headers.get('retry-after')).toBe('1');
    authenticate.mockRejectedValueOnce(new Error('select hash from client_secrets'));
    const fault = await post(GRANT, basicOf(p.demo.client));
    refused(fault, 500, oauthEnvelope('internal_error', 'server_error'));
  });
});

describe.each(['/v2/oauth/revoke', '/v2/oauth/introspect'])('%s: rejected requests', (path) => {
  it('D3-12 D3-11: a caller without credentials, or with wrong ones, is rejected with 401', async () => {
    const expected = oauthEnvelope('invalid_request', 'invalid_client');
    const { client_id } = p.demo.client;
    for (const answer of [
      await postForm(p, path, { token: 'x' }),
      await postForm(p, path, { token: 'x', client_id }),
      await postForm(p, path, { token: 'x' }, `Bearer ${await p.clientToken()}`),
      await postForm(p, path, {}),
      await p.call('POST', path),
      await p.call('POST', path, { json: { token: 'x' } }),
      await postForm(p, path, { token: 'x' }, basicOf({ client_id, client_secret: 'wrong' })),
    ]) {
      refused(answer, 401, expected, CHALLENGE);
    }
    refused(await p.call('POST', path, { json: { token: 'x', client_id, client_secret: 'wrong' } }), 401, expected);
  });

  it('D3-12 D3-29: a missing or malformed token, or two authentications, are rejected with 400', async () => {
    const { client } = p.demo;
    for (const answer of [
      await postForm(p, path, {}, basicOf(client)),
      await postForm(p, path, { token: '' }, basicOf(client)),
      await postForm(p, path, { token: '\0' }, basicOf(client)),
      await p.call('POST', path, { headers: { authorization: basicOf(client) } }),
      await p.call('POST', path, { json: { token: 7, ...client } }),
      await p.call('POST', path, { json: { token: null, ...client } }),
    ]) {
      expect([answer.status, answer.json.error, answer.json.errors[0].path]).toEqual([400, 'invalid_request', 'token']);
      expect(Object.keys(answer.json)).toEqual(['code', 'domain', 'message', 'errors', 'error', 'error_description']);
    }
    for (const answer of [
      await postForm(p, path, 'token=x&token=x', basicOf(client)),
      await postForm(p, path, { token: 'x', ...client }, basicOf(client)),
      await postForm(p, path, { token: 'x', client_id: 'x' }, basicOf(client)),
      await p.call('POST', path, { json: 'x' }),
      await p.call('POST', path, { body: 'token=x', headers: { 'content-type': 'text/plain' } }),
    ]) {
      expect([answer.status, answer.json.error]).toEqual([400, 'invalid_request']);
    }
  });

  it('D3-13 D3-16: a caller that fails the guards of its client is rejected, and calls are counted', async () => {
    const barred = await addClient(p, { allowed_ips: ['198.51.100.7'] });
    const answer = await postForm(p, path, { token: 'x' }, basicOf(barred));
    refused(answer, 403, oauthEnvelope('ip_not_allowed', 'access_denied'));
    const limited = await addClient(p, { requests_per_hour: 1 });
    const first = await postForm(p, path, { token: 'x' }, basicOf(limited));
    expect([first.status, first.headers.get('x-ratelimit-remaining')]).toEqual([200, '0']);
    const second = await postForm(p, path, { token: 'x' }, basicOf(limited));
    refused(second, 429, oauthEnvelope('rate_limit_exceeded', 'temporarily_unavailable'));
  });
});
