import { createHash } from 'node:crypto';

/** A Lua script, which Redis runs atomically. */
export interface LuaScript {
  readonly source: string;
  readonly sha1: string;
  /** Whether the epoch of the server that runs it is passed as its last argument. */
  readonly needsEpoch: boolean;
}

/** Makes a script; Redis identifies it by the SHA-1 of its text. */
function luaScript(source: string, { needsEpoch = false } = {}): LuaScript {
  return { source, sha1: createHash('sha1').update(source).digest('hex'), needsEpoch };
}

/**
 * The script for `countRequest` of `counts.rules.ts`, with one key for each client. ARGV: now in ms, number of the
 * month, quota used according to another source (-1: not known), limits per second, minute, hour and month (0: none),
 * how many requests to count. Returns -1 (unknown), or how many of them it has counted and the four counts after that,
 * followed by the numbers of the windows if they differ from the clock's.
 */
export const COUNT_REQUEST = luaScript(`
local now, clock_month_at, seed = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local per_second, per_minute = tonumber(ARGV[4]), tonumber(ARGV[5])
local per_hour, per_month = tonumber(ARGV[6]), tonumber(ARGV[7])
local second_at, second, minute_at, minute, hour_at, hour, month_at, month = 0, 0, 0, 0, 0, 0, 0, 0
local stored = redis.call('GET', KEYS[1])
if stored then
  second_at, second, minute_at, minute, hour_at, hour, month_at, month = struct.unpack('<dddddddd', stored)
end
local skewed = false
local clock = math.floor(now / 1000)
if clock > second_at then second_at, second = clock, 0 elseif clock < second_at then skewed = true end
clock = math.floor(now / 60000)
if clock > minute_at then minute_at, minute = clock, 0 elseif clock < minute_at then skewed = true end
clock = math.floor(now / 3600000)
if clock > hour_at then hour_at, hour = clock, 0 elseif clock < hour_at then skewed = true end
if per_month > 0 then
  if clock_month_at > month_at then
    if seed < 0 then return -1 end
    month_at, month = clock_month_at, seed
  elseif clock_month_at < month_at then skewed = true
  elseif seed > month then month = seed end
end
local counted = tonumber(ARGV[8])
if per_second > 0 then counted = math.min(counted, per_second - second) end
if per_minute > 0 then counted = math.min(counted, per_minute - minute) end
if per_hour > 0 then counted = math.min(counted, per_hour - hour) end
if per_month > 0 then counted = math.min(counted, per_month - month) end
counted = math.max(counted, 0)
second, minute, hour = second + counted, minute + counted, hour + counted
if per_month > 0 then month = month + counted end
if counted > 0 or seed >= 0 then
  local counts = struct.pack('<dddddddd', second_at, second, minute_at, minute, hour_at, hour, month_at, month)
  redis.call('SET', KEYS[1], counts, 'PX', per_month > 0 and 3456000000 or 7200000)
end
if skewed then return {counted, second, minute, hour, month, second_at, minute_at, hour_at, month_at} end
return {counted, second, minute, hour, month}`);

/**
 * The script that counts a failure of a key. ARGV: now in ms, length of the window in ms, step (0 or 1). Returns the
 * count and when the window began, in ms.
 */
export const COUNT_FAILURE = luaScript(`
local now, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local started, count = now, 0
local stored = redis.call('GET', KEYS[1])
if stored then started, count = struct.unpack('<dd', stored) end
if now >= started + window then started, count = now, 0 end
count = count + tonumber(ARGV[3])
redis.call('SET', KEYS[1], struct.pack('<dd', started, count), 'PX', window)
return {count, started}`);

// The keys of the session scripts: the set of a subject's sessions, sorted by expiry, the set of its recently removed
// ones, and the tenant's ready marker, which is the epoch in which the tenant was made ready. A marker from before a
// failover does not count, since the last writes may be lost.

/**
 * The script that reads a session's state. KEYS: the subject's sessions, the ready marker. The removed sessions are
 * left out, as their key is mostly absent, and while a slot is moved Redis refuses a script that names an absent key.
 * ARGV: session id, now in ms, epoch. Returns -1 (unready), 0 (absent) or 1 (live).
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

/**
 * The script that adds a session, and returns the ids of those evicted for it. KEYS: the subject's sessions, its
 * removed sessions. ARGV: session id, expiry in ms, now in ms, largest number of sessions, lifetime of the keys in ms,
 * how long a removal is remembered in ms.
 */
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

/**
 * The script that extends the life of a session. KEYS: the subject's sessions, its removed sessions, the ready marker.
 * ARGV: session id, expiry in ms, lifetime of the key in ms, epoch. It adds an absent session if the tenant is unready,
 * since the rebuild may have read the database too early.
 */
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

/**
 * The script that removes sessions. KEYS: the subject's sessions, its removed sessions. ARGV: how long a removal is
 * remembered in ms, session ids.
 */
export const REMOVE_SESSIONS = luaScript(`
for i = 2, #ARGV do
  redis.call('ZREM', KEYS[1], ARGV[i])
  redis.call('SADD', KEYS[2], ARGV[i])
end
redis.call('PEXPIRE', KEYS[2], ARGV[1])`);

/**
 * The script that adds the live sessions of a subject during a rebuild. KEYS: the subject's sessions, its removed
 * sessions, the ready marker, the token of the current rebuild. ARGV: lifetime of the key in ms, token, then an id and
 * an expiry in ms for each session. It does nothing for a rebuild that has ended, since removals after its reading may
 * no longer be remembered.
 */
export const REBUILD_SUBJECT = luaScript(`
if not string.find(redis.call('GET', KEYS[4]) or '', ARGV[2], 1, true) then return end
for i = 3, #ARGV, 2 do
  if redis.call('SISMEMBER', KEYS[2], ARGV[i]) == 0 then
    redis.call('ZADD', KEYS[1], 'GT', ARGV[i + 1], ARGV[i])
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])`);

/**
 * The script that begins a rebuild of a tenant's sessions. KEYS: the token of the current rebuild. ARGV: token, its
 * lifetime in ms, epoch.
 */
export const BEGIN_REBUILD = luaScript(`redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[3], 'PX', ARGV[2])`, {
  needsEpoch: true,
});

/**
 * The script that ends a rebuild and marks the tenant as ready. KEYS: the token of the current rebuild, the ready
 * marker. ARGV: token, epoch. Returns 0 if the cache was emptied, or another server took over, since the rebuild began;
 * otherwise 1.
 */
export const MAKE_READY = luaScript(
  `
if redis.call('GET', KEYS[1]) ~= ARGV[1] .. ' ' .. ARGV[2] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], ARGV[2])
return 1`,
  { needsEpoch: true },
);

/**
 * The script that checks that a server accepts writes and reads, such as of the sessions. KEYS: a separate key. ARGV:
 * its lifetime in ms.
 */
export const CHECK_HEALTH = luaScript(`
redis.call('ZADD', KEYS[1], 1, 'health')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return redis.call('ZSCORE', KEYS[1], 'health')`);

/** The script that takes a lock. KEYS: the lock. ARGV: the holder's token, its lifetime in ms. Returns nil if it is held. */
export const TAKE_LOCK = luaScript(`return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`);

/** The script that releases a lock. KEYS: the lock. ARGV: the holder's token. */
export const RELEASE_LOCK = luaScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`);
