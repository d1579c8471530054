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

# An Ed25519 key: what stands before the 32 bytes of each in PKCS #8 (RFC 8410, section 7), and those.
printf 'AUDIT_SIGNING_KEY=%s\n' "$(
  { printf '\060\056\002\001\000\060\005\006\003\053\145\160\004\042\004\040'; head -c 32 /dev/urandom; } | base64
)"
