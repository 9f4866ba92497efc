#!/usr/bin/env bash
# bitdial replay: says that a run was the same, and says so only when it was.
. "$top_srcdir/tests/cli/tap.sh"

"$BITDIAL" train "${quick[@]}" --steps 60 --log j --quiet >train.out 2>&1
run replay j
is_status 0 "replay of a journal"
out_has "reproduced: 60 steps" "replay of a journal"
out_has "$(sed -n 's/^weights //p' train.out)" "the weights' hash is that of the run"
! grep -q differs out; tap $? "nothing differs"

run replay --to 25 j
is_status 0 "replay --to"
out_has "25 steps" "replay --to"
run replay --quiet j
is_status 0 "replay --quiet"
out_empty "replay --quiet"

# Another loss at step 40: found there. The last digit of the loss is changed.
awk '/"kind": ?"step"/ && ++n == 40 {
       match($0, /"loss": ?[-0-9.e]+/)
       v = substr($0, RSTART, RLENGTH); d = substr(v, length(v), 1)
       $0 = substr($0, 1, RSTART + RLENGTH - 2) (d == "1" ? "2" : "1") substr($0, RSTART + RLENGTH)
     } { print }' j >j.loss
cmp -s j j.loss && bad=1 || bad=0; tap $bad "(the damaged copy differs)"
run replay j.loss
is_status 1 "a loss that differs"
out_has "step 40" "a loss that differs"
out_has "not reproduced" "a loss that differs"

# Another hash at the end.
sed -E 's/("weights_hash": ?")[0-9a-f]{4}/\1ffff/' j >j.hash
run replay j.hash
is_status 1 "a hash that differs"
out_has "not reproduced" "a hash that differs"

# A torn last line, as a killed process leaves it: what is whole is checked.
head -c $(($(wc -c <j) - 20)) j >j.torn
run replay j.torn
is_status 0 "a torn last line"
out_has "no end line" "a torn last line"

: >empty
run replay empty
is_status 1 "an empty journal"
err_has "empty" "an empty journal"
run replay absent
is_status 1 "no journal"
err_has "absent" "no journal"
echo 'hello' >text
run replay text
is_status 1 "a file that is no journal"
err_has "text" "a file that is no journal"
sed 2,3d j >j.gap
run replay j.gap
[ "$status" -eq 1 ]; tap $? "a journal without its first steps is not called reproduced"
finish
