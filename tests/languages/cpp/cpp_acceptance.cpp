// One tool for each promise of the contract; the project's tests call them.

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "toolbay/toolbay.hpp"

namespace {

struct Text {
    toolbay::required<std::string, "What to say."> text;
};

std::string echo(const Text &args) {
    return args.text;
}

void boom() {
    throw std::runtime_error("kaboom: 42");
}

toolbay::result<void> refuse() {
    return toolbay::invalid("not today");
}

std::pair<toolbay::image, std::string> picture() {
    return {{.data = {0x89, 'P', 'N', 'G', 0x0D, 0x0A, 0x1A, 0x0A}}, "a picture"};
}

struct Report {
    toolbay::required<std::optional<std::string>, "The units that the operator set."> units;
    toolbay::required<bool, "Whether the client gave up."> cancelled;
};

Report report() {
    toolbay::info("working");
    toolbay::progress(1, 2);
    toolbay::progress(2, 2);
    return {.units = toolbay::config("units"), .cancelled = toolbay::cancelled()};
}

} // namespace

std::vector<toolbay::tool> toolbay::tools() {
    return {
        {.name = "cpp_echo", .description = "Says a text back.", .run = echo, .read_only = true},
        {.name = "cpp_boom", .description = "Throws.", .run = boom},
        {.name = "cpp_refuse", .description = "Refuses.", .run = refuse},
        {.name = "cpp_image", .description = "Shows a picture.", .run = picture},
        {
            .name = "cpp_report",
            .description = "Logs, tells its progress and reads its configuration.",
            .run = report,
        },
    };
}
