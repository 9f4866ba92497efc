#!/usr/bin/env bash
# Each header compiles alone, with the warnings of the build as errors, and twice in one file.
set -u
: "${top_srcdir:?}" "${COMPILE_HEADER:?}"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
n=0 failed=0
cd "$top_srcdir/src" || exit 1
for header in *.h */*.h; do
  [ -e "$header" ] || continue
  n=$((n + 1))
  # No config.h in front: a header may not hang on it.
  printf '#include "%s"\n#include "%s"\nextern int nothing;\n' "$header" "$header" >"$work/x.c"
  # shellcheck disable=SC2086
  if (cd "$work" && $COMPILE_HEADER -Werror -fsyntax-only x.c) >"$work/out" 2>&1; then
    echo "ok $n - $header"
  else
    failed=1
    echo "not ok $n - $header"
    head -n 20 "$work/out" | sed 's/^/# /'
  fi
done
# The compiler command itself is alive: it refuses what is wrong.
n=$((n + 1))
echo '#include "no/such/header.h"' >"$work/x.c"
# shellcheck disable=SC2086
if (cd "$work" && $COMPILE_HEADER -fsyntax-only x.c) >/dev/null 2>&1; then
  failed=1
  echo "not ok $n - a header that is not there is an error"
else
  echo "ok $n - a header that is not there is an error"
fi
echo "1..$n"
exit $failed
