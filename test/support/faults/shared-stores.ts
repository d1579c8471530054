import { copyOfDatabase, realTemplate } from '../harness/databases.ts';
import { deleteTopics, freshRedis, topicPrefix } from '../services/isolation.ts';
import { serviceAddress } from '../services/real.ts';
import type { Stores } from './cluster.ts';

/** A part of the servers of the run, for a cluster whose faults are those of its processes alone. */
export async function sharedStores(stack: AsyncDisposableStack): Promise<Stores> {
  const database = await copyOfDatabase(await realTemplate());
  stack.defer(() => database.drop());
  const redis = stack.use(await freshRedis());
  const brokers = serviceAddress('kafka');
  const prefix = topicPrefix();
  stack.defer(() => deleteTopics(brokers, prefix));
  return {
    get servers(): never {
      throw new Error('these servers are others’ too: no fault is done to them');
    },
    direct: { databaseUrl: database.url, brokers, topicPrefix: prefix },
    env: { DATABASE_URL: database.url, REDIS_URL: redis.url, KAFKA_BROKERS: brokers },
  };
}
