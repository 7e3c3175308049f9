-- enqueue: accepts jobs.
--
-- KEYS[1]  the prefix
-- ARGV     1 when the oldest body was written that is in a database, or 0; then for each job the 7 arguments of accept() in
--          stored_job.lua
--
-- For each job: 1: accepted. 0: a job with this id is remembered. Otherwise the id of the live job that holds its key.
-- Instead of all that a time: refuse_swept(). Its first write needs memory: where there is none the server refuses it whole.

local swept = refuse_swept(ARGV[1])
if swept then return swept end
local replies = {}
for i = 2, #ARGV, ACCEPT_ARGUMENTS do
  local reply = accept(i)
  if reply ~= 1 then drop_body_of_new(ARGV[i + 6]) end
  replies[#replies + 1] = reply
end
return finish(replies)
