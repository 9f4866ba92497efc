#!/usr/bin/env bash
# The manual page and the shell's completion are made from the tables: nothing is missing, and both are well formed.
. "$top_srcdir/tests/cli/tap.sh"

run --dump-man
is_status 0 "--dump-man"
cp out page
cmp -s page "$top_builddir/bitdial.1"; tap $? "the built manual page is that of this program"
grep -c '^\.SH' page | { read -r n; [ "$n" -ge 10 ]; }; tap $? "has its sections"
sed 's/\\-/-/g' page >plain
"$BITDIAL" train --help >help
missing=
for option in $(grep -oE '^  --[a-z0-9-]+' help); do
  grep -qF -- "$option" plain || missing="$missing $option"
done
[ -z "$missing" ]; tap $? "every option of train is in it${missing:+, but not$missing}"
for word in BITDIAL_ISA XDG_STATE_HOME "EXIT STATUS" sr_c e4m3 paper gweight var_quant; do
  grep -qF "$word" plain; tap $? "mentions $word"
done
if command -v man >/dev/null && command -v groff >/dev/null; then
  groff -man -Tascii -ww -z page 2>warnings
  [ ! -s warnings ]; tap $? "groff has no complaint"
else
  skip "no groff"
fi

run --dump-bash-completion
is_status 0 "--dump-bash-completion"
cp out completion
complete_words() { # LAST-WORD-INDEX WORD...
  bash -c '. ./completion; COMP_CWORD=$1; shift; COMP_WORDS=("$@"); _bitdial; printf "%s\n" "${COMPREPLY[@]}"' - "$@"
}
complete_words 1 bitdial tr | grep -qx train; tap $? "completes commands"
complete_words 2 bitdial train --lr-s | grep -qx -- --lr-scaling; tap $? "completes knobs"
complete_words 3 bitdial train --recipe pa | grep -qx paper; tap $? "completes a knob's values"
complete_words 2 bitdial replay --b | grep -q . && bad=1 || bad=0; tap $bad "offers no knobs where none are taken"
finish
