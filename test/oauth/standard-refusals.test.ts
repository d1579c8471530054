import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { serviceUnavailable } from '../../src/platform/errors.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { type Answer, type Portcullis, startPortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';
import { basicOf, basicText, oauthEnvelope, postForm } from '../support/oauth/requests.ts';

const TOKEN = '/v2/oauth/token';
const CHALLENGE = 'Basic realm="portcullis", charset="UTF-8"';

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

describe('401 to a standard client', () => {
  const badBasics: [string, () => string][] = [
    ['a wrong secret', () => basicOf({ ...p.demo.client, client_secret: 'wrong' })],
    ['an unknown client', () => basicOf({ ...p.demo.client, client_id: randomUUID() })],
    ['a client_id that is no UUID', () => basicText('s6BhdRkqt3:7Fjfp0ZBr1KtDRbnfVdmIw')],
    ['no colon', () => basicText(p.demo.client.client_id)],
    ['an empty secret', () => basicText(`${p.demo.client.client_id}:`)],
    ['an empty id', () => basicText(`:${p.demo.client.client_secret}`)],
    ['nothing', () => 'Basic'],
    ['spaces', () => 'Basic   '],
    ['what is no base64', () => 'Basic %%%'],
    ['two words', () => `${basicOf(p.demo.client)} x`],
    ['a broken escape', () => basicText(`${p.demo.client.client_id}:%zz${p.demo.client.client_secret}`)],
    ['an escape that is no UTF-8', () => basicText(`${p.demo.client.client_id}:%ff`)],
    ['bytes that are no UTF-8', () => basicText(Buffer.from([...Buffer.from(`${randomUUID()}:`), 0xff]))],
    ['a space for a plus', () => basicText(`${p.demo.client.client_id}:${p.demo.client.client_secret}+`)],
  ];

  it.each(badBasics)('7.2-02 D3-11: Basic with %s, challenged', async (_name, authorization) => {
    for (const answer of [
      await post(CLIENT_CREDENTIALS, authorization()),
      await post({ grant_type: 'unheard_of' }, authorization()),
      await json(CLIENT_CREDENTIALS, authorization()),
    ]) {
      expect([answer.status, answer.text]).toEqual([401, oauthEnvelope('invalid_request', 'invalid_client')]);
      expect(answer.headers.get('www-authenticate')).toBe(CHALLENGE);
      unstored(answer);
    }
  });

  /** The headers of programs and of pages, as they send them. */
  const callers: [who: string, headers: Record<string, string>, isChallenged: boolean][] = [
    ["Node's fetch", { 'user-agent': 'node', 'sec-fetch-mode': 'cors' }, true],
    [
      "a library on Node's fetch with an agent of its own",
      { 'user-agent': 'acme/1.2', 'sec-fetch-mode': 'cors' },
      true,
    ],
    ['a program with the agent of a browser', { 'user-agent': 'Mozilla/5.0', 'sec-fetch-mode': 'cors' }, true],
    ['openid-client in Electron', { 'user-agent': 'Mozilla/5.0 Electron/38', origin: 'app://acme' }, true],
    ['curl', { 'user-agent': 'curl/8.5.0', accept: '*/*' }, true],
    ['Go', { 'user-agent': 'Go-http-client/1.1' }, true],
    [
      'an extension of a browser, or an address that was typed',
      { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'cors' },
      true,
    ],
    ['a page of this origin in Chrome', { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' }, false],
    ['a page of this site in Firefox', { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' }, false],
    ['a page of another site in Safari', { 'sec-fetch-site': 'cross-site', 'user-agent': 'node' }, false],
    ['a form of a page', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }, false],
  ];

  it.each(callers)('D2-31 D3-11 5.4-01: by Basic, %s is challenged: %j, %s', async (_who, headers, isChallenged) => {
    for (const path of [TOKEN, '/v2/oauth/revoke', '/v2/oauth/introspect', '/v2/webhooks/custodial']) {
      const answer = await p.call('POST', path, {
        json: { ...CLIENT_CREDENTIALS, token: 'x' },
        headers: { authorization: basicText('somebody:wrong'), 'user-agent': 'x', ...headers },
      });
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, isChallenged ? CHALLENGE : null]);
    }
  });

  it('7.2-02 D3-11: wrong credentials in a form, not challenged', async () => {
    const answer = await post({ ...CLIENT_CREDENTIALS, ...p.demo.client, client_secret: 'wrong' });
    expect([answer.status, answer.text]).toEqual([401, oauthEnvelope('invalid_request', 'invalid_client')]);
    expect(answer.headers.get('www-authenticate')).toBeNull();
    unstored(answer);
  });

  it('7.2-02 D3-11 D2-31: a wrong password and a bad refresh token are invalid_grant, without a challenge', async () => {
    for (const grant of [
      { grant_type: 'password', username: 'nobody', password: 'wrong' },
      { grant_type: 'refresh_token', refresh_token: 'x' },
    ]) {
      const answer = await post(grant, basicOf(p.demo.client));
      expect([answer.status, answer.text]).toEqual([401, oauthEnvelope('invalid_request', 'invalid_grant')]);
      // Clients of OAuth would take a challenge for the client's own failure, and not read the error.
      expect(answer.headers.get('www-authenticate')).toBeNull();
      unstored(answer);
    }
  });
});

describe('the other refusals of a standard client', () => {
  it.each(['authorization_code', 'toString', '__proto__', 'Password'])(
    '7.2-03 D3-11: the unknown grant %s is unsupported',
    async (grant_type) => {
      const answer = await post({ grant_type }, basicOf(p.demo.client));
      expect([answer.status, answer.text]).toEqual([403, oauthEnvelope('invalid_request', 'unsupported_grant_type')]);
      unstored(answer);
    },
  );

  it('7.2-03 D3-11: a grant that the client has not is unauthorized', async () => {
    const client = await addClient(p, { grant_types: ['password'] });
    const answer = await post(CLIENT_CREDENTIALS, basicOf(client));
    expect([answer.status, answer.text]).toEqual([403, oauthEnvelope('invalid_request', 'unauthorized_client')]);
  });

  const guarded: [string, Parameters<typeof oauthEnvelope>[1], Parameters<typeof addClient>[1]][] = [
    ['mtls_required', 'invalid_client', { require_certificate: true, cert_fingerprint: 'ab' }],
    ['ip_not_allowed', 'access_denied', { allowed_ips: ['198.51.100.7'] }],
  ];

  it.each(guarded)('7.2-04 7.2-05 D3-11: %s is %s', async (message, error, settings) => {
    const client = await addClient(p, settings);
    const standard = await post(CLIENT_CREDENTIALS, basicOf(client));
    expect([standard.status, standard.text]).toEqual([403, oauthEnvelope(message, error)]);
    unstored(standard);
    const plain = await p.call('POST', TOKEN, { json: { ...CLIENT_CREDENTIALS, ...client } });
    expect([plain.status, plain.text]).toEqual([403, envelope(message)]);
  });

  it('7.2-06 D3-11 D3-16: past a limit it is temporarily_unavailable, with the headers of the limits, as a success is', async () => {
    const client = await addClient(p, { requests_per_hour: 1 });
    const first = await post(CLIENT_CREDENTIALS, basicOf(client));
    expect([first.status, first.headers.get('x-ratelimit-remaining')]).toEqual([200, '0']);
    const second = await post(CLIENT_CREDENTIALS, basicOf(client));
    expect([second.status, second.text]).toEqual([
      429,
      oauthEnvelope('rate_limit_exceeded', 'temporarily_unavailable'),
    ]);
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(second.headers.get('x-ratelimit-limit-hour')).toBe('1');
    unstored(second);
    const plain = await p.call('POST', TOKEN, { json: { ...CLIENT_CREDENTIALS, ...client } });
    expect([plain.status, plain.text]).toEqual([429, envelope('rate_limit_exceeded')]);
    unstored(plain);
  });

  it('D3-18: the twenty-first wrong secret in a minute is a 429, a correct one never', async () => {
    const client = await addClient(p);
    const wrong = { ...client, client_secret: 'wrong' };
    const answers: number[] = [];
    for (let attempt = 0; attempt < 21; attempt += 1) {
      answers.push((await post(CLIENT_CREDENTIALS, basicOf(wrong))).status);
    }
    expect(answers).toEqual([...Array(20).fill(401), 429]);
    const plain = await p.call('POST', TOKEN, { json: { ...CLIENT_CREDENTIALS, ...wrong } });
    expect([plain.status, plain.text]).toEqual([429, envelope('rate_limit_exceeded')]);
    for (const path of ['revoke', 'introspect']) {
      const answer = await postForm(p, `/v2/oauth/${path}`, { token: 'x' }, basicOf(wrong));
      expect([answer.status, answer.json.error]).toEqual([429, 'temporarily_unavailable']);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    }
    expect((await post(CLIENT_CREDENTIALS, basicOf(client))).status).toBe(200);
  });

  it('D3-11 D2-12: a part that is away is temporarily_unavailable, a fault server_error, and both tell no more', async () => {
    const { directory } = p.service.context;
    vi.spyOn(directory, 'authenticate').mockRejectedValueOnce(serviceUnavailable());
    const away = await post(CLIENT_CREDENTIALS, basicOf(p.demo.client));
    expect([away.status, away.text]).toEqual([503, oauthEnvelope('service_unavailable', 'temporarily_unavailable')]);
    expect(away.headers.get('retry-after')).toBe('1');
    vi.spyOn(directory, 'authenticate').mockRejectedValueOnce(new Error('select hash from client_secrets'));
    const fault = await post(CLIENT_CREDENTIALS, basicOf(p.demo.client));
    expect([fault.status, fault.text]).toEqual([500, oauthEnvelope('internal_error', 'server_error')]);
    unstored(away);
    unstored(fault);
  });
});
