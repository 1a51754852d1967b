"""A sweep's results as one page that can be mailed, and as figures that can be printed."""

from dpbandit.report.page import Report, write_report

__all__ = ["Report", "write_report"]
