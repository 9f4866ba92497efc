# Shared by scripts/run and scripts/test, which source it: install what is missing, configure, build.
# Sets `root` (the source tree) and `jobs`. Nothing here reads the terminal.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc 2>/dev/null || echo 1)

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# Names of the given kinds in scripts/packages that dpkg does not have installed.
missing_packages() {
  local kind names=()
  for kind in "$@"; do
    mapfile -t -O "${#names[@]}" names < <(awk -v k="$kind" '$1 == k { print $2 }' "$root/scripts/packages")
  done
  # A package that dpkg has never heard of is only named on standard error; so compare with what it does list.
  # shellcheck disable=SC2016
  printf '%s\n' "${names[@]}" | grep -vxF -f <(
    dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${names[@]}" 2>/dev/null | sed -n 's/^installed //p'
  ) || true # grep's way to say that nothing is missing
}

# apt_get ARGS: as root, or through a sudo that works; 127 where there is neither.
apt_get() {
  local command=(env DEBIAN_FRONTEND=noninteractive apt-get -q "$@")
  if [ "$(id -u)" -eq 0 ]; then
    "${command[@]}"
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    sudo -n "${command[@]}"
  elif command -v sudo >/dev/null && [ -t 0 ] && [ -t 2 ]; then
    sudo "${command[@]}" # may ask for the password
  else
    return 127
  fi >&2
}

# install_packages KIND...: required ones; says what to type and stops where it cannot.
install_packages() {
  local missing
  command -v dpkg-query >/dev/null || return 0 # not Debian: configure will say what it lacks
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  if ! { apt_get update && apt_get install -y --no-install-recommends "${missing[@]}"; }; then
    say "these Debian packages are missing and could not be installed here. As root:"
    printf '  apt-get update && apt-get install -y --no-install-recommends %s\n' "${missing[*]}" >&2
    exit 1
  fi
}

# install_data: the optional ones. Tried once for a build directory; without them the program says what it uses instead.
install_data() {
  local missing stamp=$root/build/.data-tried
  command -v dpkg-query >/dev/null || return 0
  mapfile -t missing < <(missing_packages data)
  [ ${#missing[@]} -gt 0 ] && [ ! -e "$stamp" ] || return 0
  say "installing ${missing[*]} (optional)"
  if ! { apt_get update && apt_get install -y --no-install-recommends "${missing[@]}"; }; then
    say "going on without ${missing[*]}: a built-in data set takes its place"
    mkdir -p "$root/build"
    : >"$stamp"
  fi
}

# configure_in DIRECTORY ARGS...: configures there once; again when the arguments or the place of the tree changed.
configure_in() {
  local dir=$1 want
  shift
  want=$(printf '%s\n' "$root" "$@")
  if [ ! -e "$root/configure" ]; then
    say "making configure"
    (cd "$root" && autoreconf -fi) >&2 || return 1
  fi
  [ ! -e "$dir/Makefile" ] || [ "$(cat "$dir/.configured" 2>/dev/null)" != "$want" ] || return 0
  say "configuring in ${dir#"$root"/}"
  mkdir -p "$dir"
  if ! (cd "$dir" && "$root/configure" -q "$@") >"$dir/configure.out" 2>&1; then
    cat "$dir/configure.out" >&2
    return 1
  fi
  printf '%s\n' "$want" >"$dir/.configured"
}
