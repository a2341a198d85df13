"""Certificates: answers that can be checked without trusting the compiler or the engine (docs/certificates.md)."""
