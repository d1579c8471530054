import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { envelope } from '../support/gateway/envelopes.ts';
import { type Answer, type Portcullis, startPortcullis } from '../support/harness.ts';
import { addClient, addSecret, updateClient } from '../support/oauth/clients.ts';

let p: Portcullis;
beforeAll(async () => {
  p = await startPortcullis();
});
afterAll(() => p[Symbol.asyncDispose]());

function ask(json: object, headers: Record<string, string> = {}): Promise<Answer> {
  return p.call('POST', '/v2/oauth/token', { json, headers });
}

function refused(answer: Answer, status: number, message = 'invalid_request'): void {
  expect(answer.text).toBe(envelope(message));
  expect(answer.status).toBe(status);
  expect(Object.keys(answer.json)).toEqual(['code', 'domain', 'message']);
}

const absent = [undefined, null, ''];
const misshapen = [7, true, {}, ['x'], 'a\u0000b', 'a\ud800b'];

/** The member that is missing or malformed, of a request that is otherwise good. Bodies as a whole are in test/gateway/bad-input.test.ts. */
const members: [string, string, unknown[]][] = [
  ['client_credentials', 'grant_type', [...absent, ...misshapen]],
  ['client_credentials', 'client_id', [...absent, ...misshapen, 'demo', `{${randomUUID()}}`, randomUUID().slice(1)]],
  ['client_credentials', 'client_secret', [...absent, ...misshapen]],
  ['password', 'client_id', [...absent, 'demo']],
  ['password', 'client_secret', absent],
  ['password', 'username', [...absent, ...misshapen]],
  ['password', 'password', [...absent, ...misshapen]],
  ['refresh_token', 'client_id', [...absent, 'demo']],
  ['refresh_token', 'client_secret', absent],
  ['refresh_token', 'refresh_token', [...absent, ...misshapen]],
];

describe('400 invalid_request', () => {
  it.each(members)('7.2-01 2.3-01 4.1-02: %s with a missing or malformed %s', async (grantType, member, values) => {
    const good = { grant_type: grantType, ...p.demo.client, ...p.demo.supervisor, refresh_token: 'x' };
    for (const value of values) refused(await ask({ ...good, [member]: value }), 400);
  });
});

describe('401 invalid_request', () => {
  it('7.2-02 2.3-01 5.3-01: an unknown client, a wrong secret, the secret of another, a dead one: the same bytes', async () => {
    const { client_id, client_secret } = p.demo.client;
    const dead = await addSecret(p, client_id, p.demo.node_id, '2020-01-01T00:00:00Z');
    const faults = [
      { client_id: randomUUID(), client_secret },
      { client_id, client_secret: `${client_secret}x` },
      { client_id, client_secret: client_secret.toUpperCase() },
      { client_id, client_secret: p.demo.other_node.client.client_secret },
      { client_id: p.demo.other_node.client.client_id, client_secret },
      { client_id, client_secret: dead },
    ];
    for (const grantType of ['client_credentials', 'password', 'refresh_token', 'unheard_of']) {
      for (const fault of faults) {
        refused(await ask({ grant_type: grantType, ...fault, ...p.demo.supervisor, refresh_token: 'x' }), 401);
      }
    }
  });

  it('5.3-01: two live secrets of a client are both good', async () => {
    const { client_id } = p.demo.client;
    const second = await addSecret(p, client_id, p.demo.node_id, '2999-01-01T00:00:00Z');
    for (const client_secret of [second, p.demo.client.client_secret]) {
      expect((await ask({ grant_type: 'client_credentials', client_id, client_secret })).status).toBe(200);
    }
  });

  it('7.2-02: a disabled client', async () => {
    const client = await addClient(p);
    await updateClient(p, client.client_id, { status: 'disabled' });
    refused(await ask({ grant_type: 'client_credentials', ...client }), 401);
  });

  it('5.2-02: the same name at another node is another supervisor', async () => {
    const { client, supervisor } = p.demo.other_node;
    expect((await ask({ grant_type: 'password', ...client, ...supervisor })).status).toBe(200);
    refused(await ask({ grant_type: 'password', ...client, ...p.demo.supervisor }), 401);
    const upper = { ...supervisor, username: supervisor.username.toUpperCase() };
    expect((await ask({ grant_type: 'password', ...client, ...upper })).status).toBe(200);
  });
});

describe('403 invalid_request', () => {
  it.each([
    ['password', ['client_credentials', 'refresh_token']],
    ['client_credentials', ['password', 'refresh_token']],
    ['refresh_token', ['password', 'client_credentials']],
    ['client_credentials', []],
  ])('7.2-03 5.2-05: %s by a client that has %j', async (grantType, grants) => {
    const client = await addClient(p, { grant_types: grants });
    refused(await ask({ grant_type: grantType, ...client, ...p.demo.supervisor, refresh_token: 'x' }), 403);
  });

  it('7.2-03: an unknown grant', async () => {
    for (const grantType of ['authorization_code', 'Password', 'toString', '__proto__', 'urn:ietf:params:oauth:x']) {
      refused(await ask({ grant_type: grantType, ...p.demo.client }), 403);
    }
  });
});

describe('what is answered first', () => {
  it('D3-10 7.2-01 7.2-02 7.2-03 7.2-04 7.2-05: each step refuses with every later one wrong too', async () => {
    const settings = { require_certificate: true, cert_fingerprint: 'ab:cd', allowed_ips: ['198.51.100.7'] };
    const client = await addClient(p, { ...settings, grant_types: ['client_credentials'] });
    const login = { grant_type: 'password', username: 'nobody', password: 'wrong' };
    const certificate = { 'ssl-client-fingerprint': 'ab:cd' };
    const address = { ...certificate, 'x-forwarded-for': '198.51.100.7' };
    const wrongSecret = { ...client, client_secret: 'wrong' };
    refused(await ask({ ...login, ...wrongSecret, username: undefined }), 400);
    refused(await ask({ ...login, ...wrongSecret }), 401);
    refused(await ask({ ...login, ...client }), 403, 'mtls_required');
    refused(await ask({ ...login, ...client }, certificate), 403, 'ip_not_allowed');
    const { runs } = p.service.context.passwords;
    refused(await ask({ ...login, ...client }, address), 403);
    expect(p.service.context.passwords.runs).toBe(runs);
    await updateClient(p, client.client_id, { grant_types: ['password'] });
    refused(await ask({ ...login, ...client }, address), 401);
    expect((await ask({ ...login, ...client, ...p.demo.supervisor }, address)).status).toBe(200);
  });
});
