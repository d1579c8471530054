import { createHash, randomUUID } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import type { Overrides } from '../../src/app/context.ts';
import { recordOf } from '../support/audit/records.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { PASSWORD, tokenStatus } from '../support/graphql/administration.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import {
  type Answer,
  type Portcullis,
  startOnSharedStores,
  startPortcullis,
  startReplica,
} from '../support/harness.ts';
import { addSupervisor } from '../support/oauth/cheap-hash.ts';
import { addClient, rows } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';
import { basicOf, oauthEnvelope } from '../support/oauth/requests.ts';
import { describeReal } from '../support/services/real.ts';

const MINUTE = 60_000;
const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin' };
const PATH = '/console/session';
const clock = { skewMs: 0 };
const overrides = { nowMs: () => Date.now() + clock.skewMs };

const lines: string[] = [];
const note = (fields: object, message: string) => void lines.push(JSON.stringify([fields, message]));
const log = { debug: note, info: note, warn: note, error: note };
const p = beforeTests(() =>
  startPortcullis({ env: { CONSOLE: 'on', TRUST_PROXY: '127.0.0.1' }, overrides: { ...overrides, log } }),
);

/** A browser at an address of its own, which keeps the cookies of the console. */
class Browser {
  cookie = '';
  readonly at: Portcullis;
  readonly address: string;

  constructor(at: Portcullis = p, address = `198.51.100.${Math.floor(Math.random() * 250)}`) {
    this.at = at;
    this.address = address;
  }

  async send(method: string, path: string, json: object, headers: object = SAME_ORIGIN): Promise<Answer> {
    const cookie = this.cookie === '' ? {} : { cookie: this.cookie };
    const sent = { ...cookie, 'x-forwarded-for': this.address, ...headers };
    const answer = await this.at.call(method, path, { json, headers: sent });
    const [set] = answer.headers.getSetCookie();
    if (set !== undefined) this.cookie = set.split(';')[0] ?? '';
    return answer;
  }

  signIn(username: string, password = 'secret', client_id = this.at.demo.console_client_id): Promise<Answer> {
    return this.send('POST', PATH, { client_id, username, password });
  }

  renew(): Promise<Answer> {
    return this.send('POST', `${PATH}/renew`, { client_id: this.at.demo.console_client_id });
  }

  signOut(): Promise<Answer> {
    return this.send('DELETE', PATH, { client_id: this.at.demo.console_client_id });
  }
}

const person = async (at: Portcullis = p) => (await addSupervisor(at, 'secret')).username;
const statusesOf = (answers: readonly Answer[]) => answers.map(({ status }) => status);
const byToken = (username: string, password: string) =>
  p.call('POST', '/v2/oauth/token', { json: { grant_type: 'password', ...p.demo.client, username, password } });

async function signedIn(at: Portcullis = p): Promise<{ browser: Browser; username: string; token: string }> {
  const username = await person(at);
  const browser = new Browser(at);
  const { status, json } = await browser.signIn(username);
  expect(status).toBe(200);
  return { browser, username, token: json.access_token };
}

