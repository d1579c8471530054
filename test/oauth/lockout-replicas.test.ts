import { expect, it } from 'vitest';
import { type Portcullis, startOnRealServers, startPortcullis } from '../harness.ts';
import { describeReal } from '../services/real.ts';
import { migratedFolder } from '../start/folders.ts';
import { startInstance } from '../start/process.ts';
import { rows } from './clients.ts';

// Each test starts instances, on machines that are busy with other tests.
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

it('D3-17: a lock is still there after a restart', async () => {
  await using folder = await migratedFolder();
  {
    await using first = await startPortcullis({ dataDir: folder.path });
    const { url } = first;
    expect(await loginAll([url, url, url, url, url], first, 'wrong')).toEqual([401, 401, 401, 401, 401]);
  }
  await using second = await startPortcullis({ dataDir: folder.path });
  expect(await login(second.url, second, second.demo.supervisor.password)).toBe(401);
  await second.service.context.locks.unlock(second.demo.node_id, second.demo.supervisor.username);
  expect(await login(second.url, second, second.demo.supervisor.password)).toBe(200);
});

describeReal(['postgres', 'redis', 'kafka'], 'two processes on one database', () => {
  it('D3-17: count failures together and both refuse, and both let in what one has unlocked', async () => {
    await using p = await startOnRealServers();
    const { databaseUrl = '', redisUrl = '', topicPrefix, kafka } = p.service.context.config;
    await using other = await startInstance({
      DATA_DIR: p.dataDir,
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      KAFKA_BROKERS: kafka?.brokers.join(',') ?? '',
      TOPIC_PREFIX: topicPrefix,
    });
    const both = [p.url, other.baseUrl];
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
