-- What the Lua tests share: a line for each check, which scripts.c counts.
local check = {}

function check.ok(condition, name)
  print((condition and "ok - " or "not ok - ") .. name)
end

function check.is(got, want, name)
  check.ok(got == want, name)
  if got ~= want then
    print("# got " .. tostring(got) .. ", want " .. tostring(want))
  end
end

-- fn() fails and the message has the words.
function check.fails(fn, words, name)
  local passed, why = pcall(fn)
  check.ok(not passed and tostring(why):find(words, 1, true) ~= nil, name)
  if passed or not tostring(why):find(words, 1, true) then
    print("# " .. tostring(why))
  end
end

return check
