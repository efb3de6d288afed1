"""The pages of assets, the same for every kind."""
