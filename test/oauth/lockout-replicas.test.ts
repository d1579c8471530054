import { expect, it } from 'vitest';
import { type Portcullis, startOnSharedStores, startPortcullis, startReplica } from '../support/harness.ts';
import { makeLoginsCheap } from '../support/oauth/cheap-hash.ts';
import { rows } from '../support/oauth/clients.ts';
import { describeReal } from '../support/services/real.ts';

async function login({ call, demo }: Portcullis, password: string): Promise<number> {
  const { username } = demo.supervisor;
  const json = { grant_type: 'password', ...demo.client, username, password };
  return (await call('POST', '/v2/oauth/token', { json })).status;
}

async function loginAll(instances: readonly Portcullis[], password: string): Promise<number[]> {
  const statuses: number[] = [];
  for (const instance of instances) statuses.push(await login(instance, password));
  return statuses;
}

describeReal(['postgres', 'redis'], 'instances on one database', () => {
  it('D3-17: a lock is still there after a restart', async () => {
    await using p = await startPortcullis();
    await makeLoginsCheap(p);
    {
      await using first = await startReplica(p);
      expect(await loginAll(Array(5).fill(first), 'wrong')).toEqual([401, 401, 401, 401, 401]);
    }
    await using second = await startReplica(p);
    expect(await login(second, second.demo.supervisor.password)).toBe(401);
    await second.service.context.locks.unlock(second.demo.node_id, second.demo.supervisor.username);
    expect(await login(second, second.demo.supervisor.password)).toBe(200);
  });

  it('D3-17: count failures together and both refuse, and both let in what one has unlocked', async () => {
    await using p = await startOnSharedStores();
    await makeLoginsCheap(p);
    await using other = await startReplica(p);
    const both = [p, other];
    const { password, username } = p.demo.supervisor;
    await loginAll([...both, ...both], 'wrong');
    expect(await loginAll(both, password)).toEqual([200, 200]);
    await loginAll([...both, ...both, p], 'wrong');
    expect(await loginAll(both, password)).toEqual([401, 401]);
    expect(await rows(p).run((k) => k.selectFrom('login_failures').select('username'))).toHaveLength(5);
    await p.service.context.locks.unlock(p.demo.node_id, username);
    expect(await loginAll(both, password)).toEqual([200, 200]);
  });
});
