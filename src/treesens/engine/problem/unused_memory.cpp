#include "problem/unused_memory.hpp"

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace treesens {

void release_unused_memory() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

}  // namespace treesens
