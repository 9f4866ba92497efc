#!/usr/bin/env bash
# Interruption without a screen: the first SIGINT or SIGTERM stops after the step with everything saved, status 130.
. "$top_srcdir/tests/cli/tap.sh"

steps_in() { [ "$(grep -cE '"kind": ?"step"' "$1")" -ge 3 ]; }

# interrupt SIGNAL NAME ARGUMENT...: starts, waits for steps in NAME.jsonl, sends the signal, waits for the end.
interrupt() {
  local signal=$1 name=$2
  shift 2
  ran="bitdial $*"
  "$BITDIAL" "$@" >out 2>err </dev/null &
  local pid=$!
  wait_for 30 steps_in "$name.jsonl"; tap $? "$name: steps are written while it runs"
  kill "-$signal" $pid
  wait $pid
  status=$?
  is_status 130 "$name"
  tail -n 1 "$name.jsonl" | grep -qE '"kind": ?"end"'; tap $? "$name: the journal has its end line"
  tail -n 1 "$name.jsonl" | grep -qE '"reason": ?"interrupted"'; tap $? "$name: with the reason"
  run replay "$name.jsonl"
  is_status 0 "$name: the journal reproduces"
}

interrupt INT int train "${quick[@]}" --steps 100000000 --log int.jsonl --save int.safetensors
[ -s int.safetensors ]; tap $? "the state is saved"
interrupt TERM term train "${quick[@]}" --steps 100000000 --log term.jsonl

cat >endless.lua <<'LUA'
local bd = require "bitdial"
local run = bd.run { data = "spirals", model = "small.lua", batch = 256, threads = 1 }
run:train(100000000)
print "not reached"
LUA
interrupt INT script run --log script.jsonl endless.lua
! grep -q "not reached" out; tap $? "the script goes no further"

# A script that spins in Lua itself is interrupted too, by pcall not held up.
cat >spin.lua <<'LUA'
io.stdout:write("spinning\n"); io.stdout:flush()
while true do pcall(function() while true do end end) end
LUA
ran="bitdial run spin.lua"
"$BITDIAL" run spin.lua >out 2>err </dev/null &
pid=$!
wait_for 20 grep -q spinning out; tap $? "a spinning script has begun"
kill -INT $pid
sleep 0.3
kill -INT $pid 2>/dev/null # the second ends the program at once, should the first have been swallowed
wait $pid
status=$?
is_status 130 "a spinning script"
finish
