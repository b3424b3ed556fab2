# The API, and Dask's scheduler: neither torch nor CUDA. From the root of the repository:
#     docker build -f docker/api.Dockerfile -t tidemill-api .
FROM python:3.12-slim-bookworm AS build
# `server,profiles,ray` where the API is to speak to a Ray cluster.
ARG EXTRAS=server,profiles
ENV PATH=/opt/tidemill/bin:$PATH
WORKDIR /build
RUN python -m venv /opt/tidemill
# What it depends on comes first: a layer that lasts until one of these files changes.
COPY pyproject.toml constraints.txt README.md LICENSE ./
RUN pip install --no-cache-dir --disable-pip-version-check -c constraints.txt ".[${EXTRAS}]"
COPY app app
COPY workers workers
COPY migrations migrations
RUN pip install --no-cache-dir --disable-pip-version-check --no-deps --force-reinstall .

FROM python:3.12-slim-bookworm
# A volume that is mounted here for the first time takes the owner of the folder.
RUN groupadd --gid 10001 tidemill \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin tidemill \
    && install -d -o tidemill -g tidemill /data /storage /cache /cache/numba
COPY --from=build /opt/tidemill /opt/tidemill
ENV PATH=/opt/tidemill/bin:$PATH \
    HOME=/tmp \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    TIDEMILL_HOME=/data \
    TIDEMILL_CACHE_DIR=/cache
WORKDIR /opt/tidemill
USER 10001:10001
EXPOSE 8000
# No entry point: a `command` is the whole of what runs. Health checks are in compose.yaml, for each use of this image its own.
CMD ["python", "-m", "app"]
