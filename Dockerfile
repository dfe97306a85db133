# The environment is built where there are compilers and caches, and copied to where there are none, nor a pip.
FROM python:3.11-slim-trixie AS build
WORKDIR /src
RUN python -m venv --without-pip /opt/gatewright
COPY requirements.txt .
RUN pip --python /opt/gatewright/bin/python install --no-cache-dir --requirement requirements.txt
COPY . .
RUN pip --python /opt/gatewright/bin/python install --no-cache-dir --no-deps .

FROM python:3.11-slim-trixie
COPY --from=build /opt/gatewright /opt/gatewright
# The base image has no bytecode of the standard library. What we import of it is compiled here, not at every start,
# where it would double the processor time.
RUN /opt/gatewright/bin/python -c "import gatewright.commands.run, gatewright.commands.check, gatewright.commands.plan"
ENV PATH=/opt/gatewright/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 1000:1000
EXPOSE 8080 8081 9443
ENTRYPOINT ["gatewright"]
