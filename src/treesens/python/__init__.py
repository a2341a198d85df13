"""The Python interface: what `import treesens` offers by name, imported on first use."""
