"""The process of the local cloud: the emulator with the recorder and the checks of AWS's models in front. Started by cloud.py, not
by hand."""

import os

if __name__ == "__main__":
    from ministack import app

    from keelway_local import models, oracle, recorder

    recorder.install(os.environ["KEELWAY_RECORDED"])
    oracle.install(os.environ)
    models.install(os.path.dirname(os.environ["KEELWAY_RECORDED"]))
    app.main()
