"""The Python interface: the names provided by `import treesens`, imported on first use."""
