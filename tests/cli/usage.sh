#!/usr/bin/env bash
# Help, version and wrong usage: what is printed where, near misses, exit statuses.
. "$top_srcdir/tests/cli/tap.sh"

run --help
is_status 0 "--help"
err_empty "--help"
for word in run train replay round formats --log --KNOB "Exit status"; do out_has "$word" --help; done
run -h
is_status 0 "-h"

run --version
is_status 0 "--version"
for word in "bitdial 0" GPL-3.0-or-later BLAS OpenBLAS quantizers Lua ncurses readline; do out_has "$word" --version; done
grep -qE '^quantizers +(scalar|avx2|avx512)$' out; tap $? "--version names the quantizers' instruction set"
BITDIAL_ISA=scalar run --version
grep -qE '^quantizers +scalar$' out; tap $? "BITDIAL_ISA changes it"

for command in run train replay round formats; do
  run "$command" --help
  is_status 0 "$command --help"
  out_has "bitdial $command" "$command --help"
  err_empty "$command --help"
done

# Every knob that `train --help` lists can be given, and its default is accepted.
run train --help
grep -oE '^  --[a-z0-9-]+ (N|X|true\|false|NAME|TEXT)' out | sed 's/^  --//; s/ .*//' >knobs
[ "$(wc -l <knobs)" -ge 20 ]; tap $? "train --help lists the knobs ($(wc -l <knobs))"
bad=0
while read -r knob; do
  grep -qE "^  --$knob " out || bad=1
done <knobs
tap $bad "each on a line of its own"
! grep -nE '^.{81,}' out >long; tap $? "no line of the help is longer than 80 columns"

# usage LABEL TEXT ARGUMENT...: status 2, the text in the message, a pointer to the help, nothing on standard output.
usage() {
  local label=$1 text=$2
  shift 2
  run "$@"
  is_status 2 "$label"
  err_has "$text" "$label"
  err_has "--help" "$label"
  out_empty "$label"
}
usage "a misspelt command" "did you mean 'train'?" tarin
usage "an unknown command" "unknown command 'xyzzy'" xyzzy
usage "a misspelt option" "did you mean --lr-scaling?" train --lr-scalling none
usage "a misspelt knob" "did you mean --bits?" train --bitz 4
usage "a misspelt own option" "did you mean --save?" train --svae x
usage "an unknown option" "unknown option --xyzzy" train --xyzzy 1
usage "one dash" "options are written --NAME VALUE" train -b 4
usage "an option without its value" "--bits needs a value" train --bits
usage "an option in the place of a value" "--bits needs a value" train --bits --lr 1
usage "a value for a flag" "--quiet takes no value" train --quiet=1
usage "an argument where none belongs" "unexpected argument 'hello'" train hello
usage "run without a script" "bitdial run [OPTION]... SCRIPT.lua" run
usage "replay without a journal" "bitdial replay [OPTION]... JOURNAL" replay
usage "replay of two" "unexpected argument 'b'" replay a b
usage "replay to no step" "expected a whole number" replay --to soon a
usage "no number of steps" "expected a whole number" train --every -5
usage "a word for a number" "bits" train --bits four
usage "a fraction for a whole number" "batch" train --batch 1.5
usage "a value out of range" "1 to 1048576" train --batch 0
usage "a value beyond the range" "1048576" train --batch 99999999999999999999
usage "not a number" "lr" train --lr nan
usage "an unknown choice" "none" train --lr-scaling cubic
usage "an unknown recipe" "paper" train --recipe papper
usage "an unknown format" "e4m3" train --format e4m33x
usage "an unknown site" "gweight" train --site.gweigth.format e4m1
usage "an unknown field of a site" "format" train --site.gweight.formt e4m1
usage "a width that the family does not have" "bits = 12" train --bits 12
usage "bits where nothing is quantized, in any order" "bits = 8" train --bits 8 --recipe fp32 --quiet
usage "bytes that command a terminal" 'x\x1b[31m\x07' $'x\e[31m\a'
usage "an unknown knob of the workbench" "did you mean --bits?" --bitz 4

# Options as they may be written.
run train "${quick[@]}" --steps=3 --lr_scaling sqrt --lr-scaling=none --nesterov --weight-decay 0.0001 --quiet
is_status 0 "--KNOB=VALUE, '_' for '-', a truth value without its word"
run train "${quick[@]}" --steps 3 --site.gweight.format e4m1 --site.gact.rounding rne --quiet
is_status 0 "specs of sites as options"

# The workbench without a terminal points elsewhere.
run
is_status 1 "the workbench without a terminal"
err_has "bitdial run" "the workbench without a terminal"
out_empty "the workbench without a terminal"

if [ -w /dev/full ]; then
  for text in --help --version; do
    "$BITDIAL" $text >/dev/full 2>err
    [ $? -eq 1 ]; tap $? "$text to a full device: exit status 1"
    err_has "standard output" "$text to a full device"
  done
else
  skip "no /dev/full"
fi
finish
