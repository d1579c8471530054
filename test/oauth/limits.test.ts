import { beforeEach, describe, expect, inject, it } from 'vitest';
import { envelope } from '../support/gateway/envelopes.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import {
  type Answer,
  type Portcullis,
  startOnSharedStores,
  startPortcullis,
  startReplica,
} from '../support/harness.ts';
import { addClient, type ClientCredentials, rows } from '../support/oauth/clients.ts';
import { describeReal } from '../support/services/real.ts';
import { migratedFolder } from '../support/start/folders.ts';

const MINUTE_BEFORE_MONTHS_END = Date.UTC(2026, 11, 1) - 60_000;
const WINDOWS = ['Second', 'Minute', 'Hour'] as const;
const LIMITS = ['requests_per_second', 'requests_per_minute', 'requests_per_hour'] as const;
const LENGTHS_MS = [1_000, 60_000, 3_600_000] as const;

/** How many requests come at once, and how many of them may pass. */
interface Race {
  atOnce: number;
  limit: number;
}

/** What clients with limits see of a running instance; `clock` is its clock. */
function limitsContract(start: (nowMs: () => number) => Promise<Portcullis>, { atOnce, limit }: Race): void {
  const clock = { nowMs: MINUTE_BEFORE_MONTHS_END };
  const p = beforeTests(() => start(() => clock.nowMs));
  beforeEach(() => {
    clock.nowMs = MINUTE_BEFORE_MONTHS_END;
  });

  const issue = (client: ClientCredentials, grant: object = {}) =>
    p.call('POST', '/v2/oauth/token', { json: { grant_type: 'client_credentials', ...client, ...grant } });
  const list = (token: string) => p.call('GET', '/v1/accounts', { token });

  /** A client that may make so many requests after it has got its token. */
  async function limited(column: (typeof LIMITS)[number] | 'monthly_limit', requests: number) {
    const client = await addClient(p, { [column]: requests + 1 });
    return { client, token: await p.clientToken(client) };
  }

  it.each(WINDOWS.map((window, at) => [window, LIMITS[at] ?? 'requests_per_hour', LENGTHS_MS[at] ?? 0] as const))(
    '8-05 7.2-06 D3-15: a limit per %s rejects with 429 and accepts again when the window ends',
    async (window, column, lengthMs) => {
      clock.nowMs += 0.25 * lengthMs;
      const { token } = await limited(column, 2);
      expect((await list(token)).status).toBe(200);
      expect((await list(token)).status).toBe(200);
      const refused = await list(token);
      expect(refused.status).toBe(429);
      expect(refused.text).toBe(envelope('rate_limit_exceeded'));
      const left = Math.ceil((lengthMs - (clock.nowMs % lengthMs)) / 1_000);
      expect(refused.headers.get('retry-after')).toBe(String(left));
      expect(limitHeaders(refused)).toEqual({
        'x-ratelimit-limit': '3',
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': String(left),
        [`x-ratelimit-limit-${window.toLowerCase()}`]: '3',
        [`x-ratelimit-remaining-${window.toLowerCase()}`]: '0',
        [`x-ratelimit-reset-${window.toLowerCase()}`]: String(left),
      });
      clock.nowMs = (Math.floor(clock.nowMs / lengthMs) + 1) * lengthMs - 1;
      expect((await list(token)).status).toBe(429);
      clock.nowMs += 1;
      expect((await list(token)).status).toBe(200);
    },
  );

  it('8-06 7.6-04: the quota rejects with 429 monthly_limit_exceeded until the month ends', async () => {
    const { token, client } = await limited('monthly_limit', 1);
    expect(limitHeaders(await list(token))).toEqual({
      'x-monthlylimit-limit': '2',
      'x-monthlylimit-remaining': '0',
      'x-monthlylimit-reset': '60',
    });
    const refused = await list(token);
    expect([refused.status, refused.text]).toEqual([429, envelope('monthly_limit_exceeded')]);
    expect(refused.headers.get('retry-after')).toBe('60');
    expect(limitHeaders(refused)).toMatchObject({ 'x-monthlylimit-limit': '2', 'x-monthlylimit-remaining': '0' });
    clock.nowMs += 59_999;
    expect((await issue(client)).headers.get('retry-after')).toBe('1');
    clock.nowMs += 1;
    expect(limitHeaders(await list(token))).toMatchObject({ 'x-monthlylimit-remaining': '1' });
  });

  it('D3-16 8-05 8-06: every response of the token endpoint has the headers: success, rejected grant and 429', async () => {
    const client = await addClient(p, {
      requests_per_hour: 3,
      monthly_limit: 100,
      grant_types: ['client_credentials'],
    });
    const answers = [
      await issue(client),
      await issue(client, { grant_type: 'password', username: 'a', password: 'b' }),
      await issue(client),
      await issue(client),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 403, 200, 429]);
    expect(answers.map(({ headers }) => headers.get('x-ratelimit-remaining-hour'))).toEqual(['2', '1', '0', '0']);
    expect(answers.map(({ headers }) => headers.get('x-monthlylimit-remaining'))).toEqual(['99', '98', '97', '97']);
    expect(answers[3]?.text).toBe(envelope('rate_limit_exceeded'));
    expect(Number(answers[3]?.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  it('D3-15 D3-13: requests with a wrong secret or from a wrong address are not counted', async () => {
    const client = await addClient(p, { requests_per_hour: 2, allowed_ips: ['198.51.100.7'] });
    for (const grant of [{ client_secret: 'wrong' }, {}]) {
      const refused = await issue(client, grant);
      expect([refused.status, limitHeaders(refused)]).toEqual([grant.client_secret ? 401 : 403, {}]);
    }
    const json = { grant_type: 'client_credentials', ...client };
    const answer = await p.call('POST', '/v2/oauth/token', { json, headers: { 'x-forwarded-for': '198.51.100.7' } });
    expect(answer.headers.get('x-ratelimit-remaining')).toBe('1');
  });

  it('D3-15: a request over the rate limit is not counted in the quota, and the rate is reported before the quota', async () => {
    const client = await addClient(p, { requests_per_second: 2, monthly_limit: 3 });
    const token = await p.clientToken(client);
    await list(token);
    for (let i = 0; i < 4; i += 1) expect((await list(token)).text).toBe(envelope('rate_limit_exceeded'));
    clock.nowMs += 1_000;
    expect((await list(token)).headers.get('x-monthlylimit-remaining')).toBe('0');
    expect((await list(token)).text).toBe(envelope('monthly_limit_exceeded'));
  });

  it(`D3-15: of ${atOnce} concurrent requests on a limit of ${limit} exactly ${limit} are accepted`, async () => {
    for (const column of ['requests_per_hour', 'monthly_limit'] as const) {
      const { token } = await limited(column, limit);
      const answers = await Promise.all(Array.from({ length: atOnce }, () => list(token)));
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(limit);
      expect(answers.filter(({ status }) => status === 429)).toHaveLength(atOnce - limit);
    }
  });

  it('D3-08: a client without limits gets no limit headers', async () => {
    expect(limitHeaders(await list(await p.clientToken()))).toEqual({});
  });

  it('D3-13: a login through a client with limits is counted when it is issued; its requests are not', async () => {
    const client = await addClient(p, { requests_per_hour: 2 });
    const login = await issue(client, { grant_type: 'password', ...p.demo.supervisor });
    expect(login.headers.get('x-ratelimit-remaining')).toBe('1');
    for (let i = 0; i < 5; i += 1) {
      const answer = await list(login.json.access_token);
      expect([answer.status, limitHeaders(answer)]).toEqual([200, {}]);
    }
    expect((await issue(client)).status).toBe(200);
  });

  it('D3-13: a request without the needed permission is not counted, since the guards run after the permission check', async () => {
    const { token } = await limited('requests_per_hour', 2);
    const powerless = await p.call('POST', '/v2/users/migrate/with-wallet', { token, json: {} });
    expect(powerless.status).toBe(403);
    expect((await list(token)).headers.get('x-ratelimit-remaining')).toBe('1');
  });
}

/** The headers of limits that an answer has. */
function limitHeaders({ headers }: Answer): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => /^x-(?:ratelimit|monthlylimit)/.test(name)));
}

