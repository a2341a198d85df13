// Freed memory stays with the process, in pieces too small for large tables.
#pragma once

namespace treesens {

// Returns freed memory to the system, if the allocator supports it; takes milliseconds.
void release_unused_memory();

}  // namespace treesens
