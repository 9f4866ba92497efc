#!/usr/bin/env bash
# bitdial bench: every case is there, as JSON with the fields that programs read, and says what it ran on. How fast
# this machine is, is no matter of pass or fail.
. "$top_srcdir/tests/cli/tap.sh"

# fields LABEL KEY...: every line has every key.
fields() {
  local label=$1 key
  shift
  for key in "$@"; do
    ! grep -qvE "\"$key\": ?(\"[^\"]+\"|[0-9.e+-]+)[,}]" out; tap $? "$label: every line has $key"
  done
}

run bench quantize --json --runs 1
is_status 0 "bench quantize"
err_empty "bench quantize"
fields "bench quantize" case format rounding random_bits elements isa median_s min_s runs ratio_to_copy
missing=0
for format in int8 e4m3 e5m2 bf16 mxfp4; do
  for bits in 0 32 16 8; do
    for n in 65536 16777216; do
      grep -qE "\"format\": ?\"$format\".*\"random_bits\": ?$bits,.*\"elements\": ?$n," out || missing=$((missing + 1))
    done
  done
done
[ $missing -eq 0 ]; tap $? "bench quantize: all formats, roundings and sizes"

run bench step --json --runs 1
is_status 0 "bench step"
fields "bench step" case recipe probe batch threads isa median_s min_s runs ratio_to_fp32

export BITDIAL_ISA=scalar
run bench step --runs 1
is_status 0 "bench for people"
out_has "kernels: scalar" "BITDIAL_ISA chooses the kernels"
unset BITDIAL_ISA

run bench quantise
is_status 2 "an unknown bench"
err_has "did you mean 'quantize'" "an unknown bench"
run bench step --runs 0
is_status 2 "no runs"
err_has "--runs 0" "no runs"
finish
