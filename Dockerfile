# One image for every role: docker run oncebox relay | worker | notes serve | migrate up | verify | …
# It holds programs and no settings: databases, broker and token come from the environment when it runs.
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS build
ARG UV_VERSION=0.13.9
RUN python -m venv /opt/uv && /opt/uv/bin/python -m pip install --quiet --no-cache-dir "uv==${UV_VERSION}"
ENV UV_PROJECT_ENVIRONMENT=/opt/oncebox \
    UV_PYTHON=/usr/local/bin/python \
    UV_PYTHON_DOWNLOADS=never \
    UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_NO_CACHE=1
ARG EXTRAS="--extra async --extra worker --extra notes --extra operate"
WORKDIR /src
# What others wrote changes rarely: a layer of its own.
COPY pyproject.toml uv.lock README.md LICENSE ./
RUN /opt/uv/bin/uv sync --frozen --no-dev --no-editable --no-install-project ${EXTRAS}
COPY models models
COPY outbox outbox
COPY destinations destinations
COPY worker worker
COPY notes notes
COPY operate operate
# uv leaves a lock file that everybody may write.
RUN /opt/uv/bin/uv sync --frozen --no-dev --no-editable ${EXTRAS} && rm -f /opt/oncebox/.lock

FROM ${PYTHON_IMAGE}
# A fixed number, so that files and policies outside can name it.
RUN groupadd --gid 10001 oncebox \
 && useradd --uid 10001 --gid oncebox --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin oncebox
COPY --from=build /opt/oncebox /opt/oncebox
COPY deploy/containers/health.py /opt/oncebox/health.py
ENV PATH=/opt/oncebox/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /
# -I -S: the check is standard library alone, and starts in some hundredths of a second.
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-I", "-S", "/opt/oncebox/health.py"]
ENTRYPOINT ["oncebox"]
CMD ["--help"]
