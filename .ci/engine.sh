#!/usr/bin/env bash
# Gives this machine a Docker engine. Returns at once where one answers; otherwise installs Debian's
# (if missing), starts it in the background and returns when it answers. Debian, root.
# Needs no init system: a container or a bare CI machine has none.
set -euo pipefail

log=${DOCKERD_LOG:-/var/log/dockerd.log}
deadline_s=${DOCKERD_DEADLINE_S:-90}

# `docker version` fails without a server in every release; `docker info` does not. A hung engine counts as none.
answers() { timeout 10 docker version >/dev/null 2>&1; }

fail() {
  echo "engine.sh: $1" >&2
  if [[ -s $log ]]; then
    echo "--- last lines of $log" >&2
    tail -n 30 "$log" >&2
  fi
  exit 1
}

# A killed dockerd leaves its pid files behind. Once another process has got that number, the next
# dockerd refuses to start, or waits for a containerd that is not one.
forget_stale() { # PID_FILE COMMAND
  local pid
  [[ -e $1 ]] || return 0
  pid=$(<"$1")
  [[ -n $pid && $(cat "/proc/$pid/comm" 2>/dev/null) == "$2" ]] || rm -f "$1"
}

answers && exit 0
[[ $(id -u) == 0 ]] || fail "no Docker engine answers, and only root can start one"

# Two callers at once must not start two engines.
exec 9>/run/convoy-engine.lock
flock -w 300 9 || fail "another engine.sh holds the lock"
answers && exit 0

if ! command -v dockerd >/dev/null || ! command -v iptables >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  # iptables is only recommended by docker.io, but no port is published without it.
  apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=120 docker.io iptables >/dev/null
fi

engine_alive() {
  forget_stale /run/docker.pid dockerd
  [[ -e /run/docker.pid ]]
}

forget_stale /run/docker/containerd/containerd.pid containerd
dockerd=
if ! engine_alive && ! answers; then # the package may have started one where there is an init system
  setsid dockerd >"$log" 2>&1 </dev/null 9>&- &
  dockerd=$!
fi

SECONDS=0
until answers; do
  ((SECONDS < deadline_s)) || fail "no answer from the Docker engine in time"
  [[ -z $dockerd ]] || kill -0 "$dockerd" 2>/dev/null || engine_alive || fail "dockerd ended while starting"
  sleep 0.5
done