describe('D3-40: a session of the console', () => {
  it('begins with a sign-in, is renewed after a reload, and ends with the sign-out', async () => {
    const { browser, username, token } = await signedIn();
    const renewed = await browser.renew();
    expect(renewed.headers.get('cache-control')).toBe('no-store');
    const { access_token, ...rest } = renewed.json;
    const { scope, created_at } = rest;
    expect(rest).toEqual({ expires_in: 900, token_type: 'Bearer', scope, created_at });
    expect(decodeJwt(access_token).sid).toBe(decodeJwt(token).sid);
    const query = '{ me { clientId tenantName tokenUse subject username } }';
    const { json } = await p.call('POST', '/graphql', { token: access_token, json: { query } });
    const sub = decodeJwt(access_token).sub;
    const clientId = p.demo.console_client_id;
    expect(json.data.me).toEqual({ clientId, tenantName: 'Demo', tokenUse: 'login', subject: sub, username });
    const before = browser.cookie;
    expect((await browser.signOut()).status).toBe(204);
    expect(browser.cookie).toBe(`portcullis-${clientId}=`);
    expect(await tokenStatus(p, access_token)).toBe(401);
    browser.cookie = before;
    expect((await browser.renew()).status).toBe(401);
    expect((await browser.signIn(username)).status).toBe(200);
  });

  it('expires after thirty minutes without a renewal', async () => {
    const { browser } = await signedIn();
    clock.skewMs += 29 * MINUTE;
    expect((await browser.renew()).status).toBe(200);
    clock.skewMs += 29 * MINUTE;
    expect((await browser.renew()).status).toBe(200);
    clock.skewMs += 30 * MINUTE;
    expect((await browser.renew()).status).toBe(401);
  });

  it.each([
    ['http://127.0.0.1', '', 'portcullis-ID=TOKEN; Max-Age=1800; Path=/console/session; HttpOnly; SameSite=Strict'],
    [
      'https://gate.example/custody',
      '/custody',
      '__Secure-portcullis-ID=TOKEN; Max-Age=1800; Path=/custody/console/session; HttpOnly; SameSite=Strict; Secure',
    ],
  ])('keeps its refresh token in an HttpOnly, SameSite=Strict cookie: %s', async (url, _path, set) => {
    await using at = await startPortcullis({ env: { PUBLIC_URL: url, CONSOLE: 'on' } });
    const client_id = at.demo.console_client_id;
    const headers = { origin: new URL(url).origin };
    const signIn = { client_id, username: await person(at), password: 'secret' };
    const answer = await at.call('POST', PATH, { json: signIn, headers });
    const [cookie = ''] = answer.headers.getSetCookie();
    const [, token = ''] = /=([\w.-]+)/.exec(cookie) ?? [];
    expect(cookie.replace(token, 'TOKEN').replace(client_id, 'ID')).toBe(set);
    expect(answer.text).not.toContain(token);
    const sent = { ...headers, cookie: cookie.split(';')[0] ?? '' };
    const out = await at.call('DELETE', PATH, { json: { client_id }, headers: sent });
    expect([out.status, out.headers.getSetCookie()[0]]).toEqual([
      204,
      cookie.replace(token, '').replace('Max-Age=1800', 'Max-Age=0'),
    ]);
  });

  it('returns 404 when the console is not served', async () => {
    await using at = await startPortcullis({ env: { CONSOLE: 'off' } });
    const browser = new Browser(at);
    const answers = [await browser.signIn('admin'), await browser.renew(), await browser.signOut()];
    expect(statusesOf(answers)).toEqual([404, 404, 404]);
  });

  it('is audited for the tenant as a login, without the password, the cookie and the tokens', async () => {
    const { browser, username, token } = await signedIn();
    const secrets = [token, browser.cookie.split('=')[1] ?? '', `canary-${randomUUID()}`];
    const ids = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    const headers = (at: number) => ({ ...SAME_ORIGIN, 'x-correlation-id': ids[at] });
    const client = { client_id: p.demo.console_client_id };
    await browser.send('POST', `${PATH}/renew`, client, headers(0));
    await browser.send('POST', PATH, { ...client, username, password: secrets[2] }, headers(1));
    await browser.send(
      'POST',
      PATH,
      { ...client, username, password: secrets[2], extra: '"' },
      { ...headers(2), origin: 'x' },
    );
    secrets.push(browser.cookie.split('=')[1] ?? '');
    await browser.send('DELETE', PATH, client, headers(3));
    const recorded = () =>
      rows(p).run((k) => k.selectFrom('audit_records').selectAll().where('correlation_id', 'in', ids));
    await vi.waitFor(async () => expect(await recorded()).toHaveLength(4), 10_000);
    const records = await recorded();
    for (const record of records) {
      expect(record).toMatchObject({ node_id: p.demo.node_id, is_api: false, request_body: null, response_body: null });
    }
    const shown = JSON.stringify([records, lines]);
    expect(secrets.filter((secret) => secret.length > 20)).toHaveLength(4);
    for (const secret of secrets) expect(shown).not.toContain(secret);
  });

  it('rejects HTTP Basic with 400, and is audited only for the tenant of the console client', async () => {
    const { browser, username } = await signedIn();
    const { other_node, console_client_id: client_id } = p.demo;
    const [cookie, ids] = [browser.cookie, [randomUUID(), randomUUID(), randomUUID(), randomUUID()]];
    const wrong = { client_id, username, password: 'wrong' };
    const send = (method: string, path: string, json: object, at: number, more: object) =>
      browser.send(method, path, json, { ...SAME_ORIGIN, 'x-correlation-id': ids[at], ...more });
    const answers: Answer[] = [];
    for (const authorization of [
      basicOf(other_node.client),
      basicOf(other_node.client).replace('Basic', 'bASIC'),
      'Basic',
    ])
      answers.push(
        await send('POST', PATH, wrong, 0, { authorization }),
        await send('POST', `${PATH}/renew`, { client_id }, 1, { authorization }),
        await send('DELETE', PATH, { client_id }, 2, { authorization }),
      );
    expect(new Set(statusesOf(answers))).toEqual(new Set([400]));
    expect(answers[0]?.json.error_description).toContain('Authorization must be left out');
    expect([(await send('POST', PATH, wrong, 3, {})).status, browser.cookie]).toEqual([401, cookie]);
    const { node_id } = await recordOf(p, ids[3] ?? '');
    expect(node_id).toBe(p.demo.node_id);
    const nodes = rows(p).run((k) =>
      k.selectFrom('audit_records').select('node_id').where('correlation_id', 'in', ids),
    );
    expect(new Set((await nodes).map((row) => row.node_id ?? node_id))).toEqual(new Set([node_id]));
    const nobody = { client_id: randomUUID(), username, password: 'wrong' };
    const id = randomUUID();
    await browser.send('POST', PATH, nobody, { ...SAME_ORIGIN, 'x-correlation-id': id });
    expect((await recordOf(p, id)).node_id).toBeNull();
  });
});

