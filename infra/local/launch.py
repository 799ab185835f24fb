"""The process of the local cloud: the emulator with the recorder and the checks of AWS's models in front. Started by cloud.py, not
by hand.

The emulator is an ASGI application, so any server of such applications can serve it. Its own reads HTTP in Python; this one reads
it in C, and a request takes half of the CPU time (docs/decisions/0113).
"""

import contextlib
import gc
import os
import resource

# Objects that were made until the next collection, and collections until the next older generation is looked at, too. By default
# everything that the emulator keeps is looked at again and again, and what requests leave is seldom a cycle.
COLLECT = (20_000, 20, 100)
# For so many seconds a connection stays open without a request, as the emulator's own server keeps it.
KEEP_ALIVE_SECONDS = 75
# Requests that wait for messages must not keep the cloud from ending.
ENDING_SECONDS = 1


def serve(app):
    """Serves the emulator until the process is told to end."""
    import uvicorn

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Every connection is a file, and bursts are larger than what shells allow.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # The answers carry the headers that the emulator gives them, and no others.
    uvicorn.run(app, host=os.environ["BIND_HOST"], port=int(os.environ["GATEWAY_PORT"]), http="httptools", ws="none", lifespan="on",
                log_level="warning", access_log=False, server_header=False, date_header=False, proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS, timeout_graceful_shutdown=ENDING_SECONDS)


if __name__ == "__main__":
    from ministack import app

    from keelway_local import models, oracle, recorder, thrift

    gc.set_threshold(*COLLECT)
    recorder.install(os.environ["KEELWAY_RECORDED"])
    oracle.install(os.environ)
    models.install(os.path.dirname(os.environ["KEELWAY_RECORDED"]))
    thrift.install()
    serve(app.app)
