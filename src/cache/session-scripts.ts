import { luaScript } from './lua-script.ts';

// KEYS[1] is the sorted set of a subject's sessions, KEYS[2] the set of those removed of late, KEYS[3] the marker: the
// epoch in which the node was made ready. One from before a failover is none: the last writes may be lost.

/**
 * KEYS: the sorted set of a subject's sessions, the marker, and not what is mostly absent: while a slot moves, a script
 * is refused that names a key which is not there. ARGV: session id, now in ms, epoch. -1 unready, 0 absent, 1 live.
 */
export const SESSION_STATE = luaScript(
  `
local ready = redis.call('GET', KEYS[2])
if not ready or tonumber(ready) < tonumber(ARGV[3]) then return -1 end
local expiry = redis.call('ZSCORE', KEYS[1], ARGV[1])
if expiry and tonumber(expiry) > tonumber(ARGV[2]) then return 1 end
return 0`,
  { needsEpoch: true },
);

/** ARGV: session id, expiry in ms, now in ms, most sessions, key lifetime in ms, memory of removals in ms. */
export const ADD_SESSION = luaScript(`
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return {} end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
local evicted = {}
local surplus = redis.call('ZCARD', KEYS[1]) - (tonumber(ARGV[4]) - 1)
if surplus > 0 then
  evicted = redis.call('ZRANGE', KEYS[1], 0, surplus - 1)
  for _, id in ipairs(evicted) do
    redis.call('ZREM', KEYS[1], id)
    redis.call('SADD', KEYS[2], id)
  end
  redis.call('PEXPIRE', KEYS[2], ARGV[6])
end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return evicted`);

/** ARGV: session id, expiry in ms, key lifetime in ms, epoch. In an unready node it adds: the rebuild may have read too early. */
export const PROLONG_SESSION = luaScript(
  `
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return end
local ready = redis.call('GET', KEYS[3])
if ready and tonumber(ready) >= tonumber(ARGV[4]) then
  redis.call('ZADD', KEYS[1], 'XX', 'GT', ARGV[2], ARGV[1])
else
  redis.call('ZADD', KEYS[1], 'GT', ARGV[2], ARGV[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])`,
  { needsEpoch: true },
);

/** ARGV: memory of removals in ms, session ids. */
export const REMOVE_SESSIONS = luaScript(`
for i = 2, #ARGV do
  redis.call('ZREM', KEYS[1], ARGV[i])
  redis.call('SADD', KEYS[2], ARGV[i])
end
redis.call('PEXPIRE', KEYS[2], ARGV[1])`);

/**
 * KEYS[4]: the token of the rebuild under way. ARGV: key lifetime in ms, token, then an id and an expiry in ms for each
 * session. Nothing comes of a rebuild that has ended: what was removed since it read may be forgotten as removed.
 */
export const REBUILD_SUBJECT = luaScript(`
if not string.find(redis.call('GET', KEYS[4]) or '', ARGV[2], 1, true) then return end
for i = 3, #ARGV, 2 do
  if redis.call('SISMEMBER', KEYS[2], ARGV[i]) == 0 then
    redis.call('ZADD', KEYS[1], 'GT', ARGV[i + 1], ARGV[i])
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])`);

/** KEYS: the token of the rebuild under way. ARGV: token, its lifetime in ms, epoch. */
export const BEGIN_REBUILD = luaScript(`redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[3], 'PX', ARGV[2])`, {
  needsEpoch: true,
});

/** KEYS: the token of the rebuild under way, the marker. ARGV: token, epoch. 0 where the cache was emptied, or another server took over, since. */
export const MAKE_READY = luaScript(
  `
if redis.call('GET', KEYS[1]) ~= ARGV[1] .. ' ' .. ARGV[2] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], ARGV[2])
return 1`,
  { needsEpoch: true },
);

/** KEYS: the lock. ARGV: the holder's token. */
export const RELEASE_LOCK = luaScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`);
