# TAP for the tests of the command line: sourced. Each test has a directory of its own, in which it runs and where HOME
# and the XDG directories are, and which is removed at the end.

n_tap=0
tap_failed=0
: "${BITDIAL:?the program to test}" "${top_srcdir:?}"
work=$(mktemp -d "${TMPDIR:-/tmp}/bitdial-cli-XXXXXX") || exit 1
trap 'cd /; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
cd "$work" || exit 1
export HOME=$work XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache LC_ALL=C
unset NO_COLOR BITDIAL_ISA

# tap STATUS LABEL: passes where STATUS is 0; else shows what the last `run` printed.
tap() {
  n_tap=$((n_tap + 1))
  if [ "$1" -eq 0 ]; then
    echo "ok $n_tap - $2"
    return
  fi
  tap_failed=1
  echo "not ok $n_tap - $2"
  echo "# command: ${ran-} (status ${status-})"
  head -n 20 out 2>/dev/null | sed 's/^/# out: /'
  head -n 20 err 2>/dev/null | sed 's/^/# err: /'
}

note() { echo "# $*"; }
skip() { n_tap=$((n_tap + 1)); echo "ok $n_tap - # SKIP $*"; }
finish() { echo "1..$n_tap"; exit $tap_failed; }

# run ARGUMENT...: runs the program; leaves its output in `out` and `err`, its exit status in $status.
run() {
  ran="bitdial $*"
  "$BITDIAL" "$@" >out 2>err </dev/null
  status=$?
}

is_status() { [ "$status" -eq "$1" ]; tap $? "$2: exit status $1"; }
out_has() { grep -qF -e "$1" out; tap $? "${2:-$ran}: output has \"$1\""; }
err_has() { grep -qF -e "$1" err; tap $? "${2:-$ran}: message has \"$1\""; }
out_empty() { [ ! -s out ]; tap $? "$1: nothing on standard output"; }
err_empty() { [ ! -s err ]; tap $? "$1: nothing on standard error"; }
# file_has FILE ERE LABEL
file_has() { grep -qE -e "$2" "$1"; tap $? "$3"; }

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
  local tries=$(($1 * 20))
  shift
  until "$@" >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || return 1
    sleep 0.05
  done
}

# A small run, some ten thousand steps a second, that every test here can start from.
cat >small.lua <<'LUA'
return function(o)
  return model { linear(64), relu(), linear(64), relu(), linear(o.classes), defaults = { schedule = "cosine" } }
end
LUA
quick=(--data spirals --model "$work/small.lua" --lr 0.1 --batch 256 --seed 3 --threads 1)
