"""The wizard's steps as forms, and the Spec that they make.

`specs.find_problems` decides what is valid; here each problem finds its field.
"""
