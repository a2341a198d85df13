// What run.cpp counts: it goes through a file of problems, which is no list of test cases.
#pragma once

#include <cstdio>

namespace check {

inline int& failures() {
    static int count = 0;
    return count;
}

}  // namespace check

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            std::printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            ++check::failures();                                                      \
        }                                                                             \
    } while (false)
