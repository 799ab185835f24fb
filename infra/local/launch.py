"""The process of the local cloud: the emulator with the recorder and the checks of AWS's models in front. Started by cloud.py, not
by hand."""

import gc
import os

# Objects that were made until the next collection, and collections until the next older generation is looked at, too. By default
# everything that the emulator keeps is looked at again and again, and what requests leave is seldom a cycle.
COLLECT = (20_000, 20, 100)

if __name__ == "__main__":
    from ministack import app

    from keelway_local import models, oracle, recorder

    gc.set_threshold(*COLLECT)
    recorder.install(os.environ["KEELWAY_RECORDED"])
    oracle.install(os.environ)
    models.install(os.path.dirname(os.environ["KEELWAY_RECORDED"]))
    app.main()
