"""The pages of this room: signing in, one's account, users, projects with their people and service
accounts.
"""
