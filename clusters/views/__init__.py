"""The pages of this app: clusters with their nodes, node pools, and the forms of projects."""
