#include "check.hpp"

int main() {
    for (const check::Case& c : check::cases()) {
        const int before = check::failures();
        try {
            c.run();
        } catch (const std::exception& error) {
            std::printf("%s: %s\n", c.name, error.what());
            ++check::failures();
        }
        std::printf("%-50s %s\n", c.name, check::failures() == before ? "ok" : "FAILED");
    }
    return check::failures() == 0 ? 0 : 1;
}
