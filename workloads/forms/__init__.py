"""The wizard's steps as forms, and the Spec that they make. What is right is decided by
`specs.problems`; here it finds its field.
"""
