"""Empirical audits: what an adversary can prove about epsilon by looking."""

from dpbandit.auditing.audit import audit, audit_views
from dpbandit.auditing.everyone import audit_all
from dpbandit.auditing.exact import exact_audit
from dpbandit.auditing.report import AuditReport

__all__ = ["AuditReport", "audit", "audit_all", "audit_views", "exact_audit"]
