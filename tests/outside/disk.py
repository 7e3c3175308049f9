"""A small disk of its own, which can be full: a tmpfs with a size, or else a file with a file system in it."""

import os
import subprocess


class SmallDisk:
    def __init__(self, folder, mebibytes):
        self.path = os.path.join(folder, "disk")
        self.image = os.path.join(folder, "disk.image")
        self.filler = os.path.join(self.path, "filler")
        os.makedirs(self.path)
        self.why_not = self._mount(mebibytes)

    def _mount(self, mebibytes):
        """Nothing, or why neither way works here."""
        tmpfs = _try("mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", self.path)
        if tmpfs is None:
            return None
        with open(self.image, "wb") as file:
            file.truncate(mebibytes * 2**20)
        loop = _try("mkfs.ext4", "-q", self.image) or _try("mount", "-o", "loop", self.image, self.path)
        return loop and f"no small disk can be mounted: {tmpfs}; {loop}"

    def fill(self):
        """Takes all room that is left."""
        with open(self.filler, "ab", buffering=0) as file:
            for size in (2**20, 4096, 1):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    pass

    def free(self):
        os.unlink(self.filler)

    def unmount(self):
        _try("umount", self.path)


def _try(*command):
    """Nothing when it worked, otherwise what it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip() or f"{command[0]} ended with {done.returncode}")
