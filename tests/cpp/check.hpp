// The smallest test frame that will do: TEST registers a function, CHECK counts and reports.
#pragma once

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace check {

struct Case {
    const char* name;
    void (*run)();
};
inline std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}
inline int& failures() {
    static int count = 0;
    return count;
}
struct Registration {
    Registration(const char* name, void (*run)()) { cases().push_back({name, run}); }
};

}  // namespace check

#define TEST(name)                                                   \
    static void name();                                              \
    static const check::Registration registered_##name(#name, name); \
    static void name()
#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            std::printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            ++check::failures();                                                      \
        }                                                                             \
    } while (false)
#define CHECK_THROWS(expression, type)                                                  \
    do {                                                                                \
        bool thrown = false;                                                            \
        try {                                                                           \
            static_cast<void>(expression);                                              \
        } catch (const type&) {                                                         \
            thrown = true;                                                              \
        }                                                                               \
        if (!thrown) {                                                                  \
            std::printf("%s:%d: %s does not throw\n", __FILE__, __LINE__, #expression); \
            ++check::failures();                                                        \
        }                                                                               \
    } while (false)
