# The environment is built in a stage with compilers and pip, and copied to one without.
FROM python:3.11-slim-trixie AS build
WORKDIR /src
RUN python -m venv --without-pip /opt/gatewright
COPY requirements.txt .
RUN pip --python /opt/gatewright/bin/python install --no-cache-dir --requirement requirements.txt
COPY . .
RUN pip --python /opt/gatewright/bin/python install --no-cache-dir --no-deps .

FROM python:3.11-slim-trixie
RUN python -m pip uninstall --yes --quiet pip setuptools wheel
COPY --from=build /opt/gatewright /opt/gatewright
# The base image has no bytecode of the standard library: compile what Gatewright imports here, not at every start, where
# it would double the CPU time.
RUN /opt/gatewright/bin/python -c "import gatewright.commands.run, gatewright.commands.check, gatewright.commands.plan"
ENV PATH=/opt/gatewright/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 1000:1000
EXPOSE 8080 8081 9443
ENTRYPOINT ["gatewright"]
