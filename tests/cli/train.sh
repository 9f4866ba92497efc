#!/usr/bin/env bash
# bitdial train: learns, reports, logs, saves; the same options give the same weights.
. "$top_srcdir/tests/cli/tap.sh"

run train "${quick[@]}" --epochs 20 --log journal.jsonl --save weights.safetensors
is_status 0 "training on spirals"
err_empty "training on spirals"
accuracy=$(sed -n 's/.*test accuracy \([0-9.]*\) %.*/\1/p' out)
note "test accuracy $accuracy %"
awk -v a="${accuracy:-0}" 'BEGIN { exit !(a >= 97) }'; tap $? "reaches 97 % on the held-out split"
grep -qE '^step +100 .*loss [0-9.]+' out; tap $? "prints progress lines"
grep -qE '^step +[0-9]+ .*held-out loss [0-9.]+ +accuracy [0-9.]+ %' out; tap $? "prints evaluations"
! grep -q $'\r' out; tap $? "in plain lines where standard output is no terminal"
hash=$(sed -n 's/^weights \([0-9a-f]\{32\}\)$/\1/p' out)
[ -n "$hash" ]; tap $? "prints the hash of the weights"

head -n 1 journal.jsonl | grep -qE '"kind": ?"header"'; tap $? "the journal begins with its header"
tail -n 1 journal.jsonl | grep -qE '"kind": ?"end"'; tap $? "and ends with its end"
tail -n 1 journal.jsonl | grep -qE '"reason": ?"done"'; tap $? "with its reason"
tail -n 1 journal.jsonl | grep -qF "$hash"; tap $? "and the hash of the weights"
steps=$(grep -cE '"kind": ?"step"' journal.jsonl)
[ "$steps" -eq 640 ]; tap $? "one line a step: 20 epochs of 8192 / 256 (found $steps)"
[ "$(head -c 8 weights.safetensors | od -An -tu1 | awk '{ print ($1 + 256 * $2 > 0 && $8 == 0) }')" = 1 ]
tap $? "the saved file begins as safetensors do"

run train "${quick[@]}" --epochs 20 --quiet
is_status 0 "--quiet"
! grep -q '^step' out; tap $? "--quiet prints no progress"
out_has "$hash" "the same options give the same weights"
run train "${quick[@]}" --seed 4 --epochs 20 --quiet
! grep -qF "$hash" out; tap $? "another seed gives others"

run train "${quick[@]}" --steps 20 --log -
is_status 0 "--log -"
[ "$(grep -c '^{' out)" -eq "$(wc -l <out)" ]; tap $? "--log -: standard output holds the journal alone"
grep -qE '"kind": ?"end"' out; tap $? "--log -: to its end"
err_has "weights" "--log -: lines for people go to standard error"

run train "${quick[@]}" --steps 7
out_has "after 7 steps" "--steps"
! grep -q '^step' out; tap $? "a run shorter than the distance between lines prints its result alone"

run train --data auto --steps 2 --quiet --batch 16
is_status 0 "auto"
out_has "test accuracy" "auto"
BITDIAL_DATASETS=$work/nothing run train --data auto --steps 2 --quiet --batch 16
is_status 0 "auto without Fashion-MNIST"
out_has "dataset-fashion-mnist" "auto without Fashion-MNIST"
finish
