# The environment is built in one stage, joined with the base in the next, and copied as one layer to the last: what the
# base has and Gatewright does not need, such as pip, is in no layer. The base is a tag, which gets Debian's and Python's
# corrections; a release's provenance records its digest. To build on one digest, where a registry answers:
#   docker build --build-context python:3.13-slim-trixie=docker-image://python@sha256:... .
FROM python:3.13-slim-trixie AS build
WORKDIR /src
RUN python -m venv --without-pip /opt/gatewright
COPY requirements.txt .
RUN pip --python /opt/gatewright/bin/python install --no-cache-dir --no-compile --require-hashes --requirement requirements.txt
# Gatewright uses kubernetes_asyncio to log in by a kubeconfig's plugins: not its 46 MB of classes for each API.
RUN cd "$(/opt/gatewright/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/kubernetes_asyncio" \
 && rm -r client/api client/models/* dynamic leaderelection stream utils watch \
 && true > __init__.py \
 && true > client/models/__init__.py \
 && printf 'from kubernetes_asyncio.client.%s import %s\n' api_client ApiClient configuration Configuration > client/__init__.py
COPY . .
RUN pip --python /opt/gatewright/bin/python install --no-cache-dir --no-compile --no-deps .

FROM python:3.13-slim-trixie AS system
RUN rm -r "$(python -c 'import pip; print(pip.__path__[0])')"* "$(python -c 'import ensurepip; print(ensurepip.__path__[0])')"
COPY --from=build /opt/gatewright /opt/gatewright
# Compile what Gatewright imports here, not at every start, where it would double the CPU time.
RUN /opt/gatewright/bin/python -c "import gatewright.commands.run, gatewright.commands.check, gatewright.commands.plan, kubernetes_asyncio.config"

FROM scratch
COPY --from=system / /
ENV PATH=/opt/gatewright/bin:/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 1000:1000
EXPOSE 8080 8081 9443
ENTRYPOINT ["gatewright"]
