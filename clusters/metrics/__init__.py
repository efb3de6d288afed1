"""What pods and nodes use: the catalogue of metrics, and the sources that a cluster has for them.

It knows no rows: a source is asked, and answers with figures by pod and by node.
"""
