-- The compare-and-set of `rate_limit.py`: KEYS are the state and whose turn it is; ARGV are the old and the
-- new state, the seconds that it is kept, the caller's token, and `1` if the caller was too late several
-- times. Replies the server's time, and the present bytes unless it has swapped. What is not text, or too
-- long, counts as nothing. Who was too late several times is let in next, since otherwise the quickest client
-- would leave the others nothing.
local found, turn, time = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[2]), redis.call('TIME')
if type(found) ~= 'string' or #found > 4096 then found = '' end
if found ~= ARGV[1] or (type(turn) == 'string' and turn ~= ARGV[4]) then
  if ARGV[5] == '1' then redis.call('SET', KEYS[2], ARGV[4], 'NX', 'PX', 100) end
  return {time[1], time[2], found}
end
if ARGV[1] ~= ARGV[2] then redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3]) end
if turn then redis.call('DEL', KEYS[2]) end
return time
