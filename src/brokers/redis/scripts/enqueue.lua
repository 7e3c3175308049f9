-- enqueue: accepts jobs.
--
-- KEYS[1]  the prefix
-- ARGV     for each job the 7 arguments of accept() in common.lua
--
-- For each job: 1: accepted. 0: a job with this id is remembered. Otherwise the id of the live job that holds its key.
-- Its first write needs memory: where there is none the server refuses it whole.

local replies = {}
for i = 1, #ARGV, ACCEPT_ARGUMENTS do replies[#replies + 1] = accept(i) end
return finish(replies)
