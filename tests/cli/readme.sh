#!/usr/bin/env bash
# What the README shows is so: its model is the shipped one, its script runs, its commands parse.
. "$top_srcdir/tests/cli/tap.sh"
readme=$top_srcdir/README.md

# block N: the N-th ```lua block
block() { awk -v want="$1" '/^```lua$/ { n++; on = n == want; next } /^```$/ { on = 0 } on' "$readme"; }

block 1 >script.lua
grep -q 'bd.run' script.lua; tap $? "the README has its script"
sed -i 's/"fashion-mnist"/"spirals", threads = 1/; s/train(\([0-9]*\)0)/train(\1)/' script.lua # a tenth of the steps
run run --quiet script.lua
is_status 0 "the README's script"
err_empty "the README's script"
grep -qE '^[0-9.]+[[:space:]]+[0-9.e-]+$' out; tap $? "prints a loss and a variance"
[ -s x.safetensors ]; tap $? "and saves"

block 2 >model
[ -s model ] && grep -v '^--' "$top_srcdir/models/mlp.lua" | cmp -s - model; tap $? "the model shown is models/mlp.lua"

# Every `bitdial train` line: its options parse, down to the values (a wrong one would be status 2).
grep -oE '^    bitdial train --.*' "$readme" | sed 's/^ *bitdial //; s/--log [^ ]*//' >commands
grep -q . commands; tap $? "the README has commands"
while read -r line; do
  read -ra words <<<"$line"
  run "${words[@]}" --data no-such-set
  is_status 1 "bitdial $line"
  err_has "no-such-set" "bitdial $line"
done < <(grep -v '\[' commands)

# Links and folders it names exist.
missing=
for path in $(grep -oE '\]\([a-zA-Z./_-]+\)' "$readme" | tr -d '()]') $(grep -oE '`(src|lua|tests|models|scripts)/[a-z_./]*`' "$readme" | tr -d '`'); do
  [ -e "$top_srcdir/$path" ] || missing="$missing $path"
done
[ -z "$missing" ]; tap $? "every file it names exists${missing:+, but not$missing}"
finish
