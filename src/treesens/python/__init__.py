"""The Python interface: the names of `import treesens`, imported on first use."""
