import { withTimeout } from '../../lib/with-timeout.ts';
import { type LuaScript, luaScript } from '../../platform/cache/redis-scripts.ts';
import type { NewSession } from './sessions.ts';

/**
 * Processes of 0.1.0 read sessions from Redis. While they run next to this version, it copies committed sessions there.
 * This file, its option of `Sessions` and `RedisCache.run` are to be deleted with the release after 0.2: processes of
 * 0.2 do not read it.
 *
 * Revocations need no such copy: each process of 0.1.0 reads them from PostgreSQL and removes the sessions from Redis.
 */

const WITHIN_MS = 500;
/** How long, in ms, a supervisor's key is kept after the last write: longer than a session lives. */
const KEY_LIFETIME_MS = 31 * 24 * 3_600_000;
/** The number of sessions beyond `maxSessions` that 0.1.0 keeps, since an ended one may leave after the next was added. */
const SURPLUS = 100;

/**
 * The script that adds or prolongs a session. KEYS: the subject's sessions, by expiry; those removed within the last
 * minute. ARGV: session id, expiry in ms, now in ms, largest number of sessions, lifetime of the key in ms.
 */
const MIRROR_SESSION = luaScript(`
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
redis.call('ZADD', KEYS[1], 'GT', ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[4]))
redis.call('PEXPIRE', KEYS[1], ARGV[5])`);

/** Returns what writes a session for processes of 0.1.0. It takes half a second at most and never rejects. */
export function sessionMirror({
  run,
  maxSessions,
  nowMs,
}: {
  run(script: LuaScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  maxSessions: number;
  nowMs(): number;
}) {
  return async ({ nodeId, supervisorId, sessionId, expiresAtMs }: NewSession): Promise<void> => {
    const ofSubject = `{${nodeId}}:${supervisorId}`;
    const args = [sessionId, expiresAtMs, nowMs(), maxSessions + SURPLUS, KEY_LIFETIME_MS];
    const written = run(MIRROR_SESSION, [`s:${ofSubject}`, `removed:${ofSubject}`], args);
    await withTimeout(written, WITHIN_MS).catch(() => undefined);
  };
}
