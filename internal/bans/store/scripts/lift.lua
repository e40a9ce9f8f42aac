-- Ends a ban, and forgets the score. ARGV: name.
redis.call('DEL', KEYS[4])
if redis.call('ZREM', bans, ARGV[2]) == 1 then
  redis.call('HDEL', reasons, ARGV[2])
  changed(ARGV[2], '', 0)
end
return redis.status_reply('OK')
