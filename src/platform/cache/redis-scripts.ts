import { createHash } from 'node:crypto';
import { RATE_WINDOWS, WINDOWS } from './counts.rules.ts';

/** A Lua script, which Redis runs atomically. */
export interface LuaScript {
  readonly source: string;
  readonly sha1: string;
}

/** Makes a script; Redis identifies it by the SHA-1 of its text. */
export function luaScript(source: string): LuaScript {
  return { source, sha1: createHash('sha1').update(source).digest('hex') };
}

/** The layout of a client's key: the number and the count of each window. */
const STORED = WINDOWS.map(({ at, count }) => `${at}, ${count}`).join(', ');
const FORMAT = `<${'dd'.repeat(WINDOWS.length)}`;
/** How long a client's key is kept after its last request, in milliseconds: its longest window, and more. */
const KEPT_MS = 2 * Math.max(...RATE_WINDOWS.map(({ ms }) => ms));
const KEPT_WITH_QUOTA_MS = 40 * 86_400_000;

/**
 * The script for `countRequest` of `counts.rules.ts`, with one key for each client. ARGV: now in ms, number of the
 * month, quota used according to another source (-1: not known), how many requests to count, and the limit of each
 * window (0: none). Returns -1 (unknown), or how many of them it has counted and the count of each window after that,
 * followed by the numbers of the windows if they differ from the clock's.
 */
export const COUNT_REQUEST = luaScript(`
local now, clockMonthAt, seed, counted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
${WINDOWS.map(({ limit, at, count }, windowIndex) => `local ${limit}, ${at}, ${count} = tonumber(ARGV[${windowIndex + 5}]), 0, 0`).join('\n')}
local stored = redis.call('GET', KEYS[1])
if stored then ${STORED} = struct.unpack('${FORMAT}', stored) end
local skewed, clock = false, 0
${RATE_WINDOWS.map(
  ({ ms, at, count }) => `clock = math.floor(now / ${ms})
if clock > ${at} then ${at}, ${count} = clock, 0 elseif clock < ${at} then skewed = true end`,
).join('\n')}
if perMonth > 0 then
  if clockMonthAt > monthAt then
    if seed < 0 then return -1 end
    monthAt, month = clockMonthAt, seed
  elseif clockMonthAt < monthAt then skewed = true
  elseif seed > month then month = seed end
end
${WINDOWS.map(({ limit, count }) => `if ${limit} > 0 then counted = math.min(counted, ${limit} - ${count}) end`).join('\n')}
counted = math.max(counted, 0)
${RATE_WINDOWS.map(({ count }) => `${count} = ${count} + counted`).join('\n')}
if perMonth > 0 then month = month + counted end
if counted > 0 or seed >= 0 then
  local counts = struct.pack('${FORMAT}', ${STORED})
  redis.call('SET', KEYS[1], counts, 'PX', perMonth > 0 and ${KEPT_WITH_QUOTA_MS} or ${KEPT_MS})
end
local reply = {counted, ${WINDOWS.map(({ count }) => count).join(', ')}}
if skewed then for _, number in ipairs({${WINDOWS.map(({ at }) => at).join(', ')}}) do table.insert(reply, number) end end
return reply`);

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