describe('D3-40: a request to the session endpoints', () => {
  const own = () => new URL(p.url).host;
  it.each<[string, () => Record<string, string>, boolean]>([
    ['names neither site nor origin', () => ({}), false],
    ['is of the same origin', () => SAME_ORIGIN, true],
    ['is of the same site', () => ({ 'sec-fetch-site': 'same-site' }), false],
    ['is of another site', () => ({ 'sec-fetch-site': 'cross-site' }), false],
    [
      'is of another site, with the gateway as origin',
      () => ({ 'sec-fetch-site': 'cross-site', origin: p.url }),
      false,
    ],
    ['is typed by the user', () => ({ 'sec-fetch-site': 'none' }), false],
    ['has the gateway as origin', () => ({ origin: `http://${own()}` }), true],
    ['has another origin', () => ({ origin: 'http://evil.example' }), false],
    ['has another port', () => ({ origin: 'http://127.0.0.1:1' }), false],
    ['has the host of the gateway as a prefix', () => ({ origin: `http://${own()}.evil.example` }), false],
    ['has an opaque origin', () => ({ origin: 'null' }), false],
  ])('is rejected unless it comes from the same origin: it %s', async (_case, headersOf, isAllowed) => {
    const { browser, username } = await signedIn();
    const client = { client_id: p.demo.console_client_id };
    const before = browser.cookie;
    const answers = [
      await browser.send('POST', `${PATH}/renew`, client, headersOf()),
      await browser.send('DELETE', PATH, client, headersOf()),
      await browser.send('POST', PATH, { ...client, username, password: 'secret' }, headersOf()),
    ];
    expect(statusesOf(answers)).toEqual(isAllowed ? [200, 204, 200] : [403, 403, 403]);
    expect(browser.cookie === before).toBe(!isAllowed);
  });
});

