# shellcheck shell=bash
# What ./run and ./test share: messages, and installing what is missing. Sourced, with the repository's root as the
# working directory.

bold="" plain=""
if [[ -t 1 && -z "${NO_COLOR:-}" && "${TERM:-dumb}" != dumb ]]; then
  bold=$'\e[1m' plain=$'\e[0m'
fi

# With how long it has taken so far, once that is more than a minute.
step() {
  local since=""
  if ((SECONDS >= 60)); then
    since=" ($((SECONDS / 60)) min)"
  fi
  printf '%s==> %s%s%s\n' "$bold" "$*" "$since" "$plain"
}

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Prints "package<TAB>why" for the purposes given: run, test.
packages_for() {
  local package purpose why
  while read -r package purpose why; do
    if [[ -n "$package" && "$package" != \#* && " $* " == *" $purpose "* ]]; then
      printf '%s\t%s\n' "$package" "$why"
    fi
  done < tools/packages.txt
}

is_debian_12() {
  [[ -r /etc/os-release ]] || return 1
  # shellcheck source=/dev/null
  [[ "$(. /etc/os-release && printf '%s %s' "${ID:-}" "${VERSION_ID:-}")" == "debian 12" ]] &&
    command -v apt-get dpkg-query > /dev/null
}

# Prints one line a package; the long output goes to the log.
#
# Some of the packages bring a server with them, and Debian starts a server as it is installed. The tests start their
# own, on ports of their own, so nothing may be started here: while apt works, a policy (invoke-rc.d(8)) forbids it. One
# that is there already is the machine's, and stays as it is.
run_apt() {
  local log="build/install.log" policy=/usr/sbin/policy-rc.d forbids="" as_root=() status=0
  if [[ "$(id -u)" != 0 ]]; then
    command -v sudo > /dev/null || fail "cannot install packages: not root, and there is no sudo"
    as_root=(sudo)
  fi
  mkdir -p build
  if [[ ! -e "$policy" && ! -L "$policy" ]]; then
    # 101 is "forbidden by policy".
    printf '#!/bin/sh\n# Put here by bide for the time of an installation.\nexit 101\n' |
      "${as_root[@]}" install -m 755 /dev/stdin "$policy" || fail "cannot write $policy"
    forbids="$policy"
  fi
  (
    # In a shell of its own, so that the policy goes whichever way this ends.
    if [[ -n "$forbids" ]]; then
      trap '"${as_root[@]}" rm -f "$forbids"' EXIT
      trap 'exit 130' INT TERM HUP
    fi
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C \
      apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" 2>&1 |
      tee -a "$log" |
      sed -u -n -E -e 's/^Get:[0-9]+ [^ ]+ [^ ]+ [^ ]+ ([^ ]+) [^ ]+ [^ ]+ (\[.*\])$/    download \1 \2/p' \
        -e 's/^Setting up ([^ ]+) .*/    set up   \1/p' -e 's/^(E: .*)/    \1/p'
  ) || status=$?
  return "$status"
}

# install_missing run|test...: everything of these purposes is there when it returns.
install_missing() {
  if [[ -n "${BIDE_SKIP_INSTALL:-}" ]]; then
    return
  fi
  local package why
  if ! is_debian_12; then
    printf 'This is not Debian 12, so nothing was installed. These Debian packages, or their counterparts, are wanted:\n\n'
    packages_for "$@" | while IFS=$'\t' read -r package why; do printf '    %-22s %s\n' "$package" "$why"; done
    printf '\n'
    fail "not Debian 12: install the above by hand, then set BIDE_SKIP_INSTALL=1"
  fi

  local wanted=() missing=() installed
  while IFS=$'\t' read -r package why; do wanted+=("$package"); done < <(packages_for "$@")
  installed=" $(dpkg-query -W -f '${Package}:${db:Status-Status} ' "${wanted[@]}" 2> /dev/null || true)"
  for package in "${wanted[@]}"; do
    # A command can be there from elsewhere: a Node.js that is not Debian's brings npm along, and Debian's npm conflicts with it.
    [[ "$installed" == *" $package:installed "* ]] || command -v "$package" > /dev/null || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then
    return
  fi

  step "install what is missing, with apt"
  packages_for "$@" | while IFS=$'\t' read -r package why; do
    if [[ " ${missing[*]} " == *" $package "* ]]; then
      printf '    %-22s %s\n' "$package" "$why"
    fi
  done
  run_apt update || fail "apt-get update failed; see build/install.log"
  run_apt install --no-install-recommends "${missing[@]}" ||
    fail "apt could not install: ${missing[*]}; see build/install.log"
}

# configure PRESET [cmake options...]: quiet unless it fails.
configure() {
  local preset="$1" log="build/configure-$1.log"
  shift
  mkdir -p build
  if ! cmake --preset "$preset" "$@" > "$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
}

# build PRESET [TARGET]: says nothing when there is nothing to do. Progress takes one line, on a terminal and in a log; whatever
# the compiler prints is shown whole.
build() {
  local preset="$1" folder="build/$1" steps cores
  shift
  steps="$(ninja -C "$folder" -n "$@" | sed -n -E '$s|^\[[0-9]+/([0-9]+)\].*|\1|p')"
  if [[ -z "$steps" ]]; then
    return
  fi
  cores="$(nproc)"
  # A step takes about four seconds of a core; ccache makes it less.
  step "build $preset: $steps steps, at most about $(((steps * 4 / cores + 59) / 60)) min with $cores cores"
  if [[ -t 1 ]]; then
    NINJA_STATUS="    [%f/%t] " ninja -C "$folder" "$@"
  else
    NINJA_STATUS="[%f/%t] " ninja -C "$folder" "$@" | awk -F '[][/]' '
      /^\[[0-9]+\/[0-9]+\] / {
        tenth = int(10 * $2 / $3)
        if (tenth > shown) { printf "%s%d %%", shown ? ", " : "    ", 10 * tenth; shown = tenth; open = 1; fflush() }
        next
      }
      /^ninja: Entering directory/ { next }
      { if (open) print ""; open = 0; print; fflush() }
      END { if (open) print "" }'
  fi
}
