"""Tables, pages and pictures of studies."""
