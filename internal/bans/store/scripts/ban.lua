-- Bans a name. ARGV: name, reason, time.
ban(ARGV[2], ARGV[3], tonumber(ARGV[4]))
return redis.status_reply('OK')
