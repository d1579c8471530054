import { expect, inject, it } from 'vitest';
import { type Portcullis, startOnSharedStores, startPortcullis, startReplica } from '../support/harness.ts';
import { makeLoginsCheap } from '../support/oauth/cheap-hash.ts';
import { rows } from '../support/oauth/clients.ts';
import { describeReal } from '../support/services/real.ts';
import { startInstance } from '../support/start/process.ts';

async function login(baseUrl: string, { demo }: Pick<Portcullis, 'demo'>, password: string): Promise<number> {
  const { username } = demo.supervisor;
  const response = await fetch(`${baseUrl}/v2/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ grant_type: 'password', ...demo.client, username, password }),
  });
  await response.text();
  return response.status;
}

async function loginAll(baseUrls: readonly string[], p: Portcullis, password: string): Promise<number[]> {
  const statuses: number[] = [];
  for (const baseUrl of baseUrls) statuses.push(await login(baseUrl, p, password));
  return statuses;
}

/** Another one on the stores of an instance, and where it is; thoroughly it is a process of its own. */
async function another(of: Portcullis): Promise<AsyncDisposable & { at: string }> {
  if (!inject('isThorough')) {
    const replica = await startReplica(of);
    return { at: replica.url, [Symbol.asyncDispose]: () => replica[Symbol.asyncDispose]() };
  }
  const instance = await startInstance(of.env);
  return { at: instance.baseUrl, [Symbol.asyncDispose]: () => instance[Symbol.asyncDispose]() };
}

describeReal(['postgres', 'redis'], 'instances on one database', () => {
  it('D3-17: a lock is still there after a restart', async () => {
    await using p = await startPortcullis();
    await makeLoginsCheap(p);
    {
      await using first = await startReplica(p);
      const { url } = first;
      expect(await loginAll([url, url, url, url, url], first, 'wrong')).toEqual([401, 401, 401, 401, 401]);
    }
    await using second = await startReplica(p);
    expect(await login(second.url, second, second.demo.supervisor.password)).toBe(401);
    await second.service.context.locks.unlock(second.demo.node_id, second.demo.supervisor.username);
    expect(await login(second.url, second, second.demo.supervisor.password)).toBe(200);
  });

  it('D3-17: count failures together and both refuse, and both let in what one has unlocked', async () => {
    await using p = await startOnSharedStores();
    await makeLoginsCheap(p);
    await using other = await another(p);
    const both = [p.url, other.at];
    const { password, username } = p.demo.supervisor;
    await loginAll([...both, ...both], p, 'wrong');
    expect(await loginAll(both, p, password)).toEqual([200, 200]);
    await loginAll([...both, ...both, p.url], p, 'wrong');
    expect(await loginAll(both, p, password)).toEqual([401, 401]);
    expect(await rows(p).run((k) => k.selectFrom('login_failures').select('username'))).toHaveLength(5);
    await p.service.context.locks.unlock(p.demo.node_id, username);
    expect(await loginAll(both, p, password)).toEqual([200, 200]);
  });
});
