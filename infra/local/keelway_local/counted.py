"""Counts of rows, in a file that other processes read while the local cloud runs."""

import json
import os
import threading
import time


# The most distinct rows.
MOST = 5000


class Counted:
    """Counts rows with these fields. New rows are written to the file at once, counts within a second."""

    def __init__(self, path, *fields):
        self._path, self._fields = path, (*fields, "count")
        self._lock = threading.Lock()
        self._seen = {}
        self._dirty = False
        threading.Thread(target=self._flush_forever, daemon=True, name="keelway-counted").start()
        self._write()

    def note(self, *row):
        with self._lock:
            new = row not in self._seen
            if new and len(self._seen) >= MOST:
                return
            self._seen[row] = self._seen.get(row, 0) + 1
            self._dirty = True
            if new:
                self._write()

    def _flush_forever(self):
        while True:
            time.sleep(1)
            with self._lock:
                if self._dirty:
                    self._write()

    def _write(self):
        rows = [dict(zip(self._fields, (*row, count))) for row, count in sorted(self._seen.items())]
        temporary = f"{self._path}.tmp"
        with open(temporary, "w") as file:
            json.dump(rows, file)
        os.replace(temporary, self._path)
        self._dirty = False
