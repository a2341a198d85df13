"""Answers that are combined from the answers to many questions: counts of rows, several best answers, reasons for rows."""