describe('D3-40: a console client', () => {
  it('cannot use other endpoints, and other tokens cannot renew a console session', async () => {
    const { browser, username, token } = await signedIn();
    const client_id = p.demo.console_client_id;
    const [, refresh_token = ''] = browser.cookie.split('=');
    const secret = p.demo.client.client_secret;
    const grants = [
      { grant_type: 'client_credentials' },
      { grant_type: 'password', username, password: 'secret' },
      { grant_type: 'refresh_token', refresh_token },
    ];
    for (const client_secret of ['x', secret])
      for (const grant of grants) {
        const answer = await p.call('POST', '/v2/oauth/token', { json: { ...grant, client_id, client_secret } });
        expect([answer.status, answer.text]).toEqual([401, envelope('invalid_request')]);
      }
    for (const path of ['/v2/oauth/revoke', '/v2/oauth/introspect'])
      expect((await p.call('POST', path, { json: { token, client_id, client_secret: 'x' } })).status).toBe(401);
    const stolen = { grant_type: 'refresh_token', ...p.demo.client, refresh_token };
    expect((await p.call('POST', '/v2/oauth/token', { json: stolen })).status).toBe(401);
    const other = (await byToken(username, 'secret')).json;
    for (const wrong of [token, other.refresh_token, other.access_token, 'x', '']) {
      browser.cookie = `portcullis-${client_id}=${wrong}`;
      expect((await browser.renew()).status).toBe(401);
      expect((await browser.signOut()).status).toBe(204);
    }
    expect(await tokenStatus(p, other.access_token)).toBe(200);
  });

  it('must be an active console client of the node; otherwise sign-in returns 401 with the reason', async () => {
    const username = await person();
    const disabled = await addClient(p, { is_console: true, status: 'disabled' });
    const ofOther = await addClient(p, { is_console: true, node_id: p.demo.other_node.node_id });
    for (const [id, error] of [
      [randomUUID(), 'invalid_client'],
      [p.demo.client.client_id, 'invalid_client'],
      [disabled.client_id, 'invalid_client'],
      [ofOther.client_id, 'invalid_grant'],
    ] as const) {
      const { status, text } = await new Browser().signIn(username, 'secret', id);
      expect([status, text]).toEqual([401, oauthEnvelope('invalid_request', error)]);
    }
    expect((await new Browser().signIn(username, 'secret', 'x')).status).toBe(400);
  });

  it('is created without a secret or limits, and cannot get them or become another kind of client', async () => {
    const token = await p.loginToken();
    const run = async (query: string) =>
      (await p.call('POST', '/graphql', { token, json: { query } })).json.data.result;
    const input = (more: string) => `{name: "Desk", grantTypes: [PASSWORD], scopes: [], ${more}}`;
    const create = (more: string) =>
      run(`mutation { result: createClient(input: ${input(more)}) { __typename
        ... on CreatedClient { clientSecret client { id isConsole grantTypes refreshReuseDetection } }
        ... on ValidationError { issues { path } } } }`);
    const made = await create('isConsole: true');
    const grantTypes = ['PASSWORD', 'REFRESH_TOKEN'];
    expect(made).toMatchObject({
      clientSecret: '',
      client: { isConsole: true, grantTypes, refreshReuseDetection: true },
    });
    const invalid = { __typename: 'ValidationError', issues: [{ path: ['isConsole'] }] };
    for (const limit of [
      'allowedIps: ["192.0.2.1"]',
      'requireCertificate: true',
      `certFingerprint: "${'aa'.repeat(32)}"`,
      'monthlyLimit: 5',
      'rateLimit: {requestsPerMinute: 5}',
    ])
      expect(await create(`isConsole: true, ${limit}`)).toEqual(invalid);
    const update = (id: string, more: string) =>
      run(`mutation { result: updateClient(id: "${id}", input: ${input(more)}) { __typename
        ... on ValidationError { issues { path } } } }`);
    expect(await update(made.client.id, 'isConsole: false')).toEqual(invalid);
    expect(await update(made.client.id, 'isConsole: true')).toEqual({ __typename: 'Client' });
    expect(await update((await addClient(p)).client_id, 'isConsole: true')).toEqual(invalid);
    const rotate = `mutation { result: rotateClientSecret(id: "${made.client.id}") { __typename } }`;
    expect(await run(rotate)).toEqual({ __typename: 'ValidationError' });
    const browser = new Browser();
    expect((await browser.signIn(await person(), 'secret', made.client.id)).status).toBe(200);
  });
});

