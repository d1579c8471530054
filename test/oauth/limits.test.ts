import { rm } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { newDataDir, startOnRealServers, startPortcullis, startReplica } from '../harness.ts';
import { describeReal } from '../services/real.ts';
import { addClient, rows } from './clients.ts';
import { limitsContract } from './limits.contract.ts';

describe('the limits of clients, embedded', () => {
  limitsContract((nowMs) => startPortcullis({ overrides: { nowMs } }));

  it('D1-08 8-06: a restart keeps what is used of the quota, and when a client was last used', async () => {
    const dataDir = await newDataDir();
    const first = await startPortcullis({ dataDir });
    const client = await addClient(first, { monthly_limit: 10 });
    const token = await first.clientToken(client);
    for (let i = 0; i < 3; i += 1) await first.call('GET', '/v1/accounts', { token });
    await first[Symbol.asyncDispose]();
    const second = await startPortcullis({ dataDir });
    const answer = await second.call('GET', '/v1/accounts', { token });
    expect(answer.headers.get('x-monthlylimit-remaining')).toBe('5');
    const [row] = await rows(second).run((k) =>
      k.selectFrom('clients').select('last_used_at').where('id', '=', client.client_id),
    );
    expect(row?.last_used_at).toEqual(expect.any(String));
    await second[Symbol.asyncDispose]();
    await rm(dataDir, { recursive: true, force: true });
  });

  it('8-05: requests that were counted alone are told to the operator', async () => {
    await using p = await startPortcullis();
    const metrics = await (await fetch(`${p.service.adminUrl}/metrics`)).text();
    expect(metrics).toContain('portcullis_requests_counted_alone_total 0');
  });
});

describeReal(['postgres', 'redis', 'kafka'], 'the limits of clients, on real servers', () => {
  limitsContract((nowMs) => startOnRealServers({ overrides: { nowMs } }));

  it('D3-15 8-05 8-06: two replicas let pass together what one may', async () => {
    await using first = await startOnRealServers();
    await using second = await startReplica(first);
    for (const limit of [{ requests_per_hour: 51 }, { monthly_limit: 51 }]) {
      const client = await addClient(first, limit);
      const token = await first.clientToken(client);
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, at) => (at % 2 === 0 ? first : second).call('GET', '/v1/accounts', { token })),
      );
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(50);
    }
  });
});