const RACE = inject('isThorough') ? { atOnce: 200, limit: 50 } : { atOnce: 40, limit: 10 };

/** What one instance has counted is there for the next one, which is started when the first has stopped. */
async function expectKept(start: () => Promise<Portcullis>): Promise<void> {
  const first = await start();
  const client = await addClient(first, { monthly_limit: 10 });
  const token = await first.clientToken(client);
  for (let i = 0; i < 3; i += 1) await first.call('GET', '/v1/accounts', { token });
  await first[Symbol.asyncDispose]();
  await using second = await start();
  const answer = await second.call('GET', '/v1/accounts', { token });
  expect(answer.headers.get('x-monthlylimit-remaining')).toBe('5');
  const [row] = await rows(second).run((k) =>
    k.selectFrom('clients').select('last_used_at').where('id', '=', client.client_id),
  );
  expect(row?.last_used_at).toEqual(expect.any(String));
}

describe('the limits of clients, embedded', () => {
  limitsContract((nowMs) => startPortcullis({ overrides: { nowMs } }), RACE);

  it('8-05: the number of requests counted locally is a metric', async () => {
    await using p = await startPortcullis();
    const metrics = await (await fetch(`${p.service.adminUrl}/metrics`)).text();
    expect(metrics).toContain('portcullis_requests_counted_alone_total 0');
  });

  if (inject('isThorough')) {
    it('D1-08 8-06: a restart on the embedded database keeps the used quota too', async () => {
      await using folder = await migratedFolder();
      await expectKept(() => startPortcullis({ dataDir: folder.path }));
    });
  }
});

describeReal(['postgres', 'redis'], 'the limits of clients, on PostgreSQL and Redis', () => {
  limitsContract((nowMs) => startOnSharedStores({ overrides: { nowMs } }), RACE);

  it('8-06: a restart keeps the used quota and the time of last use of a client', async () => {
    await using p = await startPortcullis();
    await expectKept(() => startReplica(p));
  });

  it('D3-15 8-05 8-06: two replicas together accept as many requests as one', async () => {
    await using first = await startOnSharedStores();
    await using second = await startReplica(first);
    for (const column of ['requests_per_hour', 'monthly_limit'] as const) {
      const client = await addClient(first, { [column]: RACE.limit + 1 });
      const token = await first.clientToken(client);
      const answers = await Promise.all(
        Array.from({ length: RACE.atOnce }, (_, at) =>
          (at % 2 ? second : first).call('GET', '/v1/accounts', { token }),
        ),
      );
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(RACE.limit);
    }
  });
});
