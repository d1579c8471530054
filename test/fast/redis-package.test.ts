import { expect, it } from 'vitest';
import { inPlainNode } from '../support/architecture/plain-node.ts';

/** Loads a client, and tells how many commands it has loaded for that, and then its methods with the arguments that some of them send. */
const LOAD = `
  import { createRequire } from 'node:module';
  const [path] = process.argv.slice(1);
  const { RedisClient, RedisCluster, ErrorReply } = await import(process.cwd() + '/' + path);
  const { cache } = createRequire(import.meta.url);
  const commands = () => Object.keys(cache).filter((file) => file.includes('/@redis/client/dist/lib/commands/')).length;
  const modules = () => Object.keys(cache).filter((file) => /@redis.(?:bloom|json|search|time-series)/.test(file)).length;
  const loaded = { commands: commands(), modules: modules() };
  const client = RedisClient.factory({})({ disableOfflineQueue: true });
  const cluster = RedisCluster.factory({})({ rootNodes: [{ url: 'redis://127.0.0.1:1' }] });
  const namesOf = (made) => {
    const names = [];
    for (let at = made; at !== null; at = Object.getPrototypeOf(at)) names.push(...Object.getOwnPropertyNames(at));
    return [...new Set(names)].sort();
  };
  const refused = await client.set('a', 'b', { PX: 5 }).catch((error) => error.name + ': ' + error.message);
  const answer = { methods: namesOf(client), ofCluster: namesOf(cluster), refused, error: new ErrorReply('x').message };
  process.stdout.write(JSON.stringify({ loaded, answer }), () => process.exit());`;

interface Answer {
  loaded: { commands: number; modules: number };
  answer: { methods: string[] };
}

it('D1-03 D6-16: a client of Redis has every command of the package, and loads none of them before it is used', async () => {
  const own = (await inPlainNode(LOAD, ['src/lib/fast/redis-package.ts'])) as Answer;
  const library = (await inPlainNode(LOAD, ['test/support/fast/library/redis-package.ts'])) as Answer;
  expect(own.answer).toEqual(library.answer);
  expect(own.answer.methods).toEqual(expect.arrayContaining(['set', 'GET', 'clusterSlots', 'sendCommand']));
  expect(library.loaded.commands).toBeGreaterThan(400);
  expect(library.loaded.modules).toBeGreaterThan(100);
  expect(own.loaded.commands).toBeLessThan(30);
  expect(own.loaded.modules).toBe(0);
});
