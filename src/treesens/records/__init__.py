"""Converts results to records: answers, models, domains and installations as plain data. `report/` displays records."""
