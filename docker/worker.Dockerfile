# A worker that computes on CPUs. From the root of the repository:
#     docker build -f docker/worker.Dockerfile -t tidemill-worker --build-arg PIP_EXTRA_INDEX_URL=… .
FROM python:3.12-slim-bookworm AS build
# `worker,ray` for a worker on a Ray cluster.
ARG EXTRAS=worker
# torch as the registry has it brings CUDA, several gigabytes that a CPU has no use for. PyTorch's own index of CPU builds, named here,
# has the same version as `+cpu`, which pip takes for the newer one, and which constraints.txt allows.
ARG PIP_EXTRA_INDEX_URL=""
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
    && install -d -o tidemill -g tidemill /storage /cache /cache/numba
COPY --from=build /opt/tidemill /opt/tidemill
ENV PATH=/opt/tidemill/bin:$PATH \
    HOME=/tmp \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    TIDEMILL_CACHE_DIR=/cache
WORKDIR /opt/tidemill
USER 10001:10001
# No entry point: a `command` is the whole of what runs. It needs a scheduler and a server, and says so.
CMD ["python", "-m", "workers", "dask"]
