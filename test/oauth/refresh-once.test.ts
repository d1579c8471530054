import { randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Overrides } from '../../src/app/context.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import {
  type Answer,
  type Portcullis,
  startOnSharedStores,
  startPortcullis,
  startReplica,
} from '../support/harness.ts';
import { addClient, type ClientCredentials, rows, supervisorId } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';
import { describeReal } from '../support/services/real.ts';

type Replicas = readonly [Portcullis, Portcullis];

const GRACE_MS = 10_000;

/** What holds of refresh tokens that are good for one redemption, whichever replica is asked. */
function refreshOnceContract(
  { name, racers }: { name: string; racers: number },
  start: (overrides: Overrides) => Promise<Replicas>,
  stop: (replicas: Replicas) => Promise<void>,
): void {
  const clock = { nowMs: 1_800_000_000_000 };
  let replicas: Replicas;
  let p: Portcullis;
  let other: Portcullis;
  beforeAll(async () => {
    replicas = await start({ nowMs: () => clock.nowMs });
    [p, other] = replicas;
  });
  afterEach(() => {
    clock.nowMs += 60_000;
  });
  afterAll(() => stop(replicas));

  const detecting = () => addClient(p, { refresh_reuse_detection: true });

  function ask(at: Portcullis, json: object): Promise<Answer> {
    return at.call('POST', '/v2/oauth/token', { json });
  }

  function refresh(client: ClientCredentials, refresh_token: string, at = p): Promise<Answer> {
    return ask(at, { grant_type: 'refresh_token', ...client, refresh_token });
  }

  async function pairOf(kind: 'api' | 'login', client: ClientCredentials): Promise<Answer['json']> {
    const login = { grant_type: 'password', ...p.demo.supervisor };
    return (await ask(p, { ...client, ...(kind === 'api' ? { grant_type: 'client_credentials' } : login) })).json;
  }

  function race(client: ClientCredentials, token: string): Promise<Answer[]> {
    return Promise.all(Array.from({ length: racers }, (_, at) => refresh(client, token, at % 2 ? other : p)));
  }

  async function accessStatus({ access_token }: { access_token: string }, at = p): Promise<number> {
    return (await at.call('GET', '/v1/accounts', { token: access_token })).status;
  }

  function refused(answer: Answer): void {
    expect([answer.status, answer.text]).toEqual([401, envelope('invalid_request')]);
  }

  function spentRows({ client_id }: ClientCredentials) {
    return rows(p).run((k) => k.selectFrom('spent_refresh_tokens').selectAll().where('client_id', '=', client_id));
  }

  /** How often all replicas were told that something of this client's has ended. */
  async function endsOf(subject: string): Promise<number> {
    return (await rows(p).run((k) => k.selectFrom('access_changes').select('seq').where('subject', '=', subject)))
      .length;
  }

  describe.each(['api', 'login'] as const)(
    `${name}: the refresh token of a client with reuse detection (%s)`,
    (kind) => {
      it('D3-20 5.2-04: can be redeemed once, and again for the same pair within ten seconds', async () => {
        const client = await detecting();
        const first = await pairOf(kind, client);
        const second = (await refresh(client, first.refresh_token)).json;
        clock.nowMs += GRACE_MS;
        const retried = await refresh(client, first.refresh_token, other);
        expect(retried.status).toBe(200);
        expect(retried.json).toEqual(second);
        expect(await accessStatus(second)).toBe(200);
        expect((await refresh(client, second.refresh_token)).status).toBe(200);
      });

      it('D3-20: returns the first pair for any retry, whatever scope is asked and however far the chain has moved', async () => {
        const client = await detecting();
        const first = await pairOf(kind, client);
        const second = (await refresh(client, first.refresh_token)).json;
        const third = (await refresh(client, second.refresh_token)).json;
        for (const [at, scope] of [{ scope: 'accounts:read' }, {}, { scope: 'accounts:read' }].entries()) {
          const request = { grant_type: 'refresh_token', ...client, refresh_token: first.refresh_token, ...scope };
          expect((await ask(at % 2 ? other : p, request)).json).toEqual(second);
        }
        expect((await refresh(client, second.refresh_token, other)).json).toEqual(third);
        // The chain is one: whoever has kept what the others have left behind ends it.
        clock.nowMs += GRACE_MS + 1;
        refused(await refresh(client, second.refresh_token));
        refused(await refresh(client, third.refresh_token));
        expect(await accessStatus(third)).toBe(401);
      });

      it('D3-20: redeemed by a process of 0.1.0, returns one pair to all retries', async () => {
        const client = await detecting();
        const first = await pairOf(kind, client);
        await refresh(client, first.refresh_token);
        await rows(p).run((k) =>
          k.updateTable('spent_refresh_tokens').set({ successor: null }).where('client_id', '=', client.client_id),
        );
        const answers = await race(client, first.refresh_token);
        expect(new Set(answers.map(({ json }) => json.refresh_token)).size).toBe(1);
        clock.nowMs += GRACE_MS + 1;
        refused(await refresh(client, first.refresh_token));
      });

      it('D3-20: used again after ten seconds is a 401, and revokes its family or session', async () => {
        const client = await detecting();
        const bystander = await pairOf(kind, client);
        const first = await pairOf(kind, client);
        const second = (await refresh(client, first.refresh_token)).json;
        clock.nowMs += GRACE_MS + 1;
        refused(await refresh(client, first.refresh_token));
        expect([await accessStatus(first), await accessStatus(second)]).toEqual([401, 401]);
        refused(await refresh(client, second.refresh_token));
        expect(await accessStatus(bystander)).toBe(200);
        expect((await refresh(client, bystander.refresh_token)).status).toBe(200);
        await other.service.context.changes.poll();
        expect([await accessStatus(second, other), await accessStatus(bystander, other)]).toEqual([401, 200]);
      });

      it(`D3-20: redeemed ${racers} times at once, returns the same pair to all, and is stored as used once`, async () => {
        const client = await detecting();
        const { refresh_token } = await pairOf(kind, client);
        const answers = await race(client, refresh_token);
        expect(answers.map(({ status }) => status)).toEqual(Array(racers).fill(200));
        expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
        expect(await spentRows(client)).toHaveLength(1);
      });

      it(`D3-20: reused ${racers} times at once is rejected each time, and revokes its family or session once`, async () => {
        const client = await detecting();
        const first = await pairOf(kind, client);
        const { sub = '' } = decodeJwt(first.refresh_token);
        expect((await refresh(client, first.refresh_token)).status).toBe(200);
        const before = await endsOf(sub);
        clock.nowMs += GRACE_MS + 1;
        for (const answer of await race(client, first.refresh_token)) refused(answer);
        expect((await endsOf(sub)) - before).toBe(1);
      });

      it('3-05: a refresh token of a client without reuse detection remains valid, and is not stored', async () => {
        const client = await addClient(p);
        const { refresh_token } = await pairOf(kind, client);
        for (let time = 0; time < 3; time += 1) {
          clock.nowMs += GRACE_MS + 1;
          expect((await refresh(client, refresh_token, other)).status).toBe(200);
        }
        expect(await spentRows(client)).toEqual([]);
      });
    },
  );

  describe(`${name}: a refresh token without iat`, () => {
    /** As before there were issue times: nothing but who it is for. */
    const old = (client: ClientCredentials, changes: Record<string, unknown> = {}) =>
      signed(p, { sub: client.client_id, client_id: client.client_id, n: randomUUID(), ...changes });

    it('8-04 D3-21: can be redeemed once, with a retry within ten seconds, for a pair with iat', async () => {
      const client = await addClient(p);
      const token = old(client);
      const first = await refresh(client, token);
      clock.nowMs += GRACE_MS;
      const retried = await refresh(client, token, other);
      expect([first.status, retried.status]).toEqual([200, 200]);
      clock.nowMs += 1;
      refused(await refresh(client, token));
      refused(await refresh(client, token, other));
      const { iat, family, token_use } = decodeJwt(first.json.refresh_token);
      expect([typeof iat, token_use]).toEqual(['number', 'refresh']);
      expect(retried.json).toEqual(first.json);
      expect(decodeJwt(retried.json.access_token).family).toBe(family);
      expect(await accessStatus(first.json)).toBe(200);
      expect((await refresh(client, first.json.refresh_token)).status).toBe(200);
    });

    it("8-04 D3-21: a supervisor's refresh token without iat starts a session", async () => {
      const client = await addClient(p);
      const sub = await supervisorId(p);
      const { status, json } = await refresh(client, old(client, { sub, sid: 'whatever', aud: ['x'] }));
      expect(status).toBe(200);
      expect(json.expires_in).toBe(900);
      const claims = decodeJwt(json.access_token);
      expect(claims).toMatchObject({ sub, token_use: 'login', sid: expect.any(String) });
      expect(await accessStatus(json)).toBe(200);
      expect((await refresh(client, json.refresh_token)).status).toBe(200);
    });

    it(`D3-21: redeemed ${racers} times at once is stored as used once`, async () => {
      const client = await addClient(p);
      const token = old(client, { exp: clock.nowMs / 1000 + 3600 });
      const answers = await race(client, token);
      expect(answers.map(({ status }) => status)).toEqual(Array(racers).fill(200));
      const [row, ...more] = await spentRows(client);
      expect(more).toEqual([]);
      expect(Date.parse(row?.expires_at ?? '')).toBe(clock.nowMs + 3_600_000);
      clock.nowMs += GRACE_MS + 1;
      for (const answer of await race(client, token)) refused(answer);
    });

    it('D3-21: a token without exp is stored as used permanently', async () => {
      const client = await addClient(p);
      const token = old(client);
      expect((await refresh(client, token)).status).toBe(200);
      expect((await spentRows(client)).map(({ expires_at }) => expires_at)).toEqual([null]);
      clock.nowMs += 20 * 365 * 24 * 3_600_000;
      refused(await refresh(client, token));
    });

    it(`D3-21: a supervisor's token starts one session for ${racers} concurrent uses and a retry`, async () => {
      const client = await addClient(p);
      const token = old(client, { sub: await supervisorId(p) });
      const answers = [...(await race(client, token)), await refresh(client, token)];
      expect(answers.map(({ status }) => status)).toEqual(Array(racers + 1).fill(200));
      expect(new Set(answers.map(({ json }) => decodeJwt(json.access_token).sid)).size).toBe(1);
    });

    it.each(['api', 'login'])(
      'D3-21 D3-20: with reuse detection, a later use revokes its family or session (%s)',
      async (kind) => {
        const client = await detecting();
        const token = old(client, kind === 'api' ? {} : { sub: await supervisorId(p) });
        const { json } = await refresh(client, token);
        clock.nowMs += GRACE_MS + 1;
        refused(await refresh(client, token));
        expect(await accessStatus(json)).toBe(401);
        refused(await refresh(client, json.refresh_token));
      },
    );

    it('D3-21: is rejected as an access token, from another client, with a wrong secret and with invalid claims', async () => {
      const client = await addClient(p);
      const stranger = await addClient(p);
      const { discover, legacy } = p.service.context.secrets.jwt;
      expect(await accessStatus({ access_token: old(client, { aud: p.demo.node_id, scope: 'accounts:read' }) })).toBe(
        401,
      );
      refused(await refresh(stranger, old(client)));
      const claims = { sub: client.client_id, client_id: client.client_id };
      for (const secret of [discover.current, legacy.current])
        refused(await refresh(client, signed(p, claims, { secret })));
      const bad = [
        ...[{ token_use: 'login' }, { token_use: 'api' }, { token_use: null }, { iat: null }, { iat: '1' }],
        ...[{ exp: clock.nowMs / 1000 }, { exp: null }, { exp: '9999999999' }, { sub: randomUUID() }, { sub: 'x' }],
        ...[{ sub: stranger.client_id }, { sub: undefined }, { client_id: undefined }],
        ...[{ client_id: [client.client_id] }, { aud: p.demo.other_node.node_id }],
      ];
      for (const changes of bad) refused(await refresh(client, old(client, changes)));
      expect(await spentRows(client)).toEqual([]);
    });

    it('D3-21 D3-07: is rejected for a client that was disabled and enabled again', async () => {
      const client = await addClient(p, { tokens_from: new Date(clock.nowMs - 86_400_000).toISOString() });
      refused(await refresh(client, old(client)));
      const claims = apiClaims(p, { sub: client.client_id, client_id: client.client_id, token_use: 'refresh' });
      expect((await refresh(client, signed(p, claims))).status).toBe(200);
      refused(await refresh(client, signed(p, { ...claims, iat: clock.nowMs / 1000 - 86_401 })));
    });
  });
}

const racers = inject('isThorough') ? 20 : 6;

refreshOnceContract(
  { name: 'embedded', racers },
  async (overrides) => {
    const p = await startPortcullis({ overrides });
    return [p, p];
  },
  async ([p]) => {
    await p[Symbol.asyncDispose]();
  },
);

describeReal(['postgres', 'redis'], '8-04 D3-20 D3-21: two replicas on one database', () => {
  refreshOnceContract(
    { name: 'two replicas', racers },
    async (overrides) => {
      const p = await startOnSharedStores({ overrides });
      return [p, await startReplica(p, { overrides })];
    },
    async ([p, replica]) => {
      await replica[Symbol.asyncDispose]();
      await p[Symbol.asyncDispose]();
    },
  );
});
