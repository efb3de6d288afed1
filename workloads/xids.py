"""NVIDIA's Xid errors: which are a device's fault, and which a program's. Pure."""

from collections.abc import Mapping

FATAL_XIDS: Mapping[int, str] = {
    48: "a double-bit memory error",
    62: "a halt of its microcontroller",
    63: "a row of memory that is remapped",
    64: "a row of memory that cannot be remapped",
    74: "an error of NVLink",
    79: "the device has fallen off the bus",
    92: "many memory errors that were corrected",
    94: "a contained memory error",
    95: "an uncontained memory error",
    119: "no answer of its system processor",
    120: "an error of its system processor",
}
"""The Xids that are the device's fault, by NVIDIA's list of Xid errors; others come of programs."""
PROGRAM_XIDS: Mapping[int, str] = {
    13: "an exception of the graphics engine",
    31: "an access to memory that is not the program's",
    43: "a program that stopped on the device",
    45: "a program that was removed from the device",
    68: "an exception of the video processor",
}
"""Xids that are a program's doing, most often."""
