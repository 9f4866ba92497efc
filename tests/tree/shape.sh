#!/usr/bin/env bash
# The shape of the tree: every layer says what it is, files stay small and say what they own, nothing secret or
# unfinished is left in.
set -u
cd "${top_srcdir:?}" || exit 1
limit=600
n=0 failed=0
result() { # LABEL TEXT: passes where the text is empty
  n=$((n + 1))
  if [ -z "$2" ]; then
    echo "ok $n - $1"
  else
    failed=1
    echo "not ok $n - $1"
    printf '%s\n' "$2" | head -n 30 | sed 's/^/# /'
  fi
}
sources() { find src tests models lua scripts -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.lua' -o -name '*.sh' \); }

[ "$(sources | wc -l)" -gt 50 ] || result "there are sources" "fewer than 50"
for d in src/*/; do
  result "${d}README.md says what the layer does, may use and never does" \
    "$(if ! [ -e "${d}README.md" ] || [ "$(wc -w <"${d}README.md")" -lt 25 ]; then echo "missing, or under 25 words"; fi)"
done
result "no file over $limit lines" "$(sources | xargs awk -v limit=$limit \
  'FNR == limit + 1 { print FILENAME }')"
result "every C file opens with a comment on what it owns" \
  "$(find src tests -name '*.[ch]' -print0 | xargs -0 awk 'FNR == 1 && !/^\/\*/ { print FILENAME }')"
result "config.h comes first in every C file" "$(find src -name '*.c' -print0 | xargs -0 awk '
  FNR == 1 { seen = 0 } /^#include/ && !seen { seen = 1; if ($2 != "\"config.h\"") print FILENAME }')"
result "no line over 120 columns in C" \
  "$(find src -name '*.[ch]' -print0 | xargs -0 awk 'length($0) > 120 { print FILENAME ":" FNR }')"
result "no tab and no blank at a line's end in C" \
  "$(find src tests -name '*.[ch]' -print0 | xargs -0 grep -nE '	|[[:space:]]$')"
result "nothing marked as unfinished" "$(grep -rnE '\b(TODO|FIXME|XXX|HACK)\b' src lua models 2>/dev/null)"
# (The workbench ends by _exit() when a thread of Lua cannot be stopped.)
result "exit() only where the program ends" \
  "$(grep -rnE '(^|[^_a-z.])_?exit\(' --include='*.c' src | grep -vE '^src/(main|cmd_[a-z]*)\.c:|^src/ui/ui\.c:[0-9]*:    _exit')"
result "random numbers come from base/rng alone" \
  "$(grep -rnE '\b(s?rand|[dlm]rand48|random|arc4random|getrandom)\(' --include='*.[ch]' src)"
echo "1..$n"
exit $failed
