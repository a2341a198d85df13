// Memory that was freed stays with the process, in pieces that large tables do not fit into.
#pragma once

namespace treesens {

// Hands freed memory back to the system, where the allocator can; takes milliseconds.
void release_unused_memory();

}  // namespace treesens
