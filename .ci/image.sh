#!/usr/bin/env bash
# image.sh TAG: builds a Kafka image where none can be pulled, from broker/pom.xml's jars on a Debian JRE.
# It answers to the same KAFKA_* variables as the published apache/kafka image, because Kafka's own
# KafkaDockerWrapper turns them into the configuration in both; it has none of /opt/kafka/bin.
# Returns at once where TAG was built from these very files.
set -euo pipefail

tag=${1:?usage: image.sh TAG}
top=$(cd "$(dirname "$0")/.." && pwd)
inputs=$(cat "$top/.ci/image.sh" "$top/broker/pom.xml" | sha256sum | cut -c1-16)

built_from=$(docker image inspect -f '{{index .Config.Labels "convoy.inputs"}}' "$tag" 2>/dev/null) || built_from=
[[ $built_from != "$inputs" ]] || exit 0

missing=()
command -v mvn >/dev/null || missing+=(maven)
command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
if ((${#missing[@]})); then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=120 "${missing[@]}" >/dev/null
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/opt/kafka" "$work/etc/kafka/docker"

mvn -B -ntp -f "$top/broker/pom.xml" dependency:copy-dependencies \
  -DincludeScope=runtime -DoutputDirectory="$work/opt/kafka/libs" >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; exit 1; }

cat >"$work/etc/kafka/docker/run" <<'RUN'
#!/bin/sh
# Writes the configuration from KAFKA_* and formats the data folder if it is new; then becomes the broker.
set -eu
export CLUSTER_ID="${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}"
said=$(java -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile=/etc/kafka/docker/tools-log4j2.yaml \
  -cp '/opt/kafka/libs/*' kafka.docker.KafkaDockerWrapper setup --default-configs-dir /etc/kafka/docker \
  --mounted-configs-dir /mnt/shared/config --final-configs-dir /opt/kafka/config 2>&1) ||
  # The wrapper calls a second start on the same data an error; it is what a restart is.
  case $said in *'already formatted'*) ;; *) printf '%s\n' "$said" >&2; exit 1 ;; esac
# Unquoted on purpose: each of these variables holds several options.
# shellcheck disable=SC2086
exec java ${KAFKA_HEAP_OPTS:--Xms256m -Xmx512m} ${KAFKA_JVM_PERFORMANCE_OPTS:--server} ${KAFKA_OPTS:-} \
  -Dlog4j2.configurationFile=/opt/kafka/config/log4j2.yaml \
  -cp '/opt/kafka/libs/*' kafka.Kafka /opt/kafka/config/server.properties
RUN
chmod +x "$work/etc/kafka/docker/run"

# Used only where no KAFKA_* variable is given at all: one variable replaces the whole file.
cat >"$work/etc/kafka/docker/server.properties" <<'CONF'
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
advertised.listeners=PLAINTEXT://localhost:9092
controller.listener.names=CONTROLLER
controller.quorum.voters=1@localhost:9093
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=/var/lib/kafka/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
CONF

log_config() { # LEVEL STREAM
  cat <<CONF
Configuration:
  Appenders:
    Console:
      name: CONSOLE
      target: $2
      PatternLayout:
        pattern: "[%d] %p %m (%c)%n"
  Loggers:
    Root:
      level: $1
      AppenderRef:
        - ref: CONSOLE
CONF
}
log_config INFO SYSTEM_OUT >"$work/etc/kafka/docker/log4j2.yaml"
log_config WARN SYSTEM_ERR >"$work/etc/kafka/docker/tools-log4j2.yaml"

# One layer, made and imported whole: no base image and no builder are needed. Uid 1000 as in apache/kafka,
# so that a data volume of the one can be read by the other. The hooks' $1 is mmdebstrap's to fill in.
# shellcheck disable=SC2016
mmdebstrap --quiet --variant=minbase --include=openjdk-17-jre-headless \
  --customize-hook="copy-in '$work/opt/kafka' /opt" \
  --customize-hook="copy-in '$work/etc/kafka' /etc" \
  --customize-hook='chroot "$1" useradd --uid 1000 --create-home appuser' \
  --customize-hook='chroot "$1" install -d -o 1000 -g 1000 /opt/kafka/config /var/lib/kafka/data /mnt/shared/config' \
  bookworm "$work/root.tar"
docker import \
  --change 'USER 1000' --change 'EXPOSE 9092' --change 'ENTRYPOINT ["/etc/kafka/docker/run"]' \
  --change "LABEL convoy.inputs=$inputs" "$work/root.tar" "$tag" >/dev/null
