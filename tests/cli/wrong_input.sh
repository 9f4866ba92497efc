#!/usr/bin/env bash
# Wrong input: files that are missing, damaged or do not fit, places that cannot be written. Each gets a clear message
# that names the thing, status 1, and nothing is lost.
. "$top_srcdir/tests/cli/tap.sh"

# refused LABEL TEXT TEXT ARGUMENT...: status 1, both texts in the message.
refused() {
  local label=$1 text1=$2 text2=$3
  shift 3
  run "$@"
  is_status 1 "$label"
  err_has "$text1" "$label"
  err_has "$text2" "$label"
}

# -- data

# u32 N...: big-endian words
u32() { for n; do printf "\\x$(printf %02x $((n >> 24 & 255)))\\x$(printf %02x $((n >> 16 & 255)))\\x$(printf %02x $((n >> 8 & 255)))\\x$(printf %02x $((n & 255)))"; done; }
# values N MODULUS: n bytes i % MODULUS
values() { local i; for ((i = 0; i < $1; i++)); do printf "\\x$(printf %02x $((i % $2)))"; done; }
make_set() {
  rm -rf set && mkdir set
  { printf '\0\0\10\3'; u32 64 2 2; values 256 251; } >set/train-images-idx3-ubyte
  { printf '\0\0\10\1'; u32 64; values 64 4; } >set/train-labels-idx1-ubyte
  { printf '\0\0\10\3'; u32 16 2 2; values 64 251; } >set/t10k-images-idx3-ubyte
  { printf '\0\0\10\1'; u32 16; values 16 4; } >set/t10k-labels-idx1-ubyte
}
train=(train --threads 1 --batch 16 --steps 5 --quiet)
small=(--model ./small.lua)

