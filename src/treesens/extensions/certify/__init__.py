"""Certificates: answers that somebody can check who trusts neither the compiler nor the engine (docs/certificates.md)."""
