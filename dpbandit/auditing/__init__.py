"""Audit certificates empirically: what an adversary can prove about epsilon from runs."""

from dpbandit.auditing.audit import AuditReport, audit, audit_views
from dpbandit.auditing.small_problems import audit_all

__all__ = [
    "AuditReport",
    "audit",
    "audit_all",
    "audit_views",
]
