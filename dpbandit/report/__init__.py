"""Write the results of a sweep as one HTML page, figures and tables."""

from dpbandit.report.page import Report, write_report

__all__ = ["Report", "write_report"]