describe('D3-40: invalid cookies at the console', () => {
  const client_id = () => p.demo.console_client_id;
  const keyId = () => decodeProtectedHeader(cookieValue(oneSession)).kid;
  let oneSession: Browser;
  beforeAll(async () => {
    oneSession = (await signedIn()).browser;
  });
  const cookieValue = ({ cookie }: Browser) => cookie.split('=')[1] ?? '';
  const cookies = (...values: string[]) => values.map((value) => `portcullis-${client_id()}=${value}`).join('; ');
  /** A token with the id of our key, and another's signature. */
  const forged = (n: number) =>
    signed(p, apiClaims(p, { n, client_id: client_id(), token_use: 'refresh' }), {
      secret: 'not ours',
      header: { kid: keyId() },
    });
  const junk: [name: string, value: (n: number) => string][] = [
    ['is not a token', (n) => `x${n}`],
    ['is empty', () => ''],
    ['has no kid', (n) => signed(p, apiClaims(p, { n }), { secret: 'not ours' })],
    ['has another kid', (n) => signed(p, apiClaims(p, { n }), { secret: 'not ours', header: { kid: `user.${n}` } })],
    ['has a legacy kid', (n) => signed(p, apiClaims(p, { n }), { secret: 'x', header: { kid: legacyKeyId() } })],
    [
      'has a kid that is not a string',
      (n) => signed(p, apiClaims(p, { n }), { secret: 'x', header: { kid: [keyId()] } }),
    ],
    ['has a second spelling of its signature', (n) => `${forged(n).slice(0, -1)}=`],
    ['has the kid of a member of every object', (n) => signed(p, { n }, { secret: 'x', header: { kid: 'toString' } })],
  ];
  const legacyKeyId = () => {
    const hash = createHash('sha256').update('portcullis key id').update(p.service.context.secrets.jwt.legacy.current);
    return `legacy.${hash.digest('hex').slice(0, 16)}`;
  };

  /** Does something, and tells how many signatures it had checked. */
  async function checks(work: () => Promise<unknown>): Promise<number> {
    const verifying = vi.spyOn(crypto.subtle, 'verify');
    await work();
    const { length } = verifying.mock.calls;
    verifying.mockRestore();
    return length;
  }

  it.each(inTurn(junk, 2, 0))(
    'cause no HMAC and do not hide a valid session: cookies whose value %s',
    async (_name, value) => {
      const many = Array.from({ length: 40 }, (_, n) => value(n));
      const stranger = new Browser(p, '192.0.2.40');
      stranger.cookie = cookies(...many);
      for (const send of [() => stranger.renew(), () => stranger.signOut()]) expect(await checks(send)).toBe(0);
      const { browser } = await signedIn();
      browser.cookie = cookies(...many.slice(20), cookieValue(browser), ...many.slice(20));
      expect((await browser.renew()).status).toBe(200);
    },
  );

  it('cause at most four HMACs when they have the current kid, and one when they are the same', async () => {
    const stranger = new Browser(p, '192.0.2.41');
    const values = Array.from({ length: 20 }, (_, n) => forged(n));
    stranger.cookie = cookies(...values);
    expect(await checks(() => stranger.signOut())).toBe(4);
    stranger.cookie = cookies(...Array<string>(20).fill(forged(99)));
    expect(await checks(() => stranger.renew())).toBe(1);
    const before = new Browser(p, '192.0.2.42');
    before.cookie = stranger.cookie;
    expect(await checks(() => before.signIn('nobody', 'wrong'))).toBe(0);
  });

  it.each([
    ['before them', (real: string, wrong: string[]) => [real, ...wrong]],
    ['after them', (real: string, wrong: string[]) => [...wrong, real]],
    ['among three of them', (real: string, wrong: string[]) => [...wrong.slice(0, 1), real, ...wrong.slice(1, 3)]],
    ['twice', (real: string, wrong: string[]) => [real, ...wrong, real]],
  ])('do not hide a valid session cookie that comes %s', async (_where, ordered) => {
    const { browser } = await signedIn();
    browser.cookie = cookies(
      ...ordered(
        cookieValue(browser),
        Array.from({ length: 12 }, (_, n) => forged(n)),
      ),
    );
    expect((await browser.renew()).status).toBe(200);
    expect((await browser.renew()).status).toBe(200);
    expect((await browser.signOut()).status).toBe(204);
  });

  it('are rejected with 429 after twenty requests from one address, which can still sign in', async () => {
    const stranger = new Browser(p, '192.0.2.43');
    const { browser, username } = await signedIn();
    const statuses: number[] = [];
    for (let count = 0; count < 22; count++) {
      stranger.cookie = cookies(forged(1_000 + count));
      statuses.push((await (count % 2 ? stranger.signOut() : stranger.renew())).status);
    }
    expect(statuses.slice(0, 20).every((status) => status === 401 || status === 204)).toBe(true);
    expect(statuses.slice(20)).toEqual([429, 429]);
    stranger.cookie = cookies(forged(2_000));
    expect(await checks(() => stranger.renew())).toBe(0);
    expect((await browser.renew()).status).toBe(200);
    stranger.cookie = '';
    expect((await stranger.signIn(username)).status).toBe(200);
  });
});

it('D3-40: the page of the sign-in learns the tenant of its client and what locks a username, and of no other client anything', async () => {
  const told = await p.call('GET', `/console/tenants/${p.demo.console_client_id}`);
  expect([told.status, told.json]).toEqual([200, { tenant_name: 'Demo', login_lock: { failures: 5, seconds: 900 } }]);
  for (const id of [p.demo.client.client_id, randomUUID()])
    expect((await p.call('GET', `/console/tenants/${id}`)).status).toBe(404);
});

