# The bide server. Build: docker build -t bide .
#
# The first start needs a token, since other containers can reach the server:
#   docker run --rm -v bide:/var/lib/bide bide token create app --scope write,work --url bide:/var/lib/bide
#   docker run -d -v bide:/var/lib/bide -p 127.0.0.1:7070:7070 bide

FROM debian:12-slim AS build
COPY . /source
WORKDIR /source
RUN apt-get update \
 && awk '$2 == "run" { print $1 }' tools/packages.txt | xargs apt-get install -y --no-install-recommends dpkg-dev file \
 && cmake --preset release -DBIDE_BUILD_TESTS=OFF \
 && cmake --build --preset release \
 && (cd build/release && cpack)

FROM debian:12-slim
RUN --mount=type=bind,from=build,source=/source/build/release,target=/packages \
    apt-get update \
 && apt-get install -y --no-install-recommends curl $(find /packages -maxdepth 1 -name 'bide_*.deb') \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o daemon -g daemon /var/lib/bide
USER daemon
VOLUME /var/lib/bide
EXPOSE 7070
HEALTHCHECK CMD curl --fail --silent http://127.0.0.1:7070/healthz
ENTRYPOINT ["bide"]
CMD ["serve", "--listen", "0.0.0.0:7070", "--url", "bide:/var/lib/bide"]
