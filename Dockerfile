# Two stages: the compiler stays behind. Models are fetched into the data folder
# at the first start, so the image holds no weights.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /ragd ./cmd/ragd

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3-pip \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --home-dir /var/lib/ragd --create-home ragd
COPY --from=build /ragd /usr/local/bin/ragd
USER ragd
ENV RAGD_HOME=/var/lib/ragd
VOLUME /var/lib/ragd
EXPOSE 8080
ENTRYPOINT ["ragd"]
CMD ["serve"]