describe('D3-40: wrong passwords at the console', () => {
  const wrong = (browser: Browser, username: string, times: number) =>
    Promise.all(Array.from({ length: times }, () => browser.signIn(username, 'wrong')));

  it('lock the address and username pair after five, and no other pair', async () => {
    const [username, other] = [await person(), await person()];
    const [browser, elsewhere] = [new Browser(p, '192.0.2.1'), new Browser(p, '192.0.2.2')];
    const failed = await wrong(browser, username, 4);
    expect((await browser.signIn(username)).status).toBe(200);
    failed.push(...(await wrong(browser, username, 5)));
    failed.push(await browser.signIn(username), await browser.signIn(`nobody-${username}`));
    const texts = new Set(failed.map(({ status, text }) => `${status} ${text}`));
    expect([...texts]).toEqual([`401 ${oauthEnvelope('invalid_request', 'invalid_grant')}`]);
    const free = [await elsewhere.signIn(username), await browser.signIn(other), await byToken(username, 'secret')];
    expect(statusesOf(free)).toEqual([200, 200, 200]);
    clock.skewMs += 15 * MINUTE;
    expect((await browser.signIn(username)).status).toBe(200);
  });

  it('are counted separately from those at the token endpoint', async () => {
    const username = await person();
    for (let time = 0; time < 5; time++) await byToken(username, 'wrong');
    expect((await byToken(username, 'secret')).status).toBe(401);
    expect((await new Browser().signIn(username)).status).toBe(200);
    expect((await byToken(username, 'secret')).status).toBe(401);
  });

  it('lock a username at the console after a hundred from many addresses, until it is unlocked', async () => {
    const { id, username } = await addSupervisor(p, 'secret');
    const browsers = Array.from({ length: 25 }, (_, index) => new Browser(p, `203.0.113.${index}`));
    // Not all at once: those that no queue of hashes has room for would not count.
    for (let at = 0; at < browsers.length; at += 5)
      await Promise.all(browsers.slice(at, at + 5).map((browser) => wrong(browser, username, 4)));
    const fresh = new Browser(p, '203.0.113.100');
    expect((await fresh.signIn(username)).status).toBe(401);
    expect((await byToken(username, 'secret')).status).toBe(200);
    const query = `mutation { unlockSupervisor(id: "${id}") { ... on Supervisor { lockedUntil } } }`;
    const { json } = await p.call('POST', '/graphql', { token: await p.loginToken(), json: { query } });
    expect(json.data.unlockSupervisor).toEqual({ lockedUntil: null });
    expect((await fresh.signIn(username)).status).toBe(200);
  });

  // In a quick run those of one username: an unknown one is refused by as many hashes.
  it.each(inTurn(['of unknown usernames', 'of the same username'], 2, 1))(
    'many wrong passwords at once, %s, do not delay the token endpoint',
    async (which) => {
      const username = await person();
      let pending = 200;
      const sent = Array.from({ length: pending }, async (_, index) => {
        const name = which === 'of the same username' ? username : `nobody-${index}`;
        const { status } = await new Browser(p, `10.9.${which.length}.${index % 250}`).signIn(name, 'wrong');
        pending -= 1;
        return status;
      });
      const logins: number[] = [];
      while (pending > 0) logins.push((await byToken(username, 'secret')).status);
      expect([...new Set(logins)]).toEqual([200]);
      expect([...new Set(await Promise.all(sent))].toSorted()).toEqual([401, 503]);
    },
  );

  it('are rejected with 429 after twenty in a minute from one network, and so is the correct password', async () => {
    const usernames = await Promise.all(Array.from({ length: 30 }, () => person()));
    const network = (host: string) => new Browser(p, `2001:db8:1:2::${host}`);
    const answers = await Promise.all(
      usernames.map((username, index) => network(String(index)).signIn(username, 'wrong')),
    );
    expect(statusesOf(answers).toSorted()).toEqual([...Array(20).fill(401), ...Array(10).fill(429)]);
    const [username = ''] = usernames;
    const refused = await network('ff').signIn(username);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await new Browser(p, '2001:db8:1:3::1').signIn(username)).status).toBe(200);
    clock.skewMs += MINUTE;
    expect((await network('ff').signIn(username)).status).toBe(200);
  });
});

