#!/usr/bin/env bash
# Dependencies point one way: a layer includes itself and those below it, and each foreign library stays where it
# belongs. The rules are checked on a tree made wrong on purpose, too.
set -u
src=${top_srcdir:?}/src
layers=(base numeric tensor io model data probe train script ui)

# Lines `FILE HEADER` of every #include below a directory.
includes() {
  grep -rHoE --include='*.[ch]' --include='*.def' '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"][^>"]+[>"]' "$1" |
    sed -E 's/:[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]/ /; s/[>"]$//'
}

# upward DIR LAYER: includes of other layers that are not below it.
upward() {
  local allowed="" l
  for l in "${layers[@]}"; do
    allowed="$allowed $l"
    [ "$l" = "$2" ] && break
  done
  includes "$1/$2" | awk -v allowed="$allowed" -v all="${layers[*]}" '
    BEGIN { n = split(allowed, a, " "); for (i = 1; i <= n; i++) ok[a[i]] = 1
            n = split(all, a, " "); for (i = 1; i <= n; i++) layer[a[i]] = 1 }
    { split($2, part, "/"); if (part[1] in layer && !(part[1] in ok)) print $1 " includes " $2
      if ($2 ~ /^\.\.?\//) print $1 " includes " $2 " by a relative path"
      if ($2 ~ /^(src\/|cmd)/) print $1 " includes " $2 " of the program itself" }'
}

# foreign DIR HEADER-PATTERN ALLOWED-FILES: includes of a library outside the files (paths below DIR) that may.
foreign() {
  includes "$1" | awk -v dir="$1/" -v header="$2" -v allowed="$3" '
    $2 ~ header { file = substr($1, length(dir) + 1); if (file !~ allowed) print file " includes " $2 }'
}

# Library, its headers, who may include them: a layer or a file, and the file that prints the versions.
rules() {
  cat <<'R'
cblas ^(cblas|openblas|lapacke) ^tensor/
readline ^readline/ ^(ui/prompt|cmd_help[.]c$)
curses ^(n?cursesw?|ncursesw?/.*|term|panel)[.]h$ ^(ui/screen|cmd_help[.]c$)
lua ^(lua|lualib|lauxlib|lua5.*)[.]h ^(script/|cmd_help[.]c$)
jansson ^jansson ^(io|train)/
zlib ^zlib ^(io|data)/
xxhash ^xxhash ^base/hash[.]c
intrinsics ^(.*mmintrin|arm_neon)[.]h$ ^(base|numeric|tensor|probe)/
R
}

n=0 failed=0
# result LABEL TEXT: passes where the text is empty.
result() {
  n=$((n + 1))
  if [ -z "$2" ]; then
    echo "ok $n - $1"
  else
    failed=1
    echo "not ok $n - $1"
    printf '%s\n' "$2" | sed 's/^/# /'
  fi
}
# finds LABEL TEXT: passes where there is some.
finds() { result "$1" "$([ -n "$2" ] || echo "nothing found")"; }

for l in "${layers[@]}"; do
  [ -n "$(includes "$src/$l")" ] || result "src/$l has files" "none"
  result "$l includes only itself and what is below" "$(upward "$src" "$l")"
done
result "no folder in src but the layers" "$(cd "$src" && for d in */; do
  case " ${layers[*]} " in *" ${d%/} "*) ;; *) echo "src/$d" ;; esac
done)"
while read -r library header files; do
  result "$library only in $files" "$(foreign "$src" "$header" "$files")"
done < <(rules)

wrong=$(mktemp -d) || exit 1
trap 'rm -rf "$wrong"' EXIT
mkdir "$wrong/numeric" "$wrong/ui"
printf '#include "base/err.h"\n  #  include "train/run.h"\n#include <lua.h>\n' >"$wrong/numeric/bad.c"
printf '#include "../numeric/x.h"\n#include <curses.h>\n' >"$wrong/ui/plot.c"
finds "an upward include would be found" "$(upward "$wrong" numeric | grep 'numeric/bad.c includes train/run.h')"
result "and a downward one not" "$(upward "$wrong" numeric | grep base)"
finds "a relative one too" "$(upward "$wrong" ui | grep relative)"
finds "Lua in numeric would be found" "$(foreign "$wrong" '^(lua|lualib|lauxlib)[.]h' '^script/' | grep lua)"
finds "curses in plot.c would be found" "$(foreign "$wrong" '^n?cursesw?[.]h' '^ui/screen' | grep plot)"
echo "1..$n"
exit $failed
