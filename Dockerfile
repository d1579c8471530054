# The Node that package.json pins for every other way to run.
ARG NODE_IMAGE=node:26.10.0-slim

# Nothing that is installed is of a platform: npm runs on the builder's, whatever platforms the image is for.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS install
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY console ./console
# The image's own Node runs it: the one that comes as an optional package stays out.
RUN npm ci --omit=dev --omit=optional && npm ci --prefix console --omit=peer

# What the packages take to load is less in few files. The bundler stays out of the image.
FROM install AS bundle
RUN npm ci
COPY scripts/bundle-packages.ts ./scripts/
COPY src ./src
RUN npm run bundle

FROM ${NODE_IMAGE}
ARG VERSION=0.2.0-dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Portcullis" \
      org.opencontainers.image.description="The integration gateway of a custody and tokenization platform" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Compiled code is kept from the first file on: without it, Node loads its compiler of TypeScript in every process.
ENV NODE_ENV=production DATA_DIR=/data NODE_COMPILE_CACHE=/tmp/node-compile-cache
WORKDIR /app
COPY --from=install /app/node_modules ./node_modules
COPY --from=bundle /app/node_modules/.packages ./node_modules/.packages
COPY --from=install /app/console ./console
COPY package.json package-lock.json gateway.yaml LICENSE ./
COPY client/src ./client/src
COPY migrations ./migrations
COPY schema ./schema
COPY src ./src
# Nothing is installed in what runs: without package managers it has less to attack, and less to patch.
# A version that is not released names its commit, wherever it is told: by --version, /health, the APIs, traces and metrics.
RUN rm -r /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx \
 && ln -s /app/src/cli/portcullis.ts /usr/local/bin/portcullis \
 && install -d -o 1000 -g 1000 /data \
 && case $VERSION/$REVISION in */unknown) ;; *-dev/*) sed -i "s/\"$VERSION\"/\"$VERSION+$REVISION\"/" package.json ;; esac
# Beside /data it writes to /tmp alone, where compiled code is kept: the rest may be read-only.
USER 1000:1000
VOLUME /data
EXPOSE 4000 4001
# A stop takes 10 s at most: give it 15 before the kill (docker stop -t 15).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.ADMIN_PORT || 4001) + '/livez').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Without the base image's script in between, the first process is what the command names, and gets the signals.
ENTRYPOINT []
# The heap fits a memory limit of 1 GiB; young objects of busy requests die before they are copied. Each thread of V8 has
# memory of its own, and one process uses one core.
CMD ["node", "--max-old-space-size=736", "--max-semi-space-size=32", "--no-memory-reducer", "--v8-pool-size=2", "--disable-warning=ExperimentalWarning", "src/main.ts"]
