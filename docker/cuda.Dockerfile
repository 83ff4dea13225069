# Longwall on NVIDIA GPUs, CUDA 13; the host has the driver and the NVIDIA Container Toolkit. From the top of the checkout:
#     docker build -f docker/cuda.Dockerfile -t longwall-cuda .
# CuPy's wheels bring the parts of the toolkit that are needed: the base has no CUDA, and is small.
FROM python:3.12-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY configs configs
COPY kernels kernels
COPY storage storage
COPY stages stages
COPY pipeline pipeline
RUN python -m venv /opt/longwall && /opt/longwall/bin/pip install --no-cache-dir '.[all]'

FROM python:3.12-slim-bookworm
RUN useradd --create-home --uid 1000 miner
COPY --from=build /opt/longwall /opt/longwall
ENV PATH=/opt/longwall/bin:$PATH PYTHONUNBUFFERED=1 NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER miner
# Compiled for the CPU of the machine that builds the image; others compile what they need on their first runs.
RUN longwall doctor --warm
WORKDIR /work
ENTRYPOINT ["longwall"]
CMD ["--help"]
