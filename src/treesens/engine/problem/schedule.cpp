#include "problem/schedule.hpp"

#include <algorithm>
#include <stdexcept>

namespace treesens {

namespace {

std::int64_t number_of(const std::string& text) {
    std::size_t end = 0;
    std::int64_t value = 0;
    try {
        value = std::stoll(text, &end);
    } catch (const std::logic_error&) {
        end = 0;
    }
    if (end == 0 || end != text.size()) throw std::invalid_argument("`" + text + "` is no whole number");
    return value;
}

void set_one(const std::string& text, Schedule& changed) {
    const std::size_t sign = text.find('=');
    const std::string name = text.substr(0, sign);
    const auto& entries = schedule_entries();
    const auto at = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return name == e.name; });
    if (at == entries.end()) throw std::invalid_argument("the schedule has no `" + name + "`");
    if (sign == std::string::npos) throw std::invalid_argument("`" + name + "` lacks a value");
    const std::int64_t value = number_of(text.substr(sign + 1));
    if (value < at->least) {
        throw std::invalid_argument("`" + name + "` is at least " + std::to_string(at->least));
    }
    changed.*(at->member) = value;
}

}  // namespace

Schedule schedule;

const std::vector<ScheduleEntry>& schedule_entries() {
    static const std::vector<ScheduleEntry> entries = {
#define TREESENS_OPTION(name, value, least, sentence) {#name, &Schedule::name, value, least, sentence},
        TREESENS_SCHEDULE_OPTIONS(TREESENS_OPTION)
#undef TREESENS_OPTION
    };
    return entries;
}

void set_schedule(const std::string& text) {
    Schedule changed = schedule;
    for (std::size_t from = 0; from < text.size();) {
        const std::size_t end = std::min(text.find(',', from), text.size());
        set_one(text.substr(from, end - from), changed);
        from = end + 1;
    }
    schedule = changed;
}

}  // namespace treesens
