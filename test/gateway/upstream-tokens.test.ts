import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { PatchClientDocument, SetClientStatusDocument } from '../graphql/generated/graphql.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import {
  LASTING,
  LASTING_ENDPOINTS,
  type Lasting,
  type LastingService,
  last,
  startLastingService,
} from '../support/gateway/lasting.ts';
import { createdClient, loginOfDemo, operate } from '../support/graphql/administration.ts';
import { type Portcullis, startPortcullis, startReplica } from '../support/harness.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';
import { describeReal } from '../support/services/real.ts';

/** How long a token is good, in s. */
const GOOD_S = 5;
const CUT = /^HTTP\/1\.1 (?:101|200) /;
const REFUSED = /^HTTP\/1\.1 401 [\s\S]*error_description="the token has (?:expired|been revoked)"/;
const NOT_ALLOWED = /^HTTP\/1\.1 403 [\s\S]*"ip_not_allowed"/;

describeReal('postgres', 'long requests to a remote service', () => {
  const stack = new AsyncDisposableStack();
  let service: LastingService;
  let p: Portcullis;
  let replica: Portcullis;
  let admin: string;
  const open: Lasting[] = [];

  beforeAll(async () => {
    service = stack.use(await startLastingService());
    const file = stack.use(await gatewayFile({ lasting: { at: service.url, max_body_bytes: 0 } }, LASTING_ENDPOINTS));
    p = stack.use(await startPortcullis({ env: { GATEWAY_CONFIG: file.path } }));
    replica = stack.use(await startReplica(p));
    admin = await p.clientToken();
  });
  afterEach(async () => {
    for (const { socket } of open.splice(0)) socket.destroy();
    await vi.waitFor(() => expect([...service.open].map(({ url }) => url)).toEqual([]));
    // The gateway leaves the watch when it has seen its own end of the connection closed, after the service has.
    await vi.waitFor(() => expect(replica.service.context.watch.size).toBe(0));
  });
  afterAll(() => stack.disposeAsync());

  /** A token that is good until every request has arrived, also on a machine in use. */
  const expiring = (secret?: string) =>
    signed(p, apiClaims(p, { exp: Math.floor(Date.now() / 1_000) + GOOD_S }), secret === undefined ? {} : { secret });

  /** Every kind of request that lasts, once all of them have arrived. */
  async function lastAll(token: string): Promise<Lasting[]> {
    const before = service.arrived;
    const all = LASTING.map((kind) => last(replica.url, token, kind));
    open.push(...all);
    await vi.waitFor(() => expect(service.arrived).toBe(before + all.length));
    return all;
  }

  async function ended(all: readonly Lasting[], refused = REFUSED): Promise<void> {
    await vi.waitFor(() =>
      expect(all.filter(({ closedAt }) => closedAt === undefined).map(({ kind }) => kind)).toEqual([]),
    );
    for (const { kind, text } of all)
      expect([kind, text]).toEqual([kind, expect.stringMatching(kind.match(/upload|poll/) ? refused : CUT)]);
    for (const { text } of all) expect(text).not.toMatch(/\n0\r\n\r\n$/);
  }

  it('D2-29: end when their token expires, of each class', async () => {
    const all: Lasting[] = [];
    for (const tokenClass of ['user', 'legacy', 'discover'] as const)
      all.push(...(await lastAll(expiring(p.service.context.secrets.jwt[tokenClass].current))));
    await ended(all);
  });

  it('D2-29 D3-07: end when their client is disabled on another process, while other clients continue', async () => {
    const { client, credentials } = await createdClient(p, admin, { scopes: ['accounts:read'] });
    const others = await lastAll(admin);
    const all = await lastAll(await p.clientToken(credentials));
    await operate(p, admin, SetClientStatusDocument, { id: client.id, status: 'DISABLED' as const });
    await ended(all);
    expect(others.filter(({ closedAt }) => closedAt !== undefined)).toEqual([]);
  });

  it('D2-29 5.3-03: end when their client is no longer allowed their address, while logins through it continue', async () => {
    const settings = { scopes: ['accounts:read'], grantTypes: ['CLIENT_CREDENTIALS' as const, 'PASSWORD' as const] };
    const { client, credentials } = await createdClient(p, admin, settings);
    const others = await lastAll((await loginOfDemo(p, credentials)).access_token);
    const all = await lastAll(await p.clientToken(credentials));
    await operate(p, admin, PatchClientDocument, { id: client.id, input: { allowedIps: ['203.0.113.9'] } });
    await ended(all, NOT_ALLOWED);
    expect(others.filter(({ closedAt }) => closedAt !== undefined)).toEqual([]);
  });

  it('D2-29: a request that the service has received in full is answered, though its token expires', async () => {
    const token = expiring();
    const asked = ['POST', 'PUT'].map((method) =>
      fetch(`${replica.url}/lasting/answer`, { method, headers: { authorization: `Bearer ${token}` } }),
    );
    await delay((GOOD_S + 1) * 1_000);
    service.answer();
    for (const answer of await Promise.all(asked))
      expect([answer.status, await answer.text()]).toEqual([200, 'answered']);
  });
});
