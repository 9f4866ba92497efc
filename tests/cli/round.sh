#!/usr/bin/env bash
# bitdial round and formats: every float and integer row of the vectors, notations, wrong input, speed of a filter.
. "$top_srcdir/tests/cli/tap.sh"
vectors=$top_srcdir/tests/numeric/vectors

# check_groups CSV AWK-RULE: the rule sets options, input and expected from a row. Rows with the same options go through
# one run; every NaN is written alike.
check_groups() {
  local key options n=0 bad=0
  rm -rf groups && mkdir groups
  awk -F, "function hex(v) { return \"0x\" v } NR > 1 { $2
    inputs[options] = inputs[options] input \"\n\"
    wanted[options] = wanted[options] expected \"\n\"
  }
  END {
    for (o in inputs) {
      name = \"groups/\" ++n
      print o >(name \".opt\"); close(name \".opt\")
      printf \"%s\", inputs[o] >(name \".in\"); close(name \".in\")
      printf \"%s\", wanted[o] >(name \".want\"); close(name \".want\")
    }
  }" "$1"
  for key in groups/*.opt; do
    key=${key%.opt}
    read -r options <"$key.opt"
    # shellcheck disable=SC2086
    if ! "$BITDIAL" round $options --bits --random-column <"$key.in" >"$key.out" 2>err || ! cmp -s "$key.out" "$key.want"; then
      note "bitdial round $options --bits --random-column"
      diff "$key.out" "$key.want" | head -n 4 | sed 's/^/# /'
      bad=1
    fi
    n=$((n + $(wc -l <"$key.out")))
  done
  [ "$n" -eq "$(($(wc -l <"$1") - 1))" ] && [ $bad -eq 0 ]
  tap $? "every row of ${1##*/} ($n)"
}

check_groups "$vectors/float_small.csv" '
  options = "--format " $1 " --mode " $2 ($3 == 1 ? " --saturate" : " --no-saturate") ($6 == 0 ? "" : " --random-bits " $6)
  input = hex($4) " " $5; expected = hex($7)'

# Integer rows have a scale and a zero point each, so nearly every row is a run: one in 32 is taken here, and all
# go through the library in tests/numeric/vectors.c.
awk 'NR == 1 || NR % 32 == 0' "$vectors/int.csv" >int_part.csv
check_groups int_part.csv '
  options = "--format " ($2 == "affine" ? "u" : "") $1 " --mode " $3 " --scale " hex($4) ($2 == "affine" ? " --zero-point " $5 : "") \
    ($8 == 0 ? "" : " --random-bits " $8)
  input = hex($6) " " $7; expected = hex($10)'

# round_is LABEL EXPECTED INPUT OPTION...: exit status 0 and exactly that output.
round_is() {
  local label=$1 expected=$2 input=$3
  shift 3
  ran="bitdial round $*"
  printf '%b' "$input" | "$BITDIAL" round "$@" >out 2>err
  status=$?
  [ $status -eq 0 ] && [ "$(cat out)" = "$(printf '%b' "$expected")" ]
  tap $? "$label"
}
round_is "decimal in, decimal out" '1.25\n448\n-0.001953125\n-0' '1.3\n1e9\n-.0019\n-1e-30\n' --format e4m3 --mode rne
round_is "hexadecimal in, hexadecimal out" '0x1p+0\n1' '0x1.08p0\n1.0\n' --format e4m3 --mode rtz
round_is "bits in, bits out" '0x3f800000\n0x7fc00000' '0x3f840000\n0xff800001\n' --format e4m3 --mode rne --bits
round_is "blank lines, comments, blanks, no last newline" '1\n2' '\n# one\n  1  \t\n\r\n2 # two' --format int8 --mode rne
round_is "NaN and Inf" 'nan\n448\n-448' 'nan\ninf\n-inf\n' --format e4m3 --mode rne
round_is "--no-saturate" 'nan\nnan' '465\ninf\n' --format e4m3 --mode rne --no-saturate
round_is "the default mode is rne" '2\n4' '2.5\n3.5\n' --format int8
round_is "--subnormals flush" '0\n0.015625' '0.007\n0.0157\n' --format e4m3 --mode rne --subnormals flush
round_is "--scale" '0.5\n-31.75' '0.6\n-99\n' --format int8 --mode rne --scale 0.25
round_is "--zero-point" '-0.75\n31\n0.25' '-99\n99\n0.3\n' --format uint7 --mode rne --scale 0.25 --zero-point 3
round_is "intN with a zero point is uintN" '-3\n252' '-99\n999\n' --format int8 --mode rne --zero-point 3
round_is "a random column" '2\n2\n1\n1' '1.5 128\n1.5 0x80\n1.5 127\n1 255\n' --format int8 --mode sr --random-bits 8 \
  --random-column
round_is "a block format scales 32 numbers together" '6\n0.5\n0' '6\n.6\n.2\n' --format mxfp4 --mode rne
round_is "empty input" '' '' --format fp16 --mode rne

