import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Portcullis, startPortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';
import { basicOf, oauthEnvelope, postForm } from '../support/oauth/requests.ts';

let p: Portcullis;
beforeAll(async () => {
  p = await startPortcullis();
});
afterAll(() => p[Symbol.asyncDispose]());

describe.each(['/v2/oauth/revoke', '/v2/oauth/introspect'])('%s refuses', (path) => {
  const refusal = (answer: Answer) => [answer.status, answer.text];

  it('D3-12 D3-11: a caller without credentials, or with wrong ones, by 401', async () => {
    const expected = [401, oauthEnvelope('invalid_request', 'invalid_client')];
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
      expect(refusal(answer)).toEqual(expected);
      expect(answer.headers.get('www-authenticate')).toBe('Basic realm="portcullis", charset="UTF-8"');
      expect(answer.headers.get('cache-control')).toBe('no-store');
    }
    const wrong = await p.call('POST', path, { json: { token: 'x', client_id, client_secret: 'wrong' } });
    expect(refusal(wrong)).toEqual(expected);
  });

  it('D3-12 D3-29: a token that is missing or malformed, or a second authentication, by 400 that names it', async () => {
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

  it('D3-13 D3-16: whom the guards of the client refuse, and counts the call', async () => {
    const barred = await addClient(p, { allowed_ips: ['198.51.100.7'] });
    expect(refusal(await postForm(p, path, { token: 'x' }, basicOf(barred)))).toEqual([
      403,
      oauthEnvelope('ip_not_allowed', 'access_denied'),
    ]);
    const limited = await addClient(p, { requests_per_hour: 1 });
    const first = await postForm(p, path, { token: 'x' }, basicOf(limited));
    expect([first.status, first.headers.get('x-ratelimit-remaining')]).toEqual([200, '0']);
    const second = await postForm(p, path, { token: 'x' }, basicOf(limited));
    expect([second.status, second.json.message, second.json.error]).toEqual([
      429,
      'rate_limit_exceeded',
      'temporarily_unavailable',
    ]);
  });
});
