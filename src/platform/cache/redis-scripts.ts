import { createHash } from 'node:crypto';

/** A Lua script, which Redis runs atomically. */
export interface LuaScript {
  readonly source: string;
  readonly sha1: string;
}

/** Makes a script; Redis identifies it by the SHA-1 of its text. */
export function luaScript(source: string): LuaScript {
  return { source, sha1: createHash('sha1').update(source).digest('hex') };
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

/** The script that checks that a server accepts writes and reads. KEYS: a separate key. ARGV: its lifetime in ms. */
export const CHECK_HEALTH = luaScript(`
redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
return redis.call('GET', KEYS[1])`);

/** The script that raises a position. KEYS: the position. ARGV: what it is to be at least. Returns what it is then. */
export const RAISE_POSITION = luaScript(`
local stored = redis.call('GET', KEYS[1])
if stored and stored >= ARGV[1] then return stored end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]`);
