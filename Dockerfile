# The environment is built where there are compilers and caches, and copied to where there are none.
FROM python:3.11-slim AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/gatewright && /opt/gatewright/bin/pip install --no-cache-dir .

FROM python:3.11-slim
COPY --from=build /opt/gatewright /opt/gatewright
ENV PATH=/opt/gatewright/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 1000:1000
EXPOSE 8080 8081 9443
ENTRYPOINT ["gatewright"]
