import { luaScript } from './lua-script.ts';

/**
 * `countRequest` of the rules, on one key for each client. ARGV: now in ms, number of the month, quota used as known
 * from elsewhere (-1: not known), limits per second, minute, hour and month (0: none). Gives -1 (unknown), or the
 * outcome (0 refused, 1 counted) and the four counts, and then the numbers of the windows where they are not the
 * clock's.
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
local outcome = 1
if (per_second > 0 and second >= per_second) or (per_minute > 0 and minute >= per_minute)
  or (per_hour > 0 and hour >= per_hour) or (per_month > 0 and month >= per_month) then
  outcome = 0
else
  second, minute, hour = second + 1, minute + 1, hour + 1
  if per_month > 0 then month = month + 1 end
end
if outcome == 1 or seed >= 0 then
  local counts = struct.pack('<dddddddd', second_at, second, minute_at, minute, hour_at, hour, month_at, month)
  redis.call('SET', KEYS[1], counts, 'PX', per_month > 0 and 3456000000 or 7200000)
end
if skewed then return {outcome, second, minute, hour, month, second_at, minute_at, hour_at, month_at} end
return {outcome, second, minute, hour, month}`);

/** ARGV: now in ms, length of the window in ms. Gives the count and when the window began. */
export const COUNT_FAILURE = luaScript(`
local now, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local started, count = now, 0
local stored = redis.call('GET', KEYS[1])
if stored then started, count = struct.unpack('<dd', stored) end
if now >= started + window then started, count = now, 0 end
count = count + 1
redis.call('SET', KEYS[1], struct.pack('<dd', started, count), 'PX', window)
return {count, started}`);
