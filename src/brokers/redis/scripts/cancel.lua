-- cancel: takes jobs out of waiting and dead; a running one is asked to stop.
--
-- KEYS[1]  the prefix
-- ARGV     1 only in this state (JobState: 0 scheduled, 1 ready, 2 running, 3 done, 4 dead) or -1; then the ids
--
-- For each id: -1: gone, or asked to stop. -2: there is no such job. Otherwise the state it is in, which does not fit.

write_without_memory()
local wanted = tonumber(ARGV[1])
local replies = {}
for i = 2, #ARGV do
  local id, reply = ARGV[i], -1
  local h, front = load(id)
  if not h then
    reply = -2
  else
    local shown = h[STATE] == WAITING and (h[DUE] > now and 0 or 1) or h[STATE]
    if h[STATE] == DONE or (wanted >= 0 and shown ~= wanted) then
      reply = shown
    elseif h[STATE] == RUNNING then
      h[FLAGS] = with(h[FLAGS], CANCEL_REQUESTED)
      save_header(id, h)
    else
      remove(id, h, front, h[STATE] == DEAD and 'deleted' or 'cancelled')
    end
  end
  replies[#replies + 1] = reply
end
return finish(replies)
