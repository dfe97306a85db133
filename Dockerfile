# The environment is built where there are compilers and caches, and copied to where there are none.
FROM python:3.11-slim AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/gatewright && /opt/gatewright/bin/pip install --no-cache-dir .

FROM python:3.11-slim
COPY --from=build /opt/gatewright /opt/gatewright
# The base image has no bytecode of the standard library. What we import of it is compiled here, not at every start,
# where it would double the processor time.
RUN /opt/gatewright/bin/python -c "import gatewright.commands.run, gatewright.commands.check, gatewright.commands.plan"
ENV PATH=/opt/gatewright/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 1000:1000
EXPOSE 8080 8081 9443
ENTRYPOINT ["gatewright"]
