import { type Portcullis, type StartOptions, startPortcullis } from '../harness.ts';
import { freshRedis } from '../services/isolation.ts';

/** An instance on the real PostgreSQL and Redis, which its replicas share; no broker has a part in who may come in. */
export async function startOnSharedStores({ env, ...options }: StartOptions = {}): Promise<Portcullis> {
  const redis = await freshRedis();
  const started = await startPortcullis({ ...options, env: { REDIS_URL: redis.url, ...env } });
  return {
    ...started,
    [Symbol.asyncDispose]: async () => {
      await started[Symbol.asyncDispose]();
      await redis.release();
    },
  };
}
