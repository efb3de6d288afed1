"""Asks a cluster whether it would take a submission: a dry run of each object, nothing is made."""

from workloads.preflight.asking import Answer, ObjectCheck, check_objects, check_submission

__all__ = ["Answer", "ObjectCheck", "check_objects", "check_submission"]
