-- Adds to scores. ARGV: reason, half-life, time of a ban, then for each score its name, points and maximum. Returns the names that it bans.
local reason, half, left = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local forgotten = 0.05
local banned = {}
for i = 4, #KEYS do
  local n = 5 + (i - 4) * 3
  local name, score, most = ARGV[n], tonumber(ARGV[n + 1]), tonumber(ARGV[n + 2])
  local last = redis.call('HMGET', KEYS[i], 'points', 'at')
  if last[1] then
    score = score + last[1] * 2 ^ (-math.max(0, now - last[2]) / half)
  end
  if score < most - forgotten then
    redis.call('HSET', KEYS[i], 'points', tostring(score), 'at', string.format('%d', now))
    redis.call('PEXPIRE', KEYS[i], string.format('%d', math.max(1, math.ceil(half * math.log(score / forgotten) / math.log(2)))))
  else
    redis.call('DEL', KEYS[i])
    local ends = redis.call('ZSCORE', bans, name)
    if not ends or tonumber(ends) < now + left then
      ban(name, reason, left)
      table.insert(banned, name)
    end
  end
end
return banned