# Random numbers: the same seed the same, another seed another draw; unbiased.
yes 1.3 | head -n 20000 >many
"$BITDIAL" round --format e4m0 --mode sr <many >a
"$BITDIAL" round --format e4m0 --mode sr <many >b
"$BITDIAL" round --format e4m0 --mode sr --seed 2 <many >c
cmp -s a b; tap $? "sr without a column: the same again"
! cmp -s a c; tap $? "another seed, another draw"
up=$(grep -cx 2 a)
[ "$up" -gt 5676 ] && [ "$up" -lt 6324 ]; tap $? "1.3 goes to 2 in 0.3 of 20000 cases ($up; 5 standard deviations)"

# Wrong lines: what came before is printed, the line is named.
wrong_line() {
  local label=$1 input=$2 text=$3
  shift 3
  ran="bitdial round $*"
  printf '%b' "$input" | "$BITDIAL" round "$@" >out 2>err
  status=$?
  is_status 1 "$label"
  err_has "$text" "$label"
}
wrong_line "a word" '1\n\nabc\n2\n' "line 3: 'abc'" --format e4m3 --mode rne
[ "$(cat out)" = 1 ]; tap $? "the lines before it are printed"
wrong_line "two numbers" '1 2\n' "--random-column" --format e4m3 --mode rne
wrong_line "no random integer" '1\n' "line 1" --format e4m3 --mode sr --random-column
wrong_line "a random integer that is too large" '1 256\n' "2^random-bits" --format e4m3 --mode sr_c --random-bits 8 --random-column
wrong_line "a negative random integer" '1 -1\n' "line 1" --format e4m3 --mode sr --random-column
wrong_line "decimal where bits are wanted" '0x3f800000\n1.5\n' "line 2" --format e4m3 --mode rne --bits
wrong_line "short bits" '0x3f80\n' "8 hex digits" --format e4m3 --mode rne --bits
wrong_line "trailing text" '1.5x\n' "not a number" --format e4m3 --mode rne
head -c 9000 /dev/zero | tr '\0' 1 | "$BITDIAL" round --format e4m3 >out 2>err
status=$?; is_status 1 "an endless line"; err_has "too long" "an endless line"
if [ -w /dev/full ]; then
  ran="bitdial round >/dev/full"
  "$BITDIAL" round --format e4m3 <many >/dev/full 2>err
  status=$?; is_status 1 "a full disk"
fi

# Wrong usage.
usage() {
  local label=$1 text=$2
  shift 2
  run "$@"
  is_status 2 "$label"
  err_has "$text" "$label"
  out_empty "$label"
}
usage "no format" "--format F is needed" round --mode rne
usage "an unknown format" "unknown number format 'e4m9x'" round --format e4m9x --mode rne
usage "an unknown mode" "unknown rounding mode" round --format e4m3 --mode nearly
usage "a scale that is no number" "--scale x" round --format int8 --mode rne --scale x
usage "a negative scale" "--scale -1" round --format int8 --mode rne --scale -1
usage "a zero point out of range" "--zero-point -1" round --format uint8 --mode rne --zero-point -1
usage "a zero point beyond the codes" "zero_point = 300" round --format uint8 --mode rne --zero-point 300
usage "random bits that sr does not take" "32, 16 or 8" round --format e4m3 --mode sr --random-bits 5
usage "saturate and not" "exclude" round --format e4m3 --mode rne --saturate --no-saturate
usage "nvfp4" "whole tensor" round --format nvfp4 --mode rne
usage "an unknown format to formats" "did you mean 'e4m3'?" formats e4m3x

# A filter for many lines.
awk 'BEGIN { srand(1); for (i = 0; i < 300000; i++) print rand() * 4 - 2 }' >lines
start=$(date +%s%N)
"$BITDIAL" round --format e4m3 --mode sr <lines >out
ms=$((($(date +%s%N) - start) / 1000000))
[ "$(wc -l <out)" -eq 300000 ]; tap $? "300000 lines in $ms ms"

# formats
run formats
is_status 0 "formats"
for f in fp32 e4m3 e4m3fnuz int8 "q(8,4)" ternary mxfp4 nvfp4; do out_has "$f " formats; done
for f in fp32 bf16 e4m3 e5m2 e4m0 e3m4 int4 int8 int16 uint4 "q(8,4)" ternary binary mxint8 nvfp4; do
  run formats "$f"
  is_status 0 "formats $f"
  out_has "$f (" "formats $f"
  ! grep -qE '^.{81,}' out; tap $? "formats $f: at most 80 columns"
done
run formats e4m3
for text in "largest            448" "2^-6 = 0.015625" "bias 7" "number line" "127, and their negatives"; do
  out_has "$text" "formats e4m3"
done
run formats --json
[ "$(grep -c '^{"name": ".*}$' out)" -eq "$(wc -l <out)" ]; tap $? "formats --json: one object a line"
if command -v python3 >/dev/null; then
  python3 -c 'import json, sys; [json.loads(line) for line in sys.stdin]' <out; tap $? "and JSON it is"
else
  skip "no python3"
fi
finish
