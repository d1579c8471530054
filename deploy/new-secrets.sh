#!/bin/sh
# Prints new values for every secret that a deployment needs, as NAME=value lines:
#   (umask 077 && deploy/new-secrets.sh >.env)          for compose.yaml
#   deploy/new-secrets.sh >secret.env                   for deploy/kubernetes/README.md
set -eu

# Hexadecimal digits need no escape in an address or a file.
random() {
  od -An -N32 -tx1 /dev/urandom | tr -d ' \n'
}

for name in JWT_SECRET_USER JWT_SECRET_DISCOVER JWT_SECRET_LEGACY SECRET_PEPPER WEBHOOK_PASSWORD \
  POSTGRES_PASSWORD POSTGRES_SERVICE_PASSWORD REDIS_PASSWORD; do
  printf '%s=%s\n' "$name" "$(random)"
done
