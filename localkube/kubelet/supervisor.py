"""The program that runs a run's supervisor and outlives the server: `python -I -S supervisor.py
DIRECTORY`.

It only calls `run_supervisor`: what Python runs as a program it compiles each time, what is
imported it does not.
"""

import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from localkube.kubelet import run_supervisor

if __name__ == "__main__":
    run_supervisor.supervise_run(sys.argv[1])