make_set
run "${train[@]}" "${small[@]}" --data idx:set
is_status 0 "a good set of idx files"
gzip -9 set/*
run "${train[@]}" "${small[@]}" --data idx:set
is_status 0 "the same files in gzip"

refused "a misspelt data set" "spirlas" "did you mean 'spirals'?" "${train[@]}" --data spirlas
refused "a missing directory" "no-such-set" "no such directory" "${train[@]}" "${small[@]}" --data idx:no-such-set
make_set; mkdir pipe && for name in set/*; do mkfifo "pipe/${name#set/}"; done
refused "FIFOs in the place of files" "pipe/train-images-idx3-ubyte" "not a regular file" "${train[@]}" --data idx:pipe
make_set; rm set/t10k-labels-idx1-ubyte
refused "a missing file" "set/t10k-labels-idx1-ubyte" "no such file" "${train[@]}" "${small[@]}" --data idx:set
make_set; head -c 100 set/train-images-idx3-ubyte >t && mv t set/train-images-idx3-ubyte
refused "a truncated file" "set/train-images-idx3-ubyte" "truncated" "${train[@]}" "${small[@]}" --data idx:set
make_set; gzip set/*; head -c 60 set/train-images-idx3-ubyte.gz >t && mv t set/train-images-idx3-ubyte.gz
refused "a truncated gzip file" "set/train-images-idx3-ubyte.gz" "truncated" "${train[@]}" "${small[@]}" --data idx:set
make_set; echo "not an idx file at all" >set/train-images-idx3-ubyte
refused "a file of another kind" "set/train-images-idx3-ubyte" "not an idx file" "${train[@]}" "${small[@]}" --data idx:set
make_set; printf x >>set/train-labels-idx1-ubyte
refused "a file with bytes too many" "set/train-labels-idx1-ubyte" "bytes follow" "${train[@]}" "${small[@]}" --data idx:set
make_set; { printf '\0\0\10\1'; u32 63; values 63 4; } >set/train-labels-idx1-ubyte
refused "counts that differ" "64 images" "63 labels" "${train[@]}" "${small[@]}" --data idx:set
make_set; { printf '\0\0\10\1'; u32 16; values 16 5; } >set/t10k-labels-idx1-ubyte
refused "a label out of range" "label 4" "0 to 3" "${train[@]}" "${small[@]}" --data idx:set

# -- places that cannot be written

refused "a journal in no directory" "no-such-dir/j" "No such file or directory" "${train[@]}" --data spirals \
  --log no-such-dir/j
mkdir dir
refused "a journal that is a directory" "dir" "irectory" "${train[@]}" --data spirals --log dir
refused "a place to save that is none" "no-such-dir/w" "cannot be written" "${train[@]}" --data spirals \
  --save no-such-dir/w
! grep -q "step" out; tap $? "is found before training, not after"
echo 'require("bitdial").run { data = "spirals", threads = 1 }' >one_run.lua
refused "the same for a script" "no-such-dir/j" "No such file or directory" run --log no-such-dir/j one_run.lua

refused "a state in the place of the journal" "--log both" "are one file" "${train[@]}" --data spirals --log both \
  --save ./both
head -n 1 both | grep -q '"kind":"header"'; tap $? "the journal is there"
cat >over.lua <<'LUA'
local run = require("bitdial").run { data = "spirals", threads = 1, journal = "over.jsonl" }
run:train(2)
run:save("over.jsonl")
LUA
refused "a script's state over its journal" "over.jsonl" "a run writes its journal there" run over.lua
run replay over.jsonl
is_status 0 "which reproduces"

# A standard stream that is closed must not become the next file that is opened.
for closed in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
  rm -f closed.jsonl
  eval '"$BITDIAL" "${train[@]}" --data spirals --log closed.jsonl' "$closed"
  status=$?
  is_status 0 "train $closed"
  run replay closed.jsonl
  is_status 0 "train $closed: its journal is whole"
done

if [ -w /dev/full ]; then
  ran="bitdial train >/dev/full"
  "$BITDIAL" "${train[@]}" --data spirals >/dev/full 2>err
  status=$?
  is_status 1 "$ran"
  err_has "standard output" "$ran"
  refused "a full disk under the journal" "/dev/full" "No space left on device" train "${quick[@]}" --steps 2000 \
    --quiet --log /dev/full --save kept.safetensors
  [ -s kept.safetensors ]; tap $? "the state is saved all the same"
  out_has "saved kept.safetensors" "and said so"
else
  skip "no /dev/full"
fi

# A disk that fills in mid-run: a limit on the size of files does the same to a writer (EFBIG).
ran="bitdial train (64 KiB)"
(ulimit -f 64; exec "$BITDIAL" train "${quick[@]}" --steps 100000 --quiet --log limited.jsonl) >out 2>err </dev/null
status=$?
is_status 1 "a journal that cannot grow"
err_has "limited.jsonl" "a journal that cannot grow"
err_has "File too large" "a journal that cannot grow"
run replay limited.jsonl
is_status 0 "what was written before is whole, and reproduces"

# -- models

refused "an unknown model" "mlpp" "models/" "${train[@]}" --data spirals --model mlpp
refused "a model file that is missing" "absent.lua" "absent.lua" "${train[@]}" --data spirals --model ./absent.lua
printf 'MZ\220\0\003 this is no Lua' >binary.lua
refused "a model file that is not Lua" "binary.lua" "1:" "${train[@]}" --data spirals --model ./binary.lua
echo 'return 42' >number.lua
refused "a model file that returns a number" "number.lua" "number" "${train[@]}" --data spirals --model ./number.lua
echo 'error("my own words")' >error.lua
refused "a model file that fails" "error.lua:1" "my own words" "${train[@]}" --data spirals --model ./error.lua
cat >mismatch.lua <<'LUA'
return function(o)
  return model { inputs = o.inputs, linear(o.inputs, 64), relu(), linear(32, o.classes) }
end
LUA
refused "layers that do not fit" "fc2" "fc1" "${train[@]}" --data spirals --model ./mismatch.lua
finish