/** What holds of sessions of the console at either of two gateways. */
function sessionContract(name: string, start: (overrides: Overrides) => Promise<readonly [Portcullis, Portcullis]>) {
  describe(`D3-40: sessions at two gateways (${name})`, () => {
    let one: Portcullis;
    let two: Portcullis;
    beforeAll(async () => {
      [one, two] = await start(overrides);
    });
    afterAll(async () => {
      await two[Symbol.asyncDispose]();
      if (two !== one) await one[Symbol.asyncDispose]();
    });

    async function twice() {
      const { browser, token } = await signedIn(one);
      const other = new Browser(two);
      other.cookie = browser.cookie;
      return { browser, other, token };
    }

    it('can be renewed at the other gateway', async () => {
      const { other } = await twice();
      expect(statusesOf([await other.renew(), await other.renew()])).toEqual([200, 200]);
    });

    it('survive two tabs that renew concurrently, with any of their cookies', async () => {
      const { browser, other } = await twice();
      const both = await Promise.all([browser.renew(), other.renew(), browser.renew()]);
      expect(statusesOf(both)).toEqual([200, 200, 200]);
      // There is one chain, and not one for each.
      expect(other.cookie).toBe(browser.cookie);
      clock.skewMs += 14 * MINUTE;
      expect(statusesOf([await browser.renew(), await other.renew()])).toEqual([200, 200]);
    });

    it('end for both when a stolen cookie is renewed at the same moment as the original', async () => {
      const { browser, other } = await twice();
      await Promise.all([browser.renew(), other.renew()]);
      clock.skewMs += 14 * MINUTE;
      const { access_token } = (await browser.renew()).json;
      clock.skewMs += MINUTE;
      expect((await other.renew()).status).toBe(401);
      await vi.waitFor(async () => expect(await tokenStatus(one, access_token)).toBe(401), 5_000);
      expect((await browser.renew()).status).toBe(401);
    });

    it.each([
      ['the page renews after the thief', 'thief'],
      ['the thief renews after the page', 'page'],
    ])('end for both when a stolen cookie is used: %s', async (_case, first) => {
      const { browser, other } = await twice();
      const [early, late] = first === 'thief' ? [other, browser] : [browser, other];
      const { access_token } = (await early.renew()).json;
      clock.skewMs += MINUTE;
      expect((await late.renew()).status).toBe(401);
      await vi.waitFor(async () => expect(await tokenStatus(one, access_token)).toBe(401), 5_000);
      expect(statusesOf([await early.renew(), await late.renew()])).toEqual([401, 401]);
    });

    it('never reuse the cookie of the request, and are not renewed with two cookies', async () => {
      const { browser: attacker } = await twice();
      const victim = new Browser(two);
      victim.cookie = attacker.cookie;
      expect((await victim.signIn(await person(two))).status).toBe(200);
      expect(victim.cookie).not.toBe(attacker.cookie);
      expect((await attacker.renew()).status).toBe(401);
      const { browser: other } = await twice();
      victim.cookie = `${other.cookie}; ${victim.cookie}`;
      expect((await victim.renew()).status).toBe(401);
    });

    it('all end with a sign-out that sends several cookies', async () => {
      const [first, second] = [await signedIn(one), await signedIn(one)];
      const browser = new Browser(two);
      browser.cookie = `${first.browser.cookie}; ${second.browser.cookie}`;
      expect((await browser.signOut()).status).toBe(204);
      expect(statusesOf([await first.browser.renew(), await second.browser.renew()])).toEqual([401, 401]);
    });

    it('end at both gateways when they are revoked', async () => {
      const { browser, other, token } = await twice();
      const query = `mutation { revokeSessions(supervisorId: "${decodeJwt(token).sub}") { __typename } }`;
      const { json } = await one.call('POST', '/graphql', { token: await one.loginToken(), json: { query } });
      expect(json.data.revokeSessions).toEqual({ __typename: 'Supervisor' });
      await vi.waitFor(async () => expect(await tokenStatus(two, token)).toBe(401), 5_000);
      expect(statusesOf([await browser.renew(), await other.renew()])).toEqual([401, 401]);
    });
  });
}

// In a quick run the gateways share a cache, if there is one: the tests above have a gateway with its own.
if (inject('isThorough') || !inject('addresses').redis)
  sessionContract('embedded', async (given) => {
    const at = await startPortcullis({ env: { CONSOLE: 'on' }, overrides: given });
    return [at, at];
  });
describeReal('postgres', 'with servers', () => {
  describeReal('redis', 'and a cache', () => {
    sessionContract('servers', async (given) => {
      const first = await startOnSharedStores({ overrides: given, env: { CONSOLE: 'on' } });
      return [first, await startReplica(first, { overrides: given })];
    });
  });
});

