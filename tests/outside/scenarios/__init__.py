"""The scenarios by name, in the order in which they are run."""

from scenarios import (crowd, dead_worker, dead_workers, full_disk, gzip_stall, large_answers, lease_restart, mixed_bodies,
                       shared_store, soak)

SCENARIOS = {
    "lease_restart": lease_restart.run,
    "soak": soak.run,
    "mixed_bodies": mixed_bodies.run,
    "mixed_tls": mixed_bodies.run_tls,
    "dead_worker": dead_worker.run,
    "dead_workers": dead_workers.run,
    "gzip_stall": gzip_stall.run,
    "large_answers": large_answers.run,
    "crowd": crowd.run,
    "full_disk": full_disk.run,
    "shared_store": shared_store.run,
}
