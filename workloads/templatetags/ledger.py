"""GPU-hours as the pages of the ledger show them."""

from django import template

from workloads.overview.ledger_bars import format_hours

register = template.Library()

register.filter("hours", format_hours)