describe('D3-40: a signed-in supervisor', () => {
  const change = async (token: string, current: string, next: string, unknown: object = {}): Promise<Answer> =>
    p.call('POST', `/graphql?${new URLSearchParams({ ...unknown })}`, {
      token,
      json: {
        query: `mutation ($a: String!) { result: changeOwnPassword(current: "${current}", new: $a) { __typename
          ... on ValidationError { issues { path } } } }`,
        variables: { a: next, ...unknown },
      },
    });
  const outcome = async (...given: Parameters<typeof change>) => (await change(...given)).json.data.result;

  it('can change the password, which ends all of their sessions', async () => {
    const { browser, username, token } = await signedIn();
    expect(await outcome(token, 'secret', 'short')).toMatchObject({ issues: [{ path: ['new'] }] });
    expect(await outcome(token, 'wrong', PASSWORD)).toMatchObject({ issues: [{ path: ['current'] }] });
    expect(await outcome(token, 'secret', PASSWORD)).toEqual({ __typename: 'Supervisor' });
    expect([await tokenStatus(p, token), (await browser.renew()).status]).toEqual([401, 401]);
    expect(statusesOf([await browser.signIn(username), await browser.signIn(username, PASSWORD)])).toEqual([401, 200]);
    expect(await outcome(await p.clientToken(), 'secret', PASSWORD)).toEqual({ __typename: 'NotFoundError' });
  });

  it('five wrong current passwords lock the change of the password, so a stolen token cannot guess it', async () => {
    const { token, username } = await signedIn();
    for (let time = 0; time < 5; time++) await change(token, 'wrong', PASSWORD);
    expect(await outcome(token, 'secret', PASSWORD)).toMatchObject({ issues: [{ path: ['current'] }] });
    expect((await new Browser().signIn(username)).status).toBe(200);
  });

  it('can end all of their sessions, including those of the token endpoint', async () => {
    const { browser, username, token } = await signedIn();
    const other = (await byToken(username, 'secret')).json.access_token;
    const query = 'mutation { endOwnSessions { __typename } }';
    const ended = await p.call('POST', '/graphql', { token, json: { query } });
    expect(ended.json.data.endOwnSessions).toEqual({ __typename: 'Supervisor' });
    expect([await tokenStatus(p, token), await tokenStatus(p, other)]).toEqual([401, 401]);
    expect((await browser.renew()).status).toBe(401);
    const ofClient = await p.call('POST', '/graphql', { token: await p.clientToken(), json: { query } });
    expect(ofClient.json.data.endOwnSessions).toEqual({ __typename: 'NotFoundError' });
  });

  it.each([
    ['that another issuer signed', 'legacy', () => ({})],
    ['that claims to be of a login', 'legacy', (sid: unknown) => ({ token_use: 'login', sid })],
    ['without a login', 'user', () => ({})],
  ] as const)('is not affected by a password change or logout with a token %s', async (_case, tokenClass, claims) => {
    const { token, username } = await signedIn();
    const { sub, sid } = decodeJwt(token);
    const { current: secret } = p.service.context.secrets.jwt[tokenClass];
    const given = signed(p, apiClaims(p, { sub, ...claims(sid) }), { secret });
    const query = 'mutation { endOwnSessions { __typename } }';
    const ended = await p.call('POST', '/graphql', { token: given, json: { query } });
    expect(ended.json.data.endOwnSessions).toEqual({ __typename: 'NotFoundError' });
    expect(await outcome(given, 'secret', PASSWORD)).toEqual({ __typename: 'NotFoundError' });
    expect([await tokenStatus(p, token), (await new Browser().signIn(username)).status]).toEqual([200, 200]);
  });

  it('the audit record of a password change contains neither password', async () => {
    const { token } = await signedIn();
    const [current, next] = [`canary-${randomUUID()}`, `canary-${randomUUID()}`];
    const misplaced = { current, new: next };
    const id = (await change(token, current, next, misplaced)).headers.get('x-correlation-id') ?? '';
    const recorded = () =>
      rows(p).run((k) => k.selectFrom('audit_records').selectAll().where('correlation_id', '=', id));
    await vi.waitFor(async () => expect(await recorded()).toHaveLength(1), 10_000);
    const shown = JSON.stringify(await recorded());
    expect(shown).toContain('changeOwnPassword');
    for (const secret of [current, next]) expect(shown).not.toContain(secret);
  });
});
