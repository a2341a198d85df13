"""Answers that come from the answers to many questions: counts of rows, several best answers, reasons of rows."""
