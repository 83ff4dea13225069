# Longwall on the CPU, with all that reads URLs and joins a cluster. From the top of the checkout:
#     docker build -f docker/cpu.Dockerfile -t longwall .
FROM python:3.12-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY configs configs
COPY kernels kernels
COPY storage storage
COPY stages stages
COPY pipeline pipeline
RUN python -m venv /opt/longwall && /opt/longwall/bin/pip install --no-cache-dir '.[cluster]' 'fsspec>=2025.2'

FROM python:3.12-slim-bookworm
RUN useradd --create-home --uid 1000 miner
COPY --from=build /opt/longwall /opt/longwall
ENV PATH=/opt/longwall/bin:$PATH PYTHONUNBUFFERED=1
USER miner
# Compiled for the CPU of the machine that builds the image; others compile what they need on their first runs.
RUN longwall doctor --warm
WORKDIR /work
ENTRYPOINT ["longwall"]
CMD ["--help"]
