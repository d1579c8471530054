import { describe, expect, inject, it } from 'vitest';
import { type Portcullis, startOnSharedStores, startPortcullis, startReplica } from '../support/harness.ts';
import { addClient, rows } from '../support/oauth/clients.ts';
import { describeReal } from '../support/services/real.ts';
import { migratedFolder } from '../support/start/folders.ts';
import { limitsContract } from './limits.contract.ts';

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

  it('8-05: requests that were counted alone are told to the operator', async () => {
    await using p = await startPortcullis();
    const metrics = await (await fetch(`${p.service.adminUrl}/metrics`)).text();
    expect(metrics).toContain('portcullis_requests_counted_alone_total 0');
  });

  if (inject('isThorough')) {
    it('D1-08 8-06: a restart on the embedded database keeps what is used too', async () => {
      await using folder = await migratedFolder();
      await expectKept(() => startPortcullis({ dataDir: folder.path }));
    });
  }
});

describeReal(['postgres', 'redis'], 'the limits of clients, on PostgreSQL and Redis', () => {
  limitsContract((nowMs) => startOnSharedStores({ overrides: { nowMs } }), RACE);

  it('8-06: a restart keeps what is used of the quota, and when a client was last used', async () => {
    await using p = await startPortcullis();
    await expectKept(() => startReplica(p));
  });

  it('D3-15 8-05 8-06: two replicas let pass together what one may', async () => {
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
