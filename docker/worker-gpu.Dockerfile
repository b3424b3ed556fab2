# A worker for each GPU of its machine. From the root of the repository:
#     docker build -f docker/worker-gpu.Dockerfile -t tidemill-worker-gpu .
# CUDA 13 needs a driver of 580 or newer on the host, and NVIDIA's container toolkit.
FROM nvidia/cuda:13.0.1-runtime-ubuntu24.04 AS build
# torch as the registry has it is built for CUDA; another index is for those who want another build.
ARG EXTRAS=worker,gpu
ARG PIP_EXTRA_INDEX_URL=""
ENV PATH=/opt/tidemill/bin:$PATH
WORKDIR /build
# Ubuntu's archive keeps only the newest build of a package, so a pinned one is a build that fails next month; 24.04 has Python 3.12.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/tidemill
# What it depends on comes first: a layer that lasts until one of these files changes.
COPY pyproject.toml constraints.txt README.md LICENSE ./
RUN pip install --no-cache-dir --disable-pip-version-check -c constraints.txt ".[${EXTRAS}]"
COPY app app
COPY workers workers
COPY migrations migrations
RUN pip install --no-cache-dir --disable-pip-version-check --no-deps --force-reinstall .

FROM nvidia/cuda:13.0.1-runtime-ubuntu24.04
# Not pinned, as above. A volume that is mounted here for the first time takes the owner of the folder.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 tidemill \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin tidemill \
    && install -d -o tidemill -g tidemill /storage /cache /cache/numba
COPY --from=build /opt/tidemill /opt/tidemill
# The driver's libraries come from the host: those to compute, and NVML.
ENV PATH=/opt/tidemill/bin:$PATH \
    HOME=/tmp \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    TIDEMILL_CACHE_DIR=/cache \
    CUDA_CACHE_PATH=/cache/cuda \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /opt/tidemill
USER 10001:10001
# No entry point: a `command` is the whole of what runs. It needs a scheduler and a server, and says so.
CMD ["python", "-m", "workers", "dask"]
