-- The beginning of each script. KEYS are those of bans, reasons and version, then those of scores. ARGV begins with the channel.
local bans, reasons, version = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- changed counts a change, and tells of it. A time of 0 ends a ban. Whoever finds another epoch knows that the store has lost its data.
local function changed(name, reason, left)
  redis.call('HSETNX', version, 'epoch', time[1] .. '.' .. time[2])
  local n = redis.call('HINCRBY', version, 'number', 1)
  local epoch = redis.call('HGET', version, 'epoch')
  redis.call('PUBLISH', ARGV[1], string.format('%s\n%d\n%d\n%s\n%s', epoch, n, left, reason, name))
end

-- ban bans a name for a time in milliseconds. The keys end with the last ban.
local function ban(name, reason, left)
  for _, over in ipairs(redis.call('ZRANGEBYSCORE', bans, '-inf', now)) do
    redis.call('ZREM', bans, over)
    redis.call('HDEL', reasons, over)
  end
  redis.call('ZADD', bans, string.format('%d', now + left), name)
  redis.call('HSET', reasons, name, reason)
  changed(name, reason, left)
  local last = redis.call('ZRANGE', bans, -1, -1, 'WITHSCORES')[2]
  for i = 1, 3 do
    redis.call('PEXPIREAT', KEYS[i], string.format('%d', last))
  end
end
