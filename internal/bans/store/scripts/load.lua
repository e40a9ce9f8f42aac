-- Returns the epoch and the number of the version, and then for each ban its name, the time that is left, and the reason.
local answer = { redis.call('HGET', version, 'epoch') or '', redis.call('HGET', version, 'number') or '0' }
local all = redis.call('ZRANGEBYSCORE', bans, string.format('%d', now + 1), '+inf', 'WITHSCORES')
for i = 1, #all, 2 do
  table.insert(answer, all[i])
  table.insert(answer, string.format('%d', all[i + 1] - now))
  table.insert(answer, redis.call('HGET', reasons, all[i]) or '')
end
return answer
