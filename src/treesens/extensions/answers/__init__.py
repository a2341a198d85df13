"""Combines the answers to many questions: counts of rows, several best answers, reasons for the classes of rows."""
